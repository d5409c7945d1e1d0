"""Attacks through a webhook's address, and receivers that misbehave."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from app.events.egress import EXCERPT_BYTES, Egress, Outcome
from app.foundation.problems import Problem

PUBLIC = "93.184.216.34"


def resolver(*answers: list[str]):
    """Answer the first list on the first question, the second on the second, and so on."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    resolve.asked = asked  # type: ignore[attr-defined]
    return resolve


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://hooks.example/x", "scheme"),
        ("ftp://hooks.example/x", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("https://hooks.example:22/x", "port"),
        ("https://hooks.example:99999/x", "malformed"),
        ("https://user:pw@hooks.example/x", "credentials"),
        ("https:///x", "malformed"),
        ("https://hooks.example/x#y", "malformed"),
        ("https://hooks.example\\@127.0.0.1/", "malformed"),
        ("https://hooks.example/\r\nX: y", "malformed"),
        ("https://" + "a" * 3_000, "malformed"),
    ],
)
def test_forms_of_url_that_are_refused(url: str, reason: str) -> None:
    with pytest.raises(Problem) as refusal:
        asyncio.run(Egress(resolve=resolver([PUBLIC])).check(url))
    assert refusal.value.slug == "webhook-url-forbidden"
    assert refusal.value.extensions == {"reason": reason}


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "::127.0.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "2001:db8::1",
    ],
)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    with pytest.raises(Problem, match="webhook-url-forbidden") as refusal:
        asyncio.run(Egress(resolve=resolver([PUBLIC, address])).check("https://hooks.example/x"))
    assert refusal.value.extensions == {"reason": "address"}
    assert address not in str(refusal.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "2130706433", "0x7f.1", "127.1"])
def test_spellings_of_loopback_are_refused_by_the_real_resolver(host: str) -> None:
    with pytest.raises(Problem, match="webhook-url-forbidden"):
        asyncio.run(Egress().check(f"https://{host}/x"))


def send(egress: Egress, url: str = "https://hooks.example/x?y=1") -> Outcome:
    async def run() -> Outcome:
        outcome = await egress.post(url, b"{}", {"Content-Type": "application/json"})
        await egress.close()
        return outcome

    return asyncio.run(run())


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(204, stream=httpx.ByteStream(b""))

    resolve = resolver([PUBLIC], ["127.0.0.1"])
    outcome = send(Egress(resolve=resolve, transport=httpx.MockTransport(answer)))
    assert outcome.succeeded
    assert str(seen[0].url) == f"https://{PUBLIC}/x?y=1"
    assert seen[0].headers["host"] == "hooks.example"
    assert seen[0].extensions["sni_hostname"] == "hooks.example"
    assert resolve.asked == ["hooks.example"]


def test_a_name_that_turns_private_after_it_was_accepted_is_not_sent_to() -> None:
    sent: list[httpx.Request] = []
    transport = httpx.MockTransport(lambda request: sent.append(request) or httpx.Response(200))
    egress = Egress(resolve=resolver([PUBLIC], ["169.254.169.254"]), transport=transport)
    asyncio.run(egress.check("https://hooks.example/x"))
    assert send(egress).failure == "forbidden-address"
    assert sent == []


def test_a_redirect_is_a_failure_and_is_not_followed() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        headers = {"Location": "http://169.254.169.254/latest/meta-data"}
        return httpx.Response(302, headers=headers, stream=httpx.ByteStream(b""))

    outcome = send(Egress(resolve=resolver([PUBLIC]), transport=httpx.MockTransport(answer)))
    assert (outcome.status, outcome.succeeded) == (302, False)
    assert len(sent) == 1


def test_a_huge_answer_is_cut_off() -> None:
    produced = 0

    async def flood() -> AsyncIterator[bytes]:
        nonlocal produced
        while True:
            produced += 1
            yield b"x" * 100

    transport = httpx.MockTransport(lambda _request: httpx.Response(500, content=flood()))
    outcome = send(Egress(resolve=resolver([PUBLIC]), transport=transport))
    assert outcome.excerpt == "x" * EXCERPT_BYTES
    assert produced < 10


def test_a_compressed_answer_is_not_unpacked() -> None:
    import gzip

    bomb = gzip.compress(b"0" * 10_000_000)
    headers = {"Content-Encoding": "gzip"}
    stream = httpx.ByteStream(bomb)
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, headers=headers, stream=stream))
    outcome = send(Egress(resolve=resolver([PUBLIC]), transport=transport))
    assert outcome.succeeded
    assert len(outcome.excerpt or "") <= EXCERPT_BYTES


def test_a_slow_answer_is_given_up() -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.02)
            yield b"x"

    transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=drip()))
    outcome = send(Egress(resolve=resolver([PUBLIC]), transport=transport, total_timeout_s=0.2))
    assert (outcome.succeeded, outcome.failure) == (False, "timeout")


def test_a_name_that_resolves_to_nothing_is_a_failed_attempt() -> None:
    async def nothing(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    assert send(Egress(resolve=nothing)).failure == "forbidden-unresolvable"
