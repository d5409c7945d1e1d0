"""Whoever moves prices is in the audit chain: what was changed, from which content to which, and why."""

from itertools import pairwise

from tests.catalog.test_import_routes import BOOK, send
from tests.catalog.test_imports import FILES, HEAD, P5


def entries(api) -> list[dict]:
    assert api.get("/v1/audit/verify").json()["match"] is True
    return api.get("/v1/audit").json()["items"]


def test_versions_of_a_price_book_form_a_chain_of_hashes(api):
    book = api.post("/v1/price-books", json=BOOK).json()["id"]
    assert api.put(f"/v1/price-books/{book}", json={**BOOK, "priority": 9}).status_code == 200
    assert api.delete(f"/v1/price-books/{book}").status_code == 200
    made, replaced, withdrawn = entries(api)
    assert [entry["action"] for entry in (made, replaced, withdrawn)] == [
        "price-book.create",
        "price-book.replace",
        "price-book.withdraw",
    ]
    assert {entry["subject"] for entry in (made, replaced, withdrawn)} == {book}
    assert made["before_sha256"] is None
    assert (replaced["before_sha256"], withdrawn["before_sha256"]) == (made["after_sha256"], replaced["after_sha256"])
    assert len({made["after_sha256"], replaced["after_sha256"], withdrawn["after_sha256"]}) == 3
    assert "0.15" not in str(made)  # what the seller pays is hashed, not shown


def test_a_refused_price_book_leaves_no_entry(api):
    api.post("/v1/price-books", json=BOOK)
    assert api.post("/v1/price-books", json=BOOK).status_code == 409
    assert len(entries(api)) == 1


def test_a_price_book_of_a_file_is_recorded(api):
    content = (FILES / "focus_made_up.csv").read_bytes()
    answer = api.post("/v1/price-books/imports", files={"file": ("f.csv", content)}, data={"name": "acme"})
    assert answer.status_code == 201, answer.text
    assert [entry["action"] for entry in entries(api)] == ["price-book.create"]


def test_an_import_a_decision_and_an_availability_are_recorded_with_the_catalog_before_and_after(api):
    hashes = [api.get("/v1/catalog/revisions").json()["items"][0]["content_sha256"]]

    def now() -> str:
        return api.get("/v1/catalog/revisions").json()["items"][0]["content_sha256"]

    text = f"{HEAD}\n{P5.format('55.04', '2026-11-01')}\n"
    send(api, text)
    assert entries(api) == []  # a dry run changes nothing
    send(api, text, dry_run=False)
    hashes.append(now())
    send(api, f"{HEAD}\n{P5.format('9000.00', '2026-11-20')}\n", dry_run=False)
    hashes.append(now())
    (held, *_) = api.get("/v1/catalog/quarantine", params={"provider": "aws"}).json()["items"]
    decided = api.post(f"/v1/catalog/quarantine/{held['id']}/reject", json={"reason": "a slip of the supplier"})
    assert decided.status_code == 200, decided.text
    hashes.append(now())
    wanted = {"provider": "coreweave", "instance_type": "gb200-4x"}
    (offer,) = api.get("/v1/catalog/offers", params=wanted).json()["items"]
    seen = {"observed_on": "2026-11-20", "status": "waitlist", "lead_time_days": 45, "source": "account manager"}
    assert api.post(f"/v1/catalog/offers/{offer['id']}/availability", json=seen).status_code == 200
    hashes.append(now())
    first, second, decision, supply = entries(api)
    assert [entry["action"] for entry in (first, second, decision, supply)] == [
        "catalog.import",
        "catalog.import",
        "catalog.quarantine.rejected",
        "catalog.availability",
    ]
    assert first["details"]["provider"] == "aws"
    assert (decision["subject"], decision["reason"]) == (held["id"], "a slip of the supplier")
    assert supply["subject"] == offer["id"]
    chain = [(entry["before_sha256"], entry["after_sha256"]) for entry in (first, second, decision, supply)]
    assert chain == list(pairwise(hashes))
