"""Bodies of the access routes."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from app.access.audit import AuditEntry
from app.access.keys import ApiKey
from app.foundation.clock import rfc3339

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Scope = Annotated[str, StringConstraints(max_length=40)]
Network = Annotated[str, StringConstraints(max_length=64)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class KeyCreate(Strict):
    """A new API key. It may have any of the scopes its maker has, and no other."""

    name: Name
    scopes: list[Scope] = Field(min_length=1, max_length=32)
    expires_at: AwareDatetime | None = None
    allowed_networks: list[Network] = Field(default_factory=list, max_length=64)


class KeyRotate(Strict):
    """How long the old key goes on working, in seconds."""

    grace_seconds: int = Field(default=86_400, ge=0, le=30 * 86_400)


class KeyView(BaseModel):
    """A key without its secret."""

    id: str
    prefix: str
    name: str
    scopes: list[str]
    allowed_networks: list[str]
    created_by: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    replaces_id: str | None

    @classmethod
    def of(cls, key: ApiKey) -> "KeyView":
        return cls(**_key_members(key))


class NewKeyView(KeyView):
    """A key with its secret, told once: the replay of a retry has null in its place."""

    key: str | None

    @classmethod
    def of_new(cls, key: ApiKey, text: str | None) -> "NewKeyView":
        return cls(**_key_members(key), key=text)


def _when(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def _key_members(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "prefix": f"gq_{key.prefix}",
        "name": key.name,
        "scopes": list(key.scopes),
        "allowed_networks": list(key.allowed_networks),
        "created_by": key.created_by,
        "created_at": rfc3339(key.created_at),
        "expires_at": _when(key.expires_at),
        "revoked_at": _when(key.revoked_at),
        "last_used_at": _when(key.last_used_at),
        "replaces_id": key.replaces_id,
    }


class KeyPage(BaseModel):
    items: list[KeyView]
    next_cursor: str | None


class Me(BaseModel):
    """Who the service thinks you are."""

    tenant_id: str
    actor: str
    key_id: str | None
    scopes: list[str]
    default_currency: str


class Usage(BaseModel):
    """What the tenant did in the last 30 days, by audited action, and its request limit."""

    period_days: int
    actions: dict[str, int]
    requests_per_minute: int


class AuditEntryView(BaseModel):
    """One link of the chain, as it is hashed."""

    sequence: int
    at: str
    actor: str
    on_behalf_of: str | None
    key_id: str | None
    trace_id: str | None
    action: str
    subject: str
    before_sha256: str | None
    after_sha256: str | None
    reason: str | None
    details: dict[str, object]
    previous_hash: str
    entry_hash: str

    @classmethod
    def of(cls, entry: AuditEntry) -> "AuditEntryView":
        values = entry.as_json()
        values.pop("tenant_id")
        return cls(**values)


class AuditPage(BaseModel):
    items: list[AuditEntryView]
    next_cursor: str | None


class AuditVerdict(BaseModel):
    """Whether the chain is whole. ``head_signature`` lets an exported head be held against the service later."""

    match: bool
    entries: int
    head_hash: str
    head_signature: str
    broken_at: int | None
    reason: str | None
