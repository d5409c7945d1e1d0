"""Live feeds: time-outs, retries, bounds, and the same import as any file. No test touches the network."""

import json

import httpx
import pytest

from app.catalog.commands import import_feed, import_path, seed_catalog
from app.catalog.feeds import FEEDS, fetch_feed
from app.foundation.problems import Problem
from tests.catalog.test_imports import FILES


def client(handler) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(handler))


def test_every_feed_is_a_fixed_https_address():
    assert all(feed.url.startswith("https://") for feed in FEEDS.values())


def test_a_feed_that_fails_is_tried_three_times_and_then_given_up():
    calls, pauses = [], []

    def broken(request):
        calls.append(request.url)
        return httpx.Response(503)

    with pytest.raises(Problem) as refused:
        fetch_feed(client(broken), FEEDS["skypilot-nebius"], sleep=pauses.append)
    assert (refused.value.slug, len(calls), pauses) == ("price-source-unavailable", 3, [2.0, 4.0])


@pytest.mark.parametrize("status", [302, 404])
def test_a_redirect_or_a_refusal_is_not_tried_again(status):
    calls = []

    def moved(request):
        calls.append(request.url)
        return httpx.Response(status, headers={"Location": "https://elsewhere.example/"})

    with pytest.raises(Problem):
        fetch_feed(client(moved), FEEDS["skypilot-nebius"], sleep=lambda _: None)
    assert len(calls) == 1


def test_azure_pages_become_one_answer_and_stay_on_the_api():
    items = json.loads((FILES / "azure_retail.json").read_text())["Items"]
    second = "https://prices.azure.com/api/retail/prices?page=2"
    pages = {True: {"Items": items[:2], "NextPageLink": second}, False: {"Items": items[2:], "NextPageLink": None}}

    def answer(request):
        return httpx.Response(200, json=pages[str(request.url) != second])

    content = fetch_feed(client(answer), FEEDS["azure"])
    assert len(json.loads(content)["Items"]) == len(items)

    def astray(_):
        return httpx.Response(200, json={"Items": [], "NextPageLink": "https://evil.example/"})

    with pytest.raises(Problem, match="away from the API"):
        fetch_feed(client(astray), FEEDS["azure"])


def test_a_fetched_feed_is_imported_like_a_file(seeded, clock):
    content = (FILES / "skypilot_nebius.csv").read_bytes()
    report = import_feed(
        seeded,
        "skypilot-nebius",
        client=client(lambda _: httpx.Response(200, content=content)),
        dry_run=False,
        clock=clock,
    )
    assert [row.status for row in report.providers] == ["committed"]
    assert report.quality == ()


def test_a_file_is_imported_from_the_command_line(seeded, clock):
    assert seed_catalog(seeded, clock) is None
    dry = import_path(seeded, FILES / "own_prices.csv", file_format="csv", clock=clock)
    assert {row.status for row in dry.providers} == {"dry_run"}
    wet = import_path(seeded, FILES / "own_prices.csv", file_format="csv", dry_run=False, clock=clock)
    assert {row.status for row in wet.providers} == {"committed"}
