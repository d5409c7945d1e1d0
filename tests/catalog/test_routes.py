"""The catalog over HTTP: filters, outcomes, paging, tags, and clear refusals."""

import pytest

P5 = {
    "provider": "aws",
    "instance_type": "p5.48xlarge",
    "region": "us-east-1",
    "purchase_model": "on_demand",
}


def test_every_accelerator_is_on_the_first_page(api):
    body = api.get("/v1/catalog/accelerators").json()
    assert len(body["items"]) == 46
    assert body["next_cursor"] is None
    b200 = next(item for item in body["items"] if item["id"] == "b200-sxm-180")
    assert b200["memory_mib_reported"] == 183359
    assert b200["sources"]
    assert any("2.27x" in check["verdict"] for check in b200["marketing_checks"])


def test_a_model_says_what_kind_of_layers_it_has(api):
    items = api.get("/v1/catalog/models", params={"limit": 200}).json()["items"]
    deepseek = next(item for item in items if item["id"] == "deepseek-v3")
    kinds = {(group["mixer"]["type"], group["feed_forward"]["type"]) for group in deepseek["transformer"]["groups"]}
    assert ("LatentAttention", "MoeMlp") in kinds
    assert "type" not in deepseek


def test_an_unknown_accelerator_names_the_nearest(api):
    answer = api.get("/v1/catalog/accelerators/h100-sxm-80")
    assert answer.status_code == 404
    assert "h100-sxm5-80" in answer.json()["nearest"]


def test_one_accelerator_shows_its_software_minima(api):
    software = api.get("/v1/catalog/accelerators/h100-sxm5-80").json()["software_minima"]
    assert {row["component"]: row["version"] for row in software} == {
        "cuda": "11.8",
        "driver": "520.61.05",
        "cudnn": "8.6.0",
        "tensorrt": "8.5",
    }
    assert all(row["source"] for row in software)
    assert api.get("/v1/catalog/accelerators/b300-sxm-288").json()["software_minima"] == []


def test_an_offer_answers_with_its_price_of_the_day(api):
    body = api.get("/v1/catalog/offers", params={**P5, "as_of": "2025-07-01"}).json()
    assert body["as_of"] == "2025-07-01"
    (offer,) = body["items"]
    assert offer["price"]["unit_price"] == {"amount": "55.04", "currency": "USD"}
    assert offer["price"]["accelerator_price"] == {"amount": "6.88", "currency": "USD"}
    assert offer["price"]["winner"]["source"]["method"] == "api"
    assert offer["price"]["rule"] == "list_api"
    assert {lost["reason"] for lost in offer["price"]["lost"]} == {"ended_before", "starts_later"}


def test_an_observation_gap_shows_both_neighbours_and_no_price(api):
    (offer,) = api.get("/v1/catalog/offers", params={**P5, "as_of": "2025-05-15"}).json()["items"]
    price = offer["price"]
    assert price["outcome"] == "observation_gap"
    assert price["unit_price"] is None
    assert (price["before"]["amount"], price["after"]["amount"]) == ("98.32", "55.04")


def test_the_default_day_is_today_and_a_late_price_is_flagged(api):
    (offer,) = api.get("/v1/catalog/offers", params=P5).json()["items"]
    assert offer["price"]["as_of"] == "2026-11-30"
    assert (offer["price"]["stale"], offer["price"]["age_days"], offer["price"]["max_age_days"]) == (True, 133, 30)


def test_not_offered_there_is_not_the_same_as_price_unknown(api):
    body = api.get("/v1/catalog/offers", params={**P5, "region": "eu-west-9"}).json()
    assert body["items"] == []
    assert body["missing"]["outcome"] == "not_offered"
    assert "us-east-1" in body["missing"]["message"]
    spot = api.get("/v1/catalog/offers", params={**P5, "purchase_model": "spot"}).json()
    assert spot["missing"]["outcome"] == "unknown_price"


def test_an_old_provider_name_and_the_short_purchase_model_work(api):
    assert api.get("/v1/catalog/offers", params={"provider": "datacrunch"}).json()["items"][0]["provider"] == "verda"
    items = api.get("/v1/catalog/offers", params={"provider": "qubrid", "purchase_model": "reserved_1y"}).json()[
        "items"
    ]
    assert {item["term_months"] for item in items} == {12}


def test_pages_cover_every_offer_once(api):
    seen, cursor = [], None
    while True:
        params = {"provider": "azure", "limit": 200, **({"cursor": cursor} if cursor else {})}
        body = api.get("/v1/catalog/offers", params=params).json()
        seen.extend(item["id"] for item in body["items"])
        cursor = body["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert len(seen) == 367


def test_a_known_tag_answers_not_modified_until_day_or_filter_differ(api):
    first = api.get("/v1/catalog/offers", params=P5)
    tag = {"If-None-Match": first.headers["ETag"]}
    assert api.get("/v1/catalog/offers", params=P5, headers=tag).status_code == 304
    assert api.get("/v1/catalog/offers", params={**P5, "as_of": "2025-07-01"}, headers=tag).status_code == 200


@pytest.mark.parametrize(
    ("path", "params", "status", "slug"),
    [
        ("offers", {"as_of": "2025-13-01"}, 422, "validation-failed"),
        ("offers", {"as_of": "yesterday"}, 422, "validation-failed"),
        ("offers", {"as_of": "0001-01-01"}, 422, "as-of-out-of-range"),
        ("offers", {"as_of": "2090-01-01"}, 422, "as-of-out-of-range"),
        ("offers", {"purchase_model": "leased"}, 422, "validation-failed"),
        ("offers", {"catalog_revision": "99"}, 422, "unknown-catalog-revision"),
        ("offers", {"catalog_revision": "cat_nothing"}, 422, "unknown-catalog-revision"),
        ("offers", {"provder": "aws"}, 400, "unknown-parameter"),
        ("offers/ofr_nothing", {}, 404, "not-found"),
        ("facts/horoscopes", {}, 404, "not-found"),
        ("fx", {"base": "USD", "quote": "KWD"}, 422, "fx-unavailable"),
        ("revisions/7", {}, 404, "not-found"),
        ("revisions/99999999999999999999", {}, 404, "not-found"),
        ("revisions/1/diff/3000000000", {}, 404, "not-found"),
        ("offers", {"catalog_revision": "3000000000"}, 422, "unknown-catalog-revision"),
        ("offers", {"accelerator": "h100-sxm5-8"}, 422, "validation-failed"),
        ("nodes", {"accelerator": "nope"}, 422, "validation-failed"),
        ("nodes", {"provider": "nope"}, 422, "validation-failed"),
        ("regions", {"provider": "nope"}, 422, "validation-failed"),
        ("quarantine", {"provider": "nope"}, 422, "validation-failed"),
        ("quarantine", {"status": "nope"}, 422, "validation-failed"),
        ("accelerators", {"vendor": "nope"}, 422, "validation-failed"),
        ("accelerators", {"architecture": "nope"}, 422, "validation-failed"),
        ("offers", {"provider": "nope"}, 422, "validation-failed"),
        ("offers", {"region": "nope"}, 422, "validation-failed"),
        ("offers", {"purchase_model": "nope"}, 422, "validation-failed"),
        ("offers", {"limit": ["1", "2"]}, 400, "unknown-parameter"),
    ],
)
def test_a_wrong_question_gets_a_clear_refusal(api, path, params, status, slug):
    answer = api.get(f"/v1/catalog/{path}", params=params)
    assert (answer.status_code, answer.json()["slug"]) == (status, slug)
    if status in (400, 422):
        assert answer.json()["errors"][0]["parameter"] in params


@pytest.mark.parametrize(
    ("asked", "parameter", "nearest"),
    [
        ({"accelerator": "h100-sxm5-8"}, "accelerator", "h100-sxm5-80"),
        ({"provider": "azur"}, "provider", "azure"),
        ({"provider": "DataCrunh"}, "provider", "datacrunch"),
        ({"region": "us-east1-"}, "region", "us-east-1"),
        ({"region": "us-east-11", "provider": "aws"}, "region", "us-east-1"),
        ({"purchase_model": "on-demand"}, "purchase_model", "on_demand"),
    ],
)
def test_an_unknown_filter_value_comes_with_the_nearest(api, asked, parameter, nearest):
    answer = api.get("/v1/catalog/offers", params=asked).json()
    assert answer["errors"][0]["parameter"] == parameter
    assert nearest in answer["nearest"][parameter]
    assert nearest in answer["detail"]


def test_filters_are_read_in_any_case(api):
    params = {"vendor": "NVIDIA", "architecture": "HOPPER"}
    items = api.get("/v1/catalog/accelerators", params=params).json()["items"]
    assert {item["vendor"].lower() for item in items} == {"nvidia"}


@pytest.mark.parametrize(
    ("path", "count"),
    [("nodes", 37), ("facts/storage", 20), ("facts/taxes", 19), ("facts/tariffs", 33), ("facts/providers", 33)],
)
def test_lists_hold_what_ships(api, path, count):
    items = api.get(f"/v1/catalog/{path}", params={"limit": 200}).json()["items"]
    assert len(items) == count


def test_regions_are_listed_with_what_they_sell(api):
    items = api.get("/v1/catalog/regions", params={"provider": "aws", "limit": 200}).json()["items"]
    east = next(item for item in items if item["region"] == "us-east-1")
    assert "h100-sxm5-80" in east["accelerators"]
    assert "reserved" in east["purchase_models"]


def test_the_history_of_an_offer_lists_every_step(api):
    (offer,) = api.get("/v1/catalog/offers", params=P5).json()["items"]
    history = api.get(f"/v1/catalog/offers/{offer['id']}/prices").json()
    assert [row["amount"] for row in history["prices"]] == ["98.32", "55.04", "55.04"]


def test_a_saturday_shows_the_date_of_the_rate(api):
    body = api.get("/v1/catalog/fx", params={"base": "USD", "quote": "CNY", "as_of": "2026-10-31"}).json()
    assert (body["rate"], body["rate_on"], body["requested_on"]) == ("6.65288220551378", "2026-10-30", "2026-10-31")


def test_an_empty_catalog_says_that_it_is_not_ready(client):
    answer = client.get("/v1/catalog/offers")
    assert (answer.status_code, answer.json()["slug"]) == (503, "maintenance")
