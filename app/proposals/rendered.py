"""What a format's writer is given beside the document, and what it gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.proposals.errors import Misfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Who somebody is in a cXML network."""

    domain: str
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a caller may choose, per format; see ``schemas.ProposalCreate``."""

    locale: str = "en"
    buyer_cookie: str = ""
    credentials: Mapping[str, Credential] = field(default_factory=dict)
    mode: str = "lenient"
    encoding: str = "html"
    hook_url: str | None = None
    vendor: str | None = None
    material_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A file. ``adaptations`` names every value that was changed to fit, with what it was."""

    content: bytes
    media_type: str
    extension: str
    adaptations: tuple[Misfit, ...] = ()
