"""What clients ask of proposals, and how a proposal is shown."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

from app.estimates.fields import Name, Schema

FORMATS = ("ubl", "focus-csv", "json", "cxml", "oci")

Identity = Annotated[str, Strict(), Field(min_length=1, max_length=255)]
Short = Annotated[str, Strict(), Field(min_length=1, max_length=10)]
HookUrl = Annotated[str, Strict(), Field(pattern=r"^https?://[^\s]+$", max_length=2000)]


class CxmlCredential(Schema):
    """Who somebody is in a cXML network."""

    domain: Identity
    identity: Identity


class CxmlCredentials(Schema):
    """Header of a cXML message; who is left out goes by the names of this service."""

    from_: CxmlCredential | None = Field(default=None, alias="from")
    to: CxmlCredential | None = None
    sender: CxmlCredential | None = None


class ProposalCreate(Schema):
    """Which format, and what that format needs beside the revision. Options of another format are refused."""

    format: Annotated[Name, Field(json_schema_extra={"enum": list(FORMATS)})]
    locale: Literal["en", "zh-CN"] | None = Field(
        default=None, description="Language of descriptions (en); ubl, focus-csv, cxml, oci."
    )
    buyer_cookie: Identity | None = Field(
        default=None, description="cxml: BuyerCookie of the PunchOutSetupRequest, given back as it came. Required."
    )
    credentials: CxmlCredentials | None = Field(default=None, description="cxml: From, To and Sender.")
    mode: Literal["lenient", "strict"] | None = Field(
        default=None,
        description="oci: lenient (the default) cuts texts, whose whole stays in LONGTEXT, bills what SAP's three "
        "decimals cannot hold as one lump at its exact amount, and says so under adaptations; strict refuses.",
    )
    encoding: Literal["html", "json", "urlencoded"] | None = Field(
        default=None, description="oci: an HTML form to post (the default), its fields as JSON, or urlencoded."
    )
    hook_url: HookUrl | None = Field(default=None, description="oci: HOOK_URL, where the form is posted to.")
    vendor: Short | None = Field(default=None, description="oci: NEW_ITEM-VENDOR.")
    material_group: Short | None = Field(default=None, description="oci: NEW_ITEM-MATGROUP.")


class Adaptation(BaseModel):
    """A value that was changed to fit the format, and what it was."""

    model_config = ConfigDict(extra="forbid")

    pointer: str
    field: str
    limit: str
    value: str


class ProposalLinks(BaseModel):
    """Where to go from a proposal."""

    model_config = ConfigDict(extra="forbid")

    self: str
    content: str
    revision: str


class ProposalView(BaseModel):
    """A file made from one revision."""

    model_config = ConfigDict(extra="forbid")

    id: str
    quote_id: str
    revision_id: str
    revision: int
    format: str
    options: dict[str, Any]
    status: Literal["ready"]
    standing: Literal["draft", "offer", "void"]
    revision_content_sha256: str
    media_type: str
    file_name: str
    size_bytes: int
    sha256: str
    adaptations: list[Adaptation]
    created_by: str
    created_at: str
    links: ProposalLinks
