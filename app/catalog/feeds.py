"""Price feeds fetched live: off unless ``GPUQUOTE_LIVE_FEEDS`` is set, and then only when a person runs the command.

Feeds are untrusted input. Every address is one of the fixed https addresses below, answers are bounded in size and
time, redirects are not followed (the gpuhunt library, an optional dependency, asks some providers itself), and what
arrives goes through the same import with the same checks as an uploaded file.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from app.catalog.gpuhunt_library import LIBRARY_PROVIDERS, LibraryError, query_provider
from app.foundation.problems import Problem

TIMEOUT = httpx.Timeout(10.0, read=60.0)
ATTEMPTS = 3
BACKOFF_SECONDS = 2.0
# A provider is asked for everything it sells in a few requests of at most 30 s each.
LIBRARY_SECONDS = 120.0
MAX_BYTES = 200_000_000
# Pages of 1,000 items the Azure API needs for its accelerator machines: about 40; more is a loop.
MAX_PAGES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One address and the format it answers in."""

    name: str
    url: str
    file_format: str
    provider: str = ""
    # Asked by the gpuhunt library itself; ``url`` is empty then.
    by_library: bool = False


_SKYPILOT = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8/{}/vms.csv"
# One published catalog a provider (PyPI gpuhunt 0.1.34, ``CATALOG_URL``): a version, and a zip of that version.
_GPUHUNT = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3/{}/version"
_PUBLISHED = ("aws", "azure", "gcp", "lambdalabs", "nebius", "oci", "runpod", "verda")
_VERSION = re.compile(r"[0-9]{8}(-[0-9]{1,6})?", re.ASCII)
FEEDS: Mapping[str, Feed] = {
    feed.name: feed
    for feed in (
        Feed(
            name="azure",
            url="https://prices.azure.com/api/retail/prices?api-version=2023-01-01-preview&meterRegion='primary'"
            "&$filter=serviceName eq 'Virtual Machines' and startswith(armSkuName, 'Standard_N')",
            file_format="azure",
        ),
        *(
            Feed(name=f"skypilot-{cloud}", url=_SKYPILOT.format(cloud), file_format="skypilot", provider=cloud)
            for cloud in ("nebius", "oci", "lambda", "aws", "azure", "gcp")
        ),
        *(
            Feed(name=f"gpuhunt-{name}", url=_GPUHUNT.format(name), file_format="gpuhunt", provider=name)
            for name in _PUBLISHED
        ),
        *(
            Feed(name=f"gpuhunt-{name}", url="", file_format="gpuhunt", provider=name, by_library=True)
            for name in LIBRARY_PROVIDERS
        ),
    )
}


def fetch_feed(client: httpx.Client, feed: Feed, *, sleep: Callable[[float], None] = time.sleep) -> bytes:
    """Fetch a feed whole; an Azure answer is followed through its pages into one."""
    if feed.by_library:
        return _from_library(feed, sleep)
    if feed.file_format == "gpuhunt":
        return _published(client, feed, sleep)
    if feed.file_format != "azure":
        return _get(client, feed.url, feed, sleep)
    items: list[object] = []
    url: str | None = feed.url
    for _ in range(MAX_PAGES):
        if url is None:
            # Prices stay the texts they are: the import reads them as decimals, no float in between.
            return json.dumps({"Items": items}, default=str).encode()
        if not url.startswith("https://prices.azure.com"):
            raise _unavailable(feed, f"the next page points away from the API: {url[:80]}")
        page = json.loads(_get(client, url, feed, sleep), parse_float=str)
        items.extend(page["Items"])
        url = page.get("NextPageLink") or None
    raise _unavailable(feed, f"more than {MAX_PAGES} pages")


def _published(client: httpx.Client, feed: Feed, sleep: Callable[[float], None]) -> bytes:
    version = _get(client, feed.url, feed, sleep)[:100].decode("ascii", "replace").strip()
    if not _VERSION.fullmatch(version):
        raise _unavailable(feed, f"{version[:40]!r} is not a version of a gpuhunt catalog")
    return _get(client, f"{feed.url.removesuffix('version')}{version}/catalog.zip", feed, sleep)


def _from_library(feed: Feed, sleep: Callable[[float], None]) -> bytes:
    problem = "no answer"
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
        try:
            return query_provider(feed.provider, LIBRARY_SECONDS)
        except LibraryError as error:
            problem = str(error)
            if not error.passing:
                break
    raise _unavailable(feed, problem)


def _get(client: httpx.Client, url: str, feed: Feed, sleep: Callable[[float], None]) -> bytes:
    problem = "no answer"
    for attempt in range(ATTEMPTS):
        if attempt:
            sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
        try:
            with client.stream("GET", url, timeout=TIMEOUT, follow_redirects=False) as answer:
                if answer.status_code == httpx.codes.OK:
                    return _bounded(answer, feed)
                problem = f"status {answer.status_code}"
                if answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR and answer.status_code != 429:
                    break
        except httpx.HTTPError as error:
            problem = type(error).__name__
    raise _unavailable(feed, problem)


def _bounded(answer: httpx.Response, feed: Feed) -> bytes:
    found = bytearray()
    for chunk in answer.iter_bytes():
        found += chunk
        if len(found) > MAX_BYTES:
            raise _unavailable(feed, f"more than {MAX_BYTES} bytes")
    return bytes(found)


def _unavailable(feed: Feed, why: str) -> Problem:
    return Problem(
        "price-source-unavailable",
        f"The feed {feed.name} could not be read ({why}). The last good prices stay; try again later.",
    )
