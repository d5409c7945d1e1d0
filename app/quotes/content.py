"""What a revision says, and the hash that stands for it: RFC 8785 canonical JSON and its SHA-256."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import orjson

from app.foundation.canonical import canonical_bytes, sha256_hex

SCHEMA_VERSION = "1"

# The members of a revision that are hashed; everything else in an answer is about the revision, not in it.
HASHED_MEMBERS = ("spec", "items", "totals", "fx", "lifetime", "pins", "validity", "parties", "completeness")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """Everything the figures depend on. ``engine_outputs_sha256`` ties the stored engine answer to the content."""

    as_of: str
    catalog_revision: str
    catalog_content_sha256: str
    price_book_version: str | None
    fx_snapshot: str | None
    tax_rules_version: str | None
    engine_version: str
    engine_build: str
    engine_outputs_sha256: str
    rounding_policy: str
    schema_version: str = SCHEMA_VERSION

    def as_content(self) -> dict[str, str | None]:
        """Give the form that is stored, hashed and shown."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_content(cls, document: Mapping[str, Any]) -> "Pins":
        """Read the pins of a stored revision."""
        return cls(**{field.name: document[field.name] for field in fields(cls)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """Content as the bytes that were hashed, and the hash."""

    text: str
    sha256: str


def seal(content: Mapping[str, Any]) -> Sealed:
    """Serialise canonically and hash; the content has exactly the hashed members."""
    if set(content) != set(HASHED_MEMBERS):
        raise ValueError(f"content has the members {sorted(content)}, not {sorted(HASHED_MEMBERS)}")
    data = canonical_bytes(content)
    return Sealed(text=data.decode(), sha256=sha256_hex(data))


def canonical_text(value: Any) -> Sealed:
    """Serialise any JSON value canonically and hash it (engine outputs, specs)."""
    data = canonical_bytes(value)
    return Sealed(text=data.decode(), sha256=sha256_hex(data))


def open_content(text: str) -> dict[str, Any]:
    """Read stored content."""
    content: dict[str, Any] = orjson.loads(text)
    return content


def is_intact(text: str, sha256: str) -> bool:
    """Say whether stored text still is canonical and still has its hash."""
    try:
        canonical = canonical_bytes(orjson.loads(text))
    except (ValueError, orjson.JSONDecodeError):
        return False
    return canonical == text.encode() and sha256_hex(canonical) == sha256
