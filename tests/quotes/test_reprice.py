"""Repricing stays on the supply that was selected, and says which of the causes moved the total by how much."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.estimates import service as estimates
from app.estimates.item_runs import ItemRuns
from app.estimates.runs import Found
from app.quotes.drift import EFFECTS
from tests.quotes.conftest import Desk, Shop

OLD_DAY = "2026-08-03"


def reprice(client: TestClient, quote_id: str, **changes: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/quotes/{quote_id}/reprice", json={"changes": changes})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def selected(revision: dict[str, Any]) -> dict[str, Any]:
    item = revision["items"][0]
    option: dict[str, Any] = next(o for o in item["options"] if o["id"] == item["selected_option_id"])
    return option


def effects(drift: dict[str, Any]) -> dict[str, Decimal]:
    """The parts that are not zero; all of them add up to the change."""
    parts = {name: Decimal(part["amount"]["amount"]) for name, part in drift["effects"].items()}
    assert tuple(parts) == EFFECTS
    change = Decimal(drift["change"]["amount"])
    assert sum(parts.values()) == change
    assert Decimal(drift["after"]["amount"]) - Decimal(drift["before"]["amount"]) == change
    return {name: value for name, value in parts.items() if value}


def slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another engine version, on which everything takes a tenth longer."""
    asked = estimates.run_item

    def longer(hours: Mapping[str, float]) -> dict[str, float]:
        return {name: value * 1.1 for name, value in hours.items()}

    def slowed(run: Found) -> Found:
        return Found(
            light={**run.light, "hours": longer(run.light["hours"])},
            rest=lambda: {**run.rest(), "hours_split": longer(run.rest()["hours_split"])},
        )

    def run_item(*arguments: Any) -> ItemRuns:
        found = asked(*arguments)
        return replace(found, found=tuple(slowed(run) for run in found.found), _by_key={}, _whole={})

    monkeypatch.setattr("app.estimates.service.run_item", run_item)
    monkeypatch.setattr("app.quotes.calculation.ENGINE_VERSION", "9.9.9")


def other_region(shop: Shop, offer_id: str) -> str:
    """The same thing in another region."""
    offers = shop.snapshot().offers
    key = offers[offer_id].key
    return next(
        name
        for name, offer in sorted(offers.items())
        if name != offer_id
        and offer.automatic
        and replace(offer.key, region=key.region) == key
        and shop.snapshot().prices_of(name)
    )


def test_a_reprice_stays_on_its_supply_and_names_what_is_cheaper(desk: Desk, shop: Shop, client: TestClient) -> None:
    quote = desk.create()
    before = selected(quote["current_revision"])
    offer_id = before["offer"]["id"]
    desk.issue(quote["id"])
    rival = other_region(shop, offer_id)
    shop.set_price(rival, "0.9", base=offer_id)
    repriced = reprice(client, quote["id"])
    assert selected(repriced)["offer"] == before["offer"]
    assert selected(repriced)["configuration"]["accelerators"] == before["configuration"]["accelerators"]
    assert not selected(repriced)["recommended"]
    (row,) = repriced["supply"]
    assert (row["status"], row["after"]["offer_id"], row["cheaper"]["offer_id"]) == ("kept", offer_id, rival)
    saving = Decimal(row["cheaper"]["saves"]["amount"])
    assert saving == Decimal(repriced["net_total"]["amount"]) - Decimal(row["cheaper"]["net"]["amount"]) > 0
    assert effects(repriced["changed"]["drift"]) == {}
    path = f"/v1/quotes/{quote['id']}/revisions/2"
    assert client.post(f"{path}/verify").json()["parts"] == {"content": "match", "money": "match", "engine": "match"}
    edited = client.patch(path, json={"terms": {"discount": "0.01"}}, headers={"If-Match": repriced["etag"]}).json()
    assert selected(edited)["offer"] == before["offer"]
    assert edited["supply"][0]["cheaper"]["offer_id"] == rival
    assert client.post(f"{path}/verify").json()["match"] is True


def test_a_supply_that_is_gone_is_said_and_not_replaced(desk: Desk, shop: Shop, client: TestClient) -> None:
    quote = desk.create()
    desk.issue(quote["id"])
    shop.end(selected(quote["current_revision"])["offer"]["id"])
    repriced = reprice(client, quote["id"])
    (row,) = repriced["supply"]
    assert (row["status"], row["after"], row["outcome"]) == ("gone", None, "unknown_price")
    assert "PATCH" in row["next"]
    assert (repriced["items"][0]["selected_option_id"], repriced["totals"]) == (None, None)
    assert repriced["completeness"]["unpriced_lines"][0]["reason"].startswith("no option is selected")
    assert repriced["changed"]["drift"]["available"] is False
    path = f"/v1/quotes/{quote['id']}/revisions/2"
    assert client.post(f"{path}/verify").json()["match"] is True
    assert desk.act(quote["id"], 2, "submit", 422)["slug"] == "incomplete-pricing"
    edited = client.patch(path, json={"title": "still"}, headers={"If-Match": repriced["etag"]}).json()
    assert edited["items"][0]["selected_option_id"] is None
    other = edited["items"][0]["options"][0]["id"]
    chosen = client.patch(path, json={"selections": {"item-1": other}}, headers={"If-Match": edited["etag"]}).json()
    assert (chosen["complete"], selected(chosen)["id"]) == (True, other)
    assert desk.show(quote["id"])["status"] == "issued"


def test_another_selection_is_its_own_cause(desk: Desk, client: TestClient) -> None:
    quote = desk.create()
    desk.issue(quote["id"])
    revision = quote["current_revision"]
    other = next(o for o in revision["items"][0]["options"] if not o["recommended"] and o["cost"]["totals"])
    repriced = reprice(client, quote["id"], selections={"item-1": other["id"]})
    difference = Decimal(other["cost"]["totals"]["net"]["amount"]) - Decimal(revision["net_total"]["amount"])
    assert effects(repriced["changed"]["drift"]) == {"selection": difference}
    assert repriced["supply"][0]["status"] == "chosen"


def test_list_price_alone(desk: Desk, shop: Shop, client: TestClient) -> None:
    quote = desk.create()
    desk.issue(quote["id"])
    shop.set_price(selected(quote["current_revision"])["offer"]["id"], "1.05")
    drift = reprice(client, quote["id"])["changed"]["drift"]
    assert effects(drift).keys() == {"list_price"}
    assert drift["change_percent"] == "5.00"


def test_contract_alone(desk: Desk, client: TestClient) -> None:
    quote_id, _ = desk.issued()
    drift = reprice(client, quote_id, terms={"discount": "0.04"})["changed"]["drift"]
    assert (effects(drift).keys(), drift["change_percent"]) == ({"contract"}, "-4.00")


def test_exchange_rates_alone(desk: Desk, client: TestClient) -> None:
    quote_id = desk.create(terms={"currency": "CNY"}, as_of=OLD_DAY)["id"]
    desk.act(quote_id, 1, "submit")
    assert effects(reprice(client, quote_id)["changed"]["drift"]).keys() == {"fx"}


def test_the_engine_alone(desk: Desk, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    quote_id, _ = desk.issued()
    slower(monkeypatch)
    drift = reprice(client, quote_id)["changed"]["drift"]
    assert effects(drift).keys() == {"engine"}
    assert drift["change_percent"] == "10.00"


def test_the_job_alone(desk: Desk, client: TestClient) -> None:
    quote_id, _ = desk.issued()
    items = desk.show(quote_id)["spec"]["items"]
    items[0]["job"]["tokens"] *= 2
    assert effects(reprice(client, quote_id, items=items)["changed"]["drift"]).keys() == {"spec"}


def test_all_causes_together(desk: Desk, shop: Shop, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    quote = desk.create(terms={"currency": "CNY"}, as_of=OLD_DAY)
    revision = quote["current_revision"]
    desk.act(quote["id"], 1, "submit")
    shop.set_price(selected(revision)["offer"]["id"], "1.05")
    slower(monkeypatch)
    items = revision["spec"]["items"]
    items[0]["job"]["tokens"] *= 2
    other = next(o for o in revision["items"][0]["options"] if not o["recommended"] and o["cost"]["totals"])
    repriced = reprice(client, quote["id"], items=items, terms={"discount": "0.04"}, selections={"item-1": other["id"]})
    drift = repriced["changed"]["drift"]
    parts = effects(drift)
    assert parts.keys() == set(EFFECTS)
    before = Decimal(drift["before"]["amount"])
    assert parts["engine"] / before == pytest.approx(Decimal("0.1"), abs=Decimal("0.0001"))
    assert not any("not separable" in note for note in drift["notes"])
    compared = client.get(f"/v1/quotes/{quote['id']}/compare?from=1&to=2").json()
    assert compared["changes"][0]["drift"] == drift


def test_a_held_draft_that_drops_what_was_kept_still_verifies(desk: Desk, shop: Shop, client: TestClient) -> None:
    """Its stored runs are those of the earlier selection; the engine is asked for just these."""
    supply = {"accelerators": ["h100-sxm5-80", "h200-sxm-141", "b200-sxm-180"], "accelerator_count": 64}
    training = {"kind": "training", "model": {"parameters": 1e10}, "tokens": 1.1e11}
    item = {"job": training, "supply": supply, "constraints": {"max_options": 1}}
    quote = desk.create(items=[item])
    desk.issue(quote["id"])
    shop.set_price(selected(quote["current_revision"])["offer"]["id"], "9")
    repriced = reprice(client, quote["id"])
    kept = selected(repriced)
    assert len(repriced["items"][0]["options"]) > 1
    desk.issue(quote["id"], 2)
    held = client.post(f"/v1/quotes/{quote['id']}/revisions", json={"pricing": "hold"}).json()
    other = next(o["id"] for o in held["items"][0]["options"] if o["id"] != kept["id"])
    path = f"/v1/quotes/{quote['id']}/revisions/3"
    changes = {"selections": {"item-1": other}, "terms": {"discount": "0.02"}}
    chosen = client.patch(path, json=changes, headers={"If-Match": held["etag"]}).json()
    assert selected(chosen)["id"] == other
    assert client.post(f"{path}/verify").json()["parts"] == {"content": "match", "money": "match", "engine": "match"}
