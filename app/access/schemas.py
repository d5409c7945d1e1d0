"""Bodies of the access routes."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.access.audit import AuditEntry
from app.access.keys import ApiKey
from app.access.quotas import QUOTAS, limit_in
from app.access.repository import Tenant
from app.foundation.clock import rfc3339
from app.foundation.dates import InstantText
from app.foundation.numbers import Count, Flag

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Scope = Annotated[str, StringConstraints(max_length=40)]
Network = Annotated[str, StringConstraints(max_length=64)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class KeyCreate(Strict):
    """A new API key. It may have any of the scopes its maker has, and no other."""

    name: Name
    scopes: list[Scope] = Field(min_length=1, max_length=32)
    expires_at: InstantText | None = None
    allowed_networks: list[Network] = Field(default_factory=list, max_length=64)


class KeyRotate(Strict):
    """How long the old key goes on working, in seconds."""

    grace_seconds: Count = Field(default=86_400, ge=0, le=30 * 86_400)


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


class QuotaView(BaseModel):
    """One limit of the tenant; ``used`` is null where each request is measured alone."""

    name: str
    limit: int
    used: int | None


class UsageDay(BaseModel):
    """One day in UTC. Requests and estimates are a few seconds behind where several workers serve."""

    day: str
    requests: int
    estimates: int
    quotes: int


class Usage(BaseModel):
    """What the tenant did in the last 30 days, by audited action and by day, and its limits."""

    period_days: int
    actions: dict[str, int]
    requests_per_minute: int
    days: list[UsageDay]
    quotas: list[QuotaView]


class TenantCreate(Strict):
    """A new tenant. ``quotas`` are limits by name; what is not named has the service's own."""

    tenant_id: str = Field(max_length=64, description="Small letters, digits, - and _.")
    name: Name
    default_currency: str = Field(default="USD", max_length=3)
    requests_per_minute: Count | None = Field(default=None, ge=1, le=1_000_000)
    quotas: dict[str, Count] = Field(default_factory=dict, max_length=16)
    first_key: Name | None = Field(default=None, description="Name of an administrator's key to make with it.")


class TenantChange(Strict):
    """What to change; what is left out stays. A quota of null is the service's own again."""

    name: Name | None = None
    default_currency: str | None = Field(default=None, max_length=3)
    requests_per_minute: Count | None = Field(default=None, ge=1, le=1_000_000)
    quotas: dict[str, Count | None] | None = Field(default=None, max_length=16)
    closed: Flag | None = None


class TenantView(BaseModel):
    """A tenant with all its limits."""

    tenant_id: str
    name: str
    default_currency: str
    requests_per_minute: int | None
    quotas: dict[str, int]
    created_at: str
    closed_at: str | None

    @classmethod
    def of(cls, tenant: Tenant) -> "TenantView":
        return cls(**_tenant_members(tenant))


class NewTenantView(TenantView):
    """A tenant with its first key, told once: the replay of a retry has null in its place."""

    key: str | None

    @classmethod
    def of_new(cls, tenant: Tenant, key: str | None) -> "NewTenantView":
        return cls(**_tenant_members(tenant), key=key)


def _tenant_members(tenant: Tenant) -> dict[str, Any]:
    return {
        "tenant_id": tenant.tenant_id,
        "name": tenant.name,
        "default_currency": tenant.default_currency,
        "requests_per_minute": tenant.requests_per_minute,
        "quotas": {name: limit_in(tenant.quotas, name) for name in QUOTAS},
        "created_at": rfc3339(tenant.created_at),
        "closed_at": _when(tenant.closed_at),
    }


class TenantPage(BaseModel):
    items: list[TenantView]
    next_cursor: str | None


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


class SignedHeadView(BaseModel):
    """The end of the chain at a moment, signed with Ed25519 over its RFC 8785 form; hexadecimal."""

    tenant_id: str
    sequence: int
    entry_hash: str
    signed_at: str
    algorithm: str
    public_key: str
    signature: str


class SignedHeadPage(BaseModel):
    items: list[SignedHeadView]
    next_cursor: str | None


class AuditVerdict(BaseModel):
    """Whether the chain is whole."""

    match: bool
    entries: int
    head_hash: str
    broken_at: int | None
    reason: str | None
