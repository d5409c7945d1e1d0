"""Without ``costs:read`` the way from cost to price is nowhere: figures planted as costs are looked for everywhere."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from app.access.principal import COSTS, SCOPES
from tests.quotes.conftest import job
from tests.security.calls import Names, call
from tests.security.matrix import CLAIM, H100, OPERATIONS, TRAINING
from tests.security.world import Headers, Party, World, expect, issue, new_party, send

MARKUP = "0.1737"
BOOKED, FLOOR = "1.234567", "0.876543"
MARGIN_LIMIT = "0.14891"
OWNERSHIP = {
    "server_price": {"amount": "323457.89", "currency": "USD"},
    "depreciation_months": 47,
    "residual_value": "0.0123457",
    "utilization": "0.8383838",
    "electricity_price": {"amount": "0.0717171", "currency": "USD"},
    "pue": "1.3131313",
    "colocation_price": {"amount": "151.5151", "currency": "USD"},
    "staff_price": {"amount": "31.415926", "currency": "USD"},
    "cost_of_capital": "0.0654321",
    "spares": "0.0373737",
    "network_share": "0.1919191",
    "storage_price": {"amount": "271.828182", "currency": "USD"},
}
PLANTED = {MARKUP, BOOKED, FLOOR, MARGIN_LIMIT, "0.1479"} | {
    str(value["amount"] if isinstance(value, dict) else value)
    for name, value in OWNERSHIP.items()
    if name != "depreciation_months"
}
WORDS = ("markup", "rent_or_own", "ownership.", "server_price", "Depreciation", "depreciation", "capital", '"floor"')
OWNED_SUPPLY = {**H100, "purchase_models": ["owned", "on_demand"], "ownership": OWNERSHIP}


def _amounts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if value.keys() >= {"amount", "currency"}:
            yield str(value["amount"])
        for item in value.values():
            yield from _amounts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _amounts(item)


def _secrets(value: Any) -> Iterator[str]:
    """Every amount on the way from cost to price in a full answer."""
    if isinstance(value, Mapping):
        steps = value.get("waterfall") or []
        if any(isinstance(step, Mapping) and step.get("step") == "markup" for step in steps):
            yield from _amounts({name: value.get(name) for name in ("list_unit_price", "price_evidence")})
            for step in steps:
                yield from _amounts(step["delta"])
                yield from _amounts(step["unit_price"] if step["step"] != "markup" else None)
        if (value.get("price_evidence") or {}).get("rule") == "owned":
            yield from _amounts([value["net"], value["net_unit_price"]])
        yield from _amounts(value.get("rent_or_own") or [])
        for item in value.values():
            yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"[0-9]+(?:\.[0-9]+)?", text))


class Planted:
    """A tenant whose costs are recognisable, and who looks at them with and without the scope."""

    def __init__(self, world: World) -> None:
        self.client = world.client
        self.party: Party = new_party(world.client, "gold")
        self.seller: Headers = self.party.admin
        self.reader: Headers = world.key("gold", SCOPES - {COSTS})
        rule = {"action": "fixed", "amount": BOOKED, "provider": "aws", "basis": "accelerator"}
        floor = {"action": "floor", "amount": FLOOR, "provider": "gcp", "basis": "accelerator"}
        book = {"name": "cost", "currency": "USD", "valid_from": "2026-01-01", "rules": [rule, floor]}
        self.party.ids["book_id"] = expect(201, send(self.client, "POST", "/v1/price-books", self.seller, book))["id"]
        self.terms = {"markup": MARKUP, "price_book": self.party.ids["book_id"], "currency": "USD"}
        policy = {"rules": [{"measure": "margin", "below": MARGIN_LIMIT}]}
        expect(200, send(self.client, "PUT", "/v1/approval-policy", self.seller, policy))
        owned = {"job": TRAINING, "supply": OWNED_SUPPLY}
        self.body = {"items": [{**job()["items"][0], "id": "rented"}, {**owned, "id": "owned"}], "terms": self.terms}
        for name in ("quote_id", "draft_id"):
            made = expect(201, send(self.client, "POST", "/v1/quotes", self.seller, self.body))
            self.party.ids[name] = made["id"]
            self.party.ids[name.replace("quote_id", "revision_id")] = made["current_revision"]["id"]
        offer = issue(self.client, self.party, self.party.ids["quote_id"])
        self.party.ids["sha256"] = offer["content_sha256"]
        path = f"/v1/quotes/{self.party.ids['quote_id']}/revisions/1/share-links"
        self.party.ids["share_token"] = expect(201, send(self.client, "POST", path, self.seller, {}))["token"]
        self.secrets = set(_secrets(offer)) - set(_amounts([offer["totals"], self._prices(offer)]))

    @staticmethod
    def _prices(offer: Mapping[str, Any]) -> list[Any]:
        """What the customer pays may be read: totals, unit costs, and rented lines' prices."""
        found: list[Any] = []
        for item in offer["items"]:
            for option in item["options"]:
                found += [option["unit_costs"], option["cost"]["totals"], option["cost"]["net"]]
                found += [
                    line["net"] for line in option["cost"]["lines"] if line["price_evidence"].get("rule") != "owned"
                ]
        return found

    def leaks(self, text: str) -> list[str]:
        numbers = _numbers(text)
        found = [
            secret
            for secret in sorted(self.secrets | PLANTED)
            if secret in numbers or (secret in PLANTED and secret in text)
        ]
        return found + [word for word in WORDS if word in text]


@pytest.fixture(scope="module")
def planted(world: World) -> Planted:
    return Planted(world)


BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/claims"): {"job": TRAINING, "baseline": H100, "candidate": OWNED_SUPPLY, "claims": [CLAIM]},
    ("POST", "/v1/comparisons"): {
        "job": TRAINING,
        "supplies": [{"name": "a", **H100}, {"name": "b", **OWNED_SUPPLY}],
        "scaling": "none",
    },
}
COSTED = [
    key
    for key, operation in OPERATIONS.items()
    if not operation.public and not operation.shared and key[0] in ("GET", "POST", "PUT", "PATCH")
]
# Answered before anything ends the offer, and after everything that only reads it.
LAST = ("withdraw", "decline", "accept", "cancel", "approve", "reject", "issue", "submit")


def _asked(planted: Planted, key: tuple[str, str]) -> Any:
    if key in BODIES:
        return {**BODIES[key], "terms": planted.terms}
    if key in (("POST", "/v1/estimates"), ("POST", "/v1/estimates/sensitivity"), ("POST", "/v1/quotes")):
        return planted.body
    return OPERATIONS[key].body


def test_the_planted_figures_are_there_for_who_may_see_them(planted: Planted) -> None:
    """Else the test below would find nothing because there is nothing."""
    ids = planted.party.ids
    shown = planted.client.get(f"/v1/quotes/{ids['quote_id']}/revisions/1", headers=planted.seller).text
    seen = set(planted.leaks(shown))
    assert {MARKUP, OWNERSHIP["server_price"]["amount"], "markup", "rent_or_own", "Depreciation"} <= seen
    assert len(planted.secrets) > 10
    books = planted.client.get("/v1/price-books", headers=planted.seller).text
    assert BOOKED in books
    assert FLOOR in books
    assert MARGIN_LIMIT in planted.client.get("/v1/approval-policy", headers=planted.seller).text


def test_no_operation_tells_a_cost(planted: Planted) -> None:
    from dataclasses import replace

    found: dict[str, list[str]] = {}
    statuses: dict[str, int] = {}
    names = Names(planted.party.ids)
    for key in sorted(COSTED, key=lambda key: key[1].rsplit("/", 1)[-1] in LAST):
        operation = replace(OPERATIONS[key], body=_asked(planted, key))
        answer = call(planted.client, key, operation, names, planted.reader)
        statuses[" ".join(key)] = answer.status_code
        leaks = planted.leaks(answer.text)
        if leaks:
            found[" ".join(key)] = leaks
    assert found == {}
    for key in ("POST /v1/estimates", "POST /v1/claims", "POST /v1/comparisons", "POST /v1/estimates/sensitivity"):
        assert statuses[key] == 200, key
    assert statuses["POST /v1/quotes"] == 201
    assert statuses["GET /v1/quotes/{quote_id}/revisions/{n}/explain"] == 200


def test_a_share_link_tells_no_cost(planted: Planted) -> None:
    ids = planted.party.ids
    who = {"Authorization": f"Bearer {ids['share_token']}"}
    path = f"/v1/quotes/{ids['quote_id']}/revisions/1"
    for method, under in (("GET", ""), ("GET", "/explain"), ("POST", "/verify")):
        answer = send(planted.client, method, path + under, who, {} if method == "POST" else None)
        assert answer.status_code == 200, answer.text
        assert planted.leaks(answer.text) == []


def test_what_is_sent_and_recorded_tells_no_cost(planted: Planted) -> None:
    """Neither the audit trail nor the events that webhooks carry, whoever asks: both go further than the scope."""
    assert planted.client.portal is not None
    planted.client.portal.call(planted.client.app.state.event_worker.publish)  # type: ignore[attr-defined]
    for path in ("/v1/audit?limit=200", "/v1/events?limit=200"):
        text = planted.client.get(path, headers=planted.seller).text
        assert "quo_" in text
        assert planted.leaks(text) == []


def test_refusals_tell_no_cost(planted: Planted) -> None:
    """A budget that is not kept, an offer that cannot be submitted: the problem names prices, not costs."""
    path = f"/v1/quotes/{planted.party.ids['draft_id']}/revisions/1"
    tight = {"items": [{**planted.body["items"][1], "constraints": {"budget": {"amount": "1.00", "currency": "USD"}}}]}
    refused = send(planted.client, "POST", "/v1/estimates", planted.reader, {**tight, "terms": planted.terms})
    assert refused.status_code == 422
    for answer in (refused, send(planted.client, "POST", f"{path}/issue", planted.reader, {})):
        assert answer.status_code >= 400
        assert planted.leaks(answer.text) == []


def test_lines_still_add_up_to_the_total(planted: Planted) -> None:
    body = send(planted.client, "POST", "/v1/estimates", planted.reader, planted.body).json()
    full = send(planted.client, "POST", "/v1/estimates", planted.seller, planted.body).json()
    assert body["totals"] == full["totals"]
    from decimal import Decimal

    owned = [o for item in body["items"] for o in item["options"] if o["offer"]["purchase_model"] == "owned"]
    assert owned
    for option in (option for item in body["items"] for option in item["options"]):
        nets = sum(Decimal(line["net"]["amount"]) for line in option["cost"]["lines"])
        assert nets == Decimal(option["cost"]["totals"]["net"]["amount"])
    assert [line["kind"] for line in owned[0]["cost"]["lines"]] == ["ownership"]


@pytest.fixture(scope="module")
def owned_offer(planted: Planted) -> str:
    """An issued quote whose second item is sold on owned hardware."""
    stale = {"rules": [{"measure": "stale_lines", "above": "0"}]}
    expect(200, send(planted.client, "PUT", "/v1/approval-policy", planted.seller, stale))
    drafted = expect(201, send(planted.client, "POST", "/v1/quotes", planted.seller, planted.body))
    options = drafted["current_revision"]["items"][1]["options"]
    owned = next(option["id"] for option in options if option["offer"]["purchase_model"] == "owned")
    body = {**planted.body, "selections": {"owned": owned}}
    quote_id: str = expect(201, send(planted.client, "POST", "/v1/quotes", planted.seller, body))["id"]
    issue(planted.client, planted.party, quote_id)
    return quote_id


@pytest.mark.parametrize("file_format", ["ubl", "focus-csv", "json", "cxml", "oci"])
def test_no_proposal_tells_a_cost_whoever_makes_it(planted: Planted, owned_offer: str, file_format: str) -> None:
    """The seller's own proposal goes to the customer, so it holds what the customer may see."""
    body = {"format": file_format, **({"buyer_cookie": "c"} if file_format == "cxml" else {})}
    for who in (planted.seller, planted.reader):
        made = expect(201, send(planted.client, "POST", f"/v1/quotes/{owned_offer}/revisions/1/proposals", who, body))
        content = planted.client.get(made["links"]["content"], headers=who).text
        assert "Owned hardware, everything included" in content
        assert planted.leaks(content) == []
    assert planted.leaks(planted.client.get("/tmf-api/quoteManagement/v4/quote", headers=planted.seller).text) == []
