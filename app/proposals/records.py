"""A proposal as a frozen value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A file made from one revision, without its bytes."""

    tenant_id: str
    id: str
    quote_id: str
    revision_id: str
    n: int
    revision_content_sha256: str
    standing: str
    format: str
    options: Mapping[str, Any]
    media_type: str
    file_name: str
    sha256: str
    size_bytes: int
    adaptations: Sequence[Mapping[str, str]]
    created_by: str
    created_at: datetime
