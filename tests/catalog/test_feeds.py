"""Live feeds: off by default, time-outs, retries, bounds, and the import of any file. No test leaves this machine."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx
import pytest

from app.catalog import feeds, gpuhunt_library, service
from app.catalog.commands import import_feed, import_path, seed_catalog
from app.catalog.feeds import FEEDS, Feed, fetch_feed
from app.catalog.gpuhunt_library import LibraryError, query_provider
from app.foundation.problems import Problem
from tests.catalog.test_imports import FILES, gpuhunt_zip

Answers = dict[str, bytes | int]


@pytest.fixture
def serve() -> Iterator[Callable[[Answers], str]]:
    """A server on this machine: a body or a status for each path; other paths are 404."""
    running = []

    def start(answers: Answers) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = answers.get(urlsplit(self.path).path, 404)
                body = found if isinstance(found, bytes) else b""
                self.send_response(200 if isinstance(found, bytes) else found)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def client(handler) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(handler))


def published(base: str) -> Feed:
    return Feed(name="gpuhunt-nebius", url=f"{base}/nebius/version", file_format="gpuhunt", provider="nebius")


NEBIUS = (
    b"instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,"
    b"provider_data\n"
    b"gpu-b200-sxm 8gpu-160vcpu-1792gb,us-central1,{},160,1792.0,8,B200,180.0,False,,nvidia,,x86,{{}}\n"
)


def nebius(price: str) -> bytes:
    return gpuhunt_zip(nebius=NEBIUS.replace(b"{}", price.encode(), 1).replace(b"{{}}", b"{}"))


def test_every_feed_is_a_fixed_https_address_or_the_library():
    assert all(feed.url.startswith("https://") != feed.by_library for feed in FEEDS.values())
    assert {feed.provider for feed in FEEDS.values() if feed.by_library} == {"lium", "vastai", "vultr"}


def test_nothing_is_fetched_unless_the_operator_allowed_it(seeded, clock, settings):
    assert not settings.live_feeds

    def touched(_):
        raise AssertionError("the network was touched")

    with pytest.raises(Problem, match="live feeds are off"):
        import_feed(
            seeded, FEEDS["skypilot-nebius"], client=client(touched), live_feeds=settings.live_feeds, clock=clock
        )


def test_a_feed_that_fails_is_tried_three_times_and_then_given_up():
    calls, pauses = [], []

    def broken(request):
        calls.append(request.url)
        return httpx.Response(503)

    with pytest.raises(Problem) as refused:
        fetch_feed(client(broken), FEEDS["skypilot-nebius"], sleep=pauses.append)
    assert (refused.value.slug, len(calls), pauses) == ("price-source-unavailable", 3, [2.0, 4.0])


def test_a_feed_that_does_not_answer_in_time_is_given_up(monkeypatch):
    """A listening socket that nobody serves: connected, never answered."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent, httpx.Client() as http:
        monkeypatch.setattr(feeds, "TIMEOUT", httpx.Timeout(0.05))
        feed = Feed(name="slow", url=f"http://127.0.0.1:{silent.getsockname()[1]}/x", file_format="skypilot")
        with pytest.raises(Problem, match="ReadTimeout"):
            fetch_feed(http, feed, sleep=lambda _: None)


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
        FEEDS["skypilot-nebius"],
        client=client(lambda _: httpx.Response(200, content=content)),
        live_feeds=True,
        dry_run=False,
        clock=clock,
    )
    assert [row.status for row in report.providers] == ["committed"]
    assert report.quality == ()


def test_a_published_gpuhunt_catalog_is_fetched_by_its_version(seeded, clock, serve):
    base = serve({"/nebius/version": b"20261130-7\n", "/nebius/20261130-7/catalog.zip": nebius("44.0")})
    with httpx.Client() as http:
        report = import_feed(seeded, published(base), client=http, live_feeds=True, dry_run=False, clock=clock)
    (row,) = report.providers
    assert (row.provider, row.status, row.counts["new"]) == ("nebius", "committed", 1)


@pytest.mark.parametrize(
    "broken",
    [
        {"/nebius/version": 503},
        {"/nebius/version": b"<html>sign in</html>"},
        {"/nebius/version": b"20261201-1"},
        {"/nebius/version": b"20261201-1", "/nebius/20261201-1/catalog.zip": nebius("45.0")[:60]},
        {"/nebius/version": b"20261201-1", "/nebius/20261201-1/catalog.zip": gpuhunt_zip(nebius=b"a,b\n1,2\n")},
    ],
    ids=["down", "not a version", "no zip", "cut off", "other columns"],
)
def test_a_broken_provider_keeps_its_last_good_prices(seeded, clock, serve, monkeypatch, broken):
    monkeypatch.setattr(feeds, "BACKOFF_SECONDS", 0.0)
    good = serve({"/nebius/version": b"20261130-7\n", "/nebius/20261130-7/catalog.zip": nebius("44.0")})
    with httpx.Client() as http:
        import_feed(seeded, published(good), client=http, live_feeds=True, dry_run=False, clock=clock)
        before = seeded.read_now(service.current_snapshot)
        # Refused as a whole, or the provider of it; either way nothing of it is believed.
        with contextlib.suppress(Problem):
            report = import_feed(
                seeded, published(serve(broken)), client=http, live_feeds=True, dry_run=False, clock=clock
            )
            assert [row.status for row in report.providers] == ["refused"]
    after = seeded.read_now(service.current_snapshot)
    assert (after.number, after.content_sha256) == (before.number, before.content_sha256)


class TestLibrary:
    """The gpuhunt library asks a server on this machine, which gives answers of the shape of the real API."""

    @pytest.fixture(autouse=True)
    def _library(self) -> None:
        pytest.importorskip("gpuhunt", reason="optional dependency live-feeds")

    def vultr(self, monkeypatch, base: str) -> Feed:
        monkeypatch.setattr("gpuhunt.providers.vultr.API_URL", base)
        monkeypatch.delenv("VULTR_API_KEY", raising=False)
        return FEEDS["gpuhunt-vultr"]

    def test_its_answer_is_imported_and_what_is_not_known_is_held_back(self, seeded, clock, serve, monkeypatch):
        base = serve(
            {
                "/plans-metal": (FILES / "vultr_plans_metal.json").read_bytes(),
                "/plans": (FILES / "vultr_plans.json").read_bytes(),
            }
        )
        feed = self.vultr(monkeypatch, base)
        with httpx.Client() as http:
            report = import_feed(seeded, feed, client=http, live_feeds=True, dry_run=False, clock=clock)
        (row,) = report.providers
        assert (row.provider, row.status) == ("vultr", "committed")
        # No price of these regions is held yet, and a quarter of a card is no accelerator the catalog knows.
        assert sorted(held["reason"] for held in row.quarantined) == ["unknown_accelerator"] + ["unknown_region"] * 3
        snapshot = seeded.read_now(service.current_snapshot)
        (offer,) = snapshot.find_offers(providers=["vultr"], instance_type="vbm-256c-2048gb-8-mi300x-gpu")
        assert (offer.accelerator_id, offer.accelerator_count, offer.sold_unit) == ("mi300x", 8, "node")
        assert str(snapshot.quarantined_of(offer.id)[0].row.amount) == "17.52"

    @pytest.mark.parametrize(
        ("answers", "pauses"),
        [({"/plans-metal": 503}, [2.0, 4.0]), ({"/plans-metal": b"{}", "/plans": b"{}"}, [])],
        ids=["down: tried again", "another shape: not tried again"],
    )
    def test_what_it_raises_is_one_problem(self, serve, monkeypatch, answers, pauses):
        feed = self.vultr(monkeypatch, serve(answers))
        waited: list[float] = []
        with pytest.raises(Problem, match="last good prices stay"), httpx.Client() as http:
            fetch_feed(http, feed, sleep=waited.append)
        assert waited == pauses

    def test_an_answer_that_never_comes_is_given_up(self):
        with pytest.raises(LibraryError, match=r"no answer within 0\.01 s"):
            gpuhunt_library._within(0.01, threading.Event().wait)

    def test_the_least_bid_on_vast_is_marked_and_never_a_price(self, shipped):
        from gpuhunt import CatalogItem
        from gpuhunt._internal.models import AcceleratorVendor

        from app.catalog.importing import ImportOrder
        from tests.catalog.test_imports import TODAY, staged

        item = {
            "provider": "vastai", "instance_name": "1", "location": "US", "cpu": 8, "memory": 64.0, "gpu_count": 1,
            "gpu_name": "RTX4090", "gpu_memory": 24.0, "disk_size": 10.0, "gpu_vendor": AcceleratorVendor.NVIDIA,
        }  # fmt: skip
        items = [
            CatalogItem(**item, price=0.4, spot=False),
            CatalogItem(**item, price=0.05, spot=True, provider_data={"min_bid": 0.05}),
        ]
        what = ImportOrder(
            file_format="gpuhunt",
            content=gpuhunt_library.as_csv(items),
            filename="x",
            provider="vastai",
            observed_on=TODAY,
        )
        (row,) = staged(shipped, what)
        assert (row.key.purchase_model, str(row.amount), row.indicative) == ("marketplace", "0.4", True)


def test_without_the_library_the_feed_says_what_to_install(monkeypatch):
    monkeypatch.setattr(gpuhunt_library, "import_module", lambda _: (_ for _ in ()).throw(ImportError()))
    with pytest.raises(LibraryError, match="live-feeds"):
        query_provider("vultr", 1.0)


def test_a_file_is_imported_from_the_command_line(seeded, clock):
    assert seed_catalog(seeded, clock) is None
    dry = import_path(seeded, FILES / "own_prices.csv", file_format="csv", clock=clock)
    assert {row.status for row in dry.providers} == {"dry_run"}
    wet = import_path(seeded, FILES / "own_prices.csv", file_format="csv", dry_run=False, clock=clock)
    assert {row.status for row in wet.providers} == {"committed"}
