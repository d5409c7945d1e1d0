"""Every operation of the service, with the ids it takes, the scope it needs, and a body that is whole.

An operation that is not named here fails ``test_matrix_is_complete``: whoever adds a route says here which ids of a
tenant it takes and which scope opens it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.quotes.conftest import job

TRAINING = {"kind": "training", "model": {"parameters": 1e10}, "tokens": 1.1e11}
H100 = {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "providers": ["aws"]}
CLAIM = {"metric": "cost", "relation": "ratio", "low": 0, "high": 0.9}
# A word in braces stands for an id of the party whose things are asked for; {own.x} for one of the caller's own.
BOOK_TERMS = {"terms": {"price_book": "{book_id}"}}
NEW_BOOK = {"name": "b", "currency": "USD", "valid_from": "2026-01-01", "rules": []}
ISSUED = "/v1/quotes/{quote_id}/revisions/{n}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path.

    Parameters
    ----------
    scopes : sequence of str
        Any one of them opens it; empty means that every authenticated caller may.
    public : str
        Why nobody has to say who they are; empty for all but a few.
    shared : str
        Why it holds nothing of a tenant (the catalog); empty for what does.
    asks : sequence of mapping
        What to put for the names in the path and the body, one call each; ``{}`` = the names as they stand.
    """

    scopes: Sequence[str] = ()
    public: str = ""
    shared: str = ""
    body: Any = None
    form: Mapping[str, str] | None = None
    query: str = ""
    asks: Sequence[Mapping[str, str]] = field(default=({},))
    headers: Mapping[str, str] = field(default_factory=dict)


def _read(**more: Any) -> Operation:
    return Operation(scopes=("quotes:read",), **more)


def _catalog(**more: Any) -> Operation:
    return Operation(scopes=("catalog:read",), shared="the catalog is the operator's, the same for all", **more)


def _catalog_write(**more: Any) -> Operation:
    return Operation(scopes=("catalog:write",), shared="the catalog is the operator's, the same for all", **more)


def _admin(**more: Any) -> Operation:
    return Operation(scopes=("admin",), **more)


def _operator(**more: Any) -> Operation:
    return Operation(scopes=("tenants:manage",), shared="tenants are the operator's, who has the scope", **more)


def _hooks(**more: Any) -> Operation:
    return Operation(scopes=("webhooks:manage",), **more)


def _estimate(**more: Any) -> Operation:
    return Operation(scopes=("estimates:run",), **more)


def _step(*scopes: str, **more: Any) -> Operation:
    return Operation(scopes=scopes, **{"body": {}, **more})


_HEALTH = "orchestrators ask without a credential; the answer holds no tenant's data"
_DOCUMENT = "the API describes itself to whoever wants to write a client"
_ETAG_OF_DRAFT = {"If-Match": "*"}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/healthz"): Operation(public=_HEALTH),
    ("GET", "/readyz"): Operation(public=_HEALTH),
    ("GET", "/version"): Operation(public=_HEALTH),
    ("GET", "/metrics"): Operation(
        public="counts by route template; answered on loopback or where the operator says so"
    ),
    ("GET", "/openapi.json"): Operation(public=_DOCUMENT),
    ("GET", "/docs"): Operation(public=_DOCUMENT),
    ("GET", "/docs.css"): Operation(public=_DOCUMENT),
    ("GET", "/v1/me"): Operation(),
    ("GET", "/v1/usage"): _admin(),
    ("POST", "/v1/tenants"): _operator(body={"tenant_id": "made", "name": "Made", "first_key": "first"}),
    ("GET", "/v1/tenants"): _operator(),
    ("GET", "/v1/tenants/{tenant_id}"): _operator(),
    ("PATCH", "/v1/tenants/{tenant_id}"): _operator(body={"name": "x"}),
    ("POST", "/v1/api-keys"): _admin(body={"name": "k", "scopes": ["admin"]}),
    ("GET", "/v1/api-keys"): _admin(),
    ("GET", "/v1/api-keys/{key_id}"): _admin(),
    ("DELETE", "/v1/api-keys/{key_id}"): _admin(),
    ("POST", "/v1/api-keys/{key_id}/rotate"): _admin(body={}),
    ("GET", "/v1/audit"): Operation(scopes=("audit:read",)),
    ("GET", "/v1/audit/head"): Operation(scopes=("audit:read",)),
    ("GET", "/v1/audit/heads"): Operation(scopes=("audit:read",)),
    ("GET", "/v1/audit/verify"): Operation(scopes=("audit:read",)),
    ("GET", "/v1/events"): _read(),
    ("POST", "/v1/webhooks"): _hooks(body={"url": "https://hooks.example/y"}),
    ("GET", "/v1/webhooks"): _hooks(),
    ("GET", "/v1/webhooks/{webhook_id}"): _hooks(),
    ("PATCH", "/v1/webhooks/{webhook_id}"): _hooks(body={"description": "x"}, headers=_ETAG_OF_DRAFT),
    ("DELETE", "/v1/webhooks/{webhook_id}"): _hooks(),
    ("POST", "/v1/webhooks/{webhook_id}/rotate-secret"): _hooks(body={}),
    ("POST", "/v1/webhooks/{webhook_id}/test"): _hooks(),
    ("GET", "/v1/webhooks/{webhook_id}/deliveries"): _hooks(),
    ("POST", "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver"): _hooks(
        asks=({}, {"webhook_id": "{own.webhook_id}"})
    ),
    ("GET", "/v1/catalog/accelerators"): _catalog(),
    ("GET", "/v1/catalog/accelerators/{accelerator_id}"): _catalog(),
    ("GET", "/v1/catalog/facts/{kind}"): _catalog(),
    ("GET", "/v1/catalog/fx"): _catalog(query="base=USD&quote=EUR"),
    ("GET", "/v1/catalog/models"): _catalog(),
    ("GET", "/v1/catalog/models/{model_id}"): _catalog(),
    ("GET", "/v1/catalog/prices/{price_id}"): _catalog(),
    ("GET", "/v1/catalog/token-prices"): _catalog(),
    ("GET", "/v1/catalog/nodes"): _catalog(),
    ("GET", "/v1/catalog/offers"): _catalog(),
    ("GET", "/v1/catalog/offers/{offer_id}"): _catalog(),
    ("GET", "/v1/catalog/offers/{offer_id}/prices"): _catalog(),
    ("GET", "/v1/catalog/quarantine"): _catalog(),
    ("GET", "/v1/catalog/regions"): _catalog(),
    ("GET", "/v1/catalog/revisions"): _catalog(),
    ("GET", "/v1/catalog/revisions/{older}/diff/{newer}"): _catalog(),
    ("GET", "/v1/catalog/revisions/{revision}"): _catalog(),
    ("GET", "/v1/catalog/imports"): _catalog_write(),
    ("POST", "/v1/catalog/imports"): _catalog_write(form={"format": "csv"}),
    ("POST", "/v1/catalog/offers/{offer_id}/availability"): _catalog_write(body={}),
    ("POST", "/v1/catalog/quarantine/{quarantine_id}/accept"): _catalog_write(body={"reason": "seen"}),
    ("POST", "/v1/catalog/quarantine/{quarantine_id}/reject"): _catalog_write(body={"reason": "seen"}),
    ("GET", "/v1/price-books"): Operation(scopes=("catalog:read",)),
    ("POST", "/v1/price-books"): Operation(scopes=("pricebooks:write",), body=NEW_BOOK),
    ("POST", "/v1/price-books/imports"): Operation(scopes=("pricebooks:write",), form={"name": "focus"}),
    ("GET", "/v1/price-books/{book_id}"): Operation(scopes=("catalog:read",)),
    ("PUT", "/v1/price-books/{book_id}"): Operation(scopes=("pricebooks:write",), body=NEW_BOOK),
    ("DELETE", "/v1/price-books/{book_id}"): Operation(scopes=("pricebooks:write",)),
    ("POST", "/v1/estimates"): _estimate(body=job(**BOOK_TERMS)),
    ("POST", "/v1/estimates/sensitivity"): _estimate(body=job(**BOOK_TERMS)),
    ("POST", "/v1/claims"): _estimate(
        body={"job": TRAINING, "baseline": H100, "candidate": H100, "claims": [CLAIM], **BOOK_TERMS}
    ),
    ("POST", "/v1/comparisons"): _estimate(
        body={"job": TRAINING, "supplies": [{"name": "a", "supply": H100}], **BOOK_TERMS}
    ),
    ("POST", "/v1/quotes"): Operation(scopes=("quotes:write",), body=job(**BOOK_TERMS)),
    ("GET", "/v1/quotes"): _read(),
    ("GET", "/v1/quotes/affected"): _read(),
    ("GET", "/v1/quotes/{quote_id}"): _read(),
    ("PATCH", "/v1/quotes/{quote_id}"): Operation(
        scopes=("quotes:write",), body={"title": "x"}, headers=_ETAG_OF_DRAFT
    ),
    ("GET", "/v1/quotes/{quote_id}/audit"): Operation(scopes=("audit:read",)),
    ("GET", "/v1/quotes/{quote_id}/compare"): _read(query="from=1&to=1"),
    ("POST", "/v1/quotes/{quote_id}/reprice"): Operation(
        scopes=("quotes:write",),
        body={"from": "{revision_id}"},
        asks=({}, {"quote_id": "{own.quote_id}"}),
    ),
    ("GET", "/v1/quotes/{quote_id}/revisions"): _read(),
    ("POST", "/v1/quotes/{quote_id}/revisions"): Operation(
        scopes=("quotes:write",),
        body={"from": "{revision_id}", "pricing": "hold"},
        asks=({}, {"quote_id": "{own.quote_id}"}),
    ),
    ("GET", ISSUED): _read(),
    ("PATCH", ISSUED): Operation(
        scopes=("quotes:write",),
        body=BOOK_TERMS,
        headers=_ETAG_OF_DRAFT,
        asks=({"quote_id": "{draft_id}"}, {"quote_id": "{own.draft_id}"}),
    ),
    ("POST", f"{ISSUED}/verify"): _read(body={}),
    ("GET", f"{ISSUED}/explain"): _read(),
    ("POST", f"{ISSUED}/submit"): _step("quotes:write", asks=({"quote_id": "{draft_id}"},)),
    ("POST", f"{ISSUED}/approve"): _step("quotes:approve"),
    ("POST", f"{ISSUED}/reject"): _step("quotes:approve", body={"reason": "no"}),
    ("POST", f"{ISSUED}/issue"): _step("quotes:issue"),
    ("POST", f"{ISSUED}/accept"): _step("quotes:accept", "quotes:issue", body={"content_sha256": "{sha256}"}),
    ("POST", f"{ISSUED}/decline"): _step("quotes:accept"),
    ("POST", f"{ISSUED}/withdraw"): _step("quotes:issue", body={"reason": "no"}),
    ("POST", f"{ISSUED}/cancel"): _step("quotes:write", "quotes:approve"),
    ("POST", f"{ISSUED}/share-links"): Operation(scopes=("quotes:issue",), body={}),
    ("DELETE", "/v1/share-links/{link_id}"): Operation(scopes=("quotes:issue",)),
    ("GET", "/v1/jobs/{job_id}"): _read(),
    ("DELETE", "/v1/jobs/{job_id}"): Operation(scopes=("quotes:write",)),
    ("POST", f"{ISSUED}/proposals"): _read(body={"format": "json"}),
    ("GET", "/v1/proposals/{proposal_id}"): _read(),
    ("GET", "/v1/proposals/{proposal_id}/content"): _read(),
    ("GET", "/tmf-api/quoteManagement/v4/quote"): _read(),
    ("GET", "/tmf-api/quoteManagement/v4/quote/{quote_id}"): _read(),
    ("POST", "/v1/compare"): _read(body={"revisions": ["{revision_id}", "{revision_id}"]}),
    ("GET", "/v1/approval-policy"): _read(),
    ("PUT", "/v1/approval-policy"): _admin(body={"rules": []}),
}


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """Put names into every text of a body."""
    if isinstance(value, str):
        return value.format_map(names) if "{" in value else value
    if isinstance(value, Mapping):
        return {key: filled(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    return value
