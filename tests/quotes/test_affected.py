"""Which open quotes a catalog revision would move, and that nothing is kept of the question."""

from decimal import Decimal
from typing import Any

from fastapi.testclient import TestClient

from tests.quotes.conftest import Caller, Desk, Shop
from tests.quotes.test_create import rows
from tests.quotes.test_reprice import effects, selected

PATH = "/v1/quotes/affected"


def ask(client: TestClient, **parameters: Any) -> dict[str, Any]:
    answer = client.get(PATH, params=parameters)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_row_20_open_quotes_show_what_they_would_be_today(desk: Desk, shop: Shop, client: TestClient) -> None:
    """erpnext#4840: a wish to see today's figure beside the locked one."""
    draft = desk.create(terms={"currency": "CNY"})
    issued, _ = desk.issued()
    accepted, revision = desk.issued()
    desk.accept(revision)
    assert ask(client)["items"] == []
    first = ask(client)["catalog_revision"]
    second = shop.set_price(selected(draft["current_revision"])["offer"]["id"], "1.05")
    before = rows(client)
    found = ask(client)
    assert found["catalog_revision"] == second
    assert [(row["quote_id"], row["status"]) for row in found["items"]] == [(issued, "issued"), (draft["id"], "draft")]
    for row in found["items"]:
        assert (row["moved"], row["catalog_revision"], row["drift"]["change_percent"]) == (True, first, "5.00")
        assert effects(row["drift"]).keys() == {"list_price"}
        assert row["supply"][0]["status"] == "kept"
        assert client.get(row["catalog_diff"]).json()["prices"]
    assert rows(client) == before
    assert desk.show(accepted)["status"] == "accepted"
    repriced = client.post(f"/v1/quotes/{issued}/reprice").json()
    assert repriced["changed"]["drift"] == found["items"][0]["drift"]


def test_it_is_paged_and_narrowed_to_one_pinned_revision(desk: Desk, shop: Shop, client: TestClient) -> None:
    ids = [desk.create()["id"] for _ in range(3)]
    first = ask(client)["catalog_revision"]
    offer_id = selected(desk.show(ids[0]))["offer"]["id"]
    second = shop.set_price(offer_id, "1.05")
    newer = desk.create()["id"]
    shop.set_price(offer_id, "1.02")
    page = ask(client, limit=2, pinned_to=first)
    assert [row["quote_id"] for row in page["items"]] == ids[:0:-1]
    rest = ask(client, limit=2, pinned_to=first, cursor=page["next_cursor"])
    assert ([row["quote_id"] for row in rest["items"]], rest["next_cursor"]) == (ids[:1], None)
    assert [row["quote_id"] for row in ask(client, pinned_to=second)["items"]] == [newer]
    back = ask(client, catalog_revision=first, pinned_to=second)["items"]
    assert Decimal(back[0]["drift"]["change"]["amount"]) < 0
    assert client.get(PATH, params={"limit": 21}).status_code == 422
    for name in ("catalog_revision", "pinned_to"):
        assert client.get(PATH, params={name: "cat_nothing"}).json()["slug"] == "unknown-catalog-revision"


def test_what_cannot_be_repriced_says_why(desk: Desk, shop: Shop, client: TestClient, as_person: Caller) -> None:
    quote = desk.create()
    shop.end(selected(quote["current_revision"])["offer"]["id"])
    (row,) = ask(client)["items"]
    assert (row["moved"], row["drift"]["available"], row["supply"][0]["status"]) == (None, False, "gone")
    as_person("clerk", "quotes:read")
    assert "effects" not in ask(client)["items"][0]["drift"]
    as_person("eve", "quotes:read", tenant="ten_other")
    assert ask(client)["items"] == []
