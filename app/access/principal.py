"""Who is asking, for which tenant, and what they may do."""

from dataclasses import dataclass

# Shows the way from cost to price: mark-up, margin, floors, what owned hardware costs inside.
COSTS = "costs:read"
SCOPES = frozenset(
    {
        "estimates:run",
        "quotes:read",
        "quotes:write",
        "quotes:issue",
        "quotes:approve",
        "quotes:accept",
        COSTS,
        "catalog:read",
        "catalog:write",
        "pricebooks:write",
        "webhooks:manage",
        "audit:read",
        "admin",
        "tenants:manage",
    }
)
# What reaches past one tenant: the catalog that all share, and the tenants themselves. Only who has them gives them on;
# the first key with them is made at the command line of the service's own machine, and no token of an identity
# provider carries them.
OPERATOR_SCOPES = frozenset({"catalog:write", "tenants:manage"})
TENANT_SCOPES = SCOPES - OPERATOR_SCOPES
LOOPBACK_TENANT = "ten_loopback"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGrant:
    """What a share link opens: one revision of one quote, and nothing else."""

    link_id: str
    quote_id: str
    revision: int

    def covers(self, path: str) -> bool:
        """Tell whether a path is that revision or lies under it."""
        own = f"/v1/quotes/{self.quote_id}/revisions/{self.revision}"
        return path == own or path.startswith(f"{own}/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated caller.

    ``is_machine`` callers must send an Idempotency-Key; ``may_self_approve`` holds on the loopback default only.
    """

    tenant_id: str
    actor: str
    scopes: frozenset[str]
    key_id: str | None = None
    on_behalf_of: str | None = None
    is_machine: bool = True
    may_self_approve: bool = False
    default_currency: str = "USD"
    share: ShareGrant | None = None
    requests_per_minute: int | None = None
    items_per_request: int | None = None

    def has(self, scope: str) -> bool:
        return scope in self.scopes


LOOPBACK_PRINCIPAL = Principal(
    tenant_id=LOOPBACK_TENANT,
    actor="loopback",
    scopes=SCOPES,
    is_machine=False,
    may_self_approve=True,
)
