"""Sending to addresses that others chose, without becoming their way into our network.

A host is resolved once; every address it has must be public, and the connection goes to one of exactly these, with the
host's name kept for TLS and the Host header. No redirect is followed, no proxy is used, and of the answer only the
status and 256 bytes are read.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import httpx

from app.foundation.problems import Problem

TOTAL_TIMEOUT_S = 20.0
EXCERPT_BYTES = 256
MAX_URL_LENGTH = 2_000
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

# Forms that carry an IPv4 address inside an IPv6 one: what is inside decides where a packet goes, so none is taken.
_TRANSLATED = tuple(
    ipaddress.ip_network(text)
    for text in ("::ffff:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
)


class ForbiddenTarget(Exception):
    """The target may not be sent to; ``reason`` is a code, and the address behind it is never told."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    """What may be sent to."""

    schemes: frozenset[str] = frozenset({"https"})
    ports: frozenset[int] = frozenset({443, 8443})
    allow_private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came back: a status with the beginning of its body, or the code of what went wrong."""

    status: int | None = None
    excerpt: str | None = None
    failure: str | None = None
    retry_after_s: int | None = None

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to the public internet, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address) and (
        address.scope_id is not None or any(address in network for network in _TRANSLATED)
    ):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def parse_target(url: str, policy: EgressPolicy) -> tuple[SplitResult, str, int]:
    """Check the form of a URL and return it with host and port."""
    if len(url) > MAX_URL_LENGTH or any(ord(char) <= 0x20 or ord(char) == 0x7F for char in url) or "\\" in url:
        raise ForbiddenTarget("malformed")
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError as error:
        raise ForbiddenTarget("malformed") from error
    if parts.scheme not in policy.schemes:
        raise ForbiddenTarget("scheme")
    if not parts.hostname or parts.fragment:
        raise ForbiddenTarget("malformed")
    if parts.username is not None or parts.password is not None:
        raise ForbiddenTarget("credentials")
    if port not in policy.ports:
        raise ForbiddenTarget("port")
    return parts, parts.hostname, port


async def system_resolve(host: str, port: int) -> list[str]:
    """Ask the operating system for the addresses of a host."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Egress:
    """The one client for addresses that others chose."""

    def __init__(
        self,
        *,
        policy: EgressPolicy | None = None,
        resolve: Resolve = system_resolve,
        transport: httpx.AsyncBaseTransport | None = None,
        total_timeout_s: float = TOTAL_TIMEOUT_S,
    ) -> None:
        self._policy = policy or EgressPolicy()
        self._resolve = resolve
        self._total_timeout_s = total_timeout_s
        self._client = httpx.AsyncClient(
            transport=transport, trust_env=False, follow_redirects=False, timeout=httpx.Timeout(total_timeout_s)
        )

    async def check(self, url: str) -> None:
        """Raise the problem ``webhook-url-forbidden`` unless the URL may be sent to today."""
        try:
            await self._pinned(url)
        except ForbiddenTarget as refusal:
            raise Problem(
                "webhook-url-forbidden",
                "Webhooks go to public https addresses on port 443 or 8443, by a name that resolves. Use such a URL.",
                reason=refusal.reason,
            ) from refusal

    async def _pinned(self, url: str) -> tuple[str, str, str]:
        """Resolve once; return the URL with the address in place of the name, the Host header, and the name."""
        parts, host, port = parse_target(url, self._policy)
        try:
            async with asyncio.timeout(5.0):
                texts = await self._resolve(host, port)
            addresses = [ipaddress.ip_address(text) for text in texts]
        except (OSError, ValueError, UnicodeError, TimeoutError) as error:
            raise ForbiddenTarget("unresolvable") from error
        if not addresses:
            raise ForbiddenTarget("unresolvable")
        if not self._policy.allow_private and not all(is_public(address) for address in addresses):
            raise ForbiddenTarget("address")
        address = addresses[0]
        literal = f"[{address}]" if address.version == 6 else str(address)
        named = f"[{host}]" if ":" in host else host
        default_port = {"https": 443, "http": 80}[parts.scheme]
        host_header = named if port == default_port else f"{named}:{port}"
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{literal}:{port}{parts.path or '/'}{query}", host_header, host

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """Send, and say what came back; never raises for what the other side does."""
        try:
            async with asyncio.timeout(self._total_timeout_s):
                pinned, host_header, name = await self._pinned(url)
                request = self._client.build_request(
                    "POST",
                    pinned,
                    content=body,
                    headers={**headers, "Host": host_header},
                    extensions={"sni_hostname": name},
                )
                response = await self._client.send(request, stream=True)
                try:
                    excerpt = await _beginning(response)
                finally:
                    await response.aclose()
        except ForbiddenTarget as refusal:
            return Outcome(failure=f"forbidden-{refusal.reason}")
        except TimeoutError:
            return Outcome(failure="timeout")
        except httpx.TimeoutException:
            return Outcome(failure="timeout")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return Outcome(failure=f"connection-{type(error).__name__}"[:200])
        return Outcome(status=response.status_code, excerpt=excerpt, retry_after_s=_retry_after(response))

    async def close(self) -> None:
        await self._client.aclose()


async def _beginning(response: httpx.Response) -> str:
    """Read no more than the excerpt, undecoded, so that neither size nor compression costs anything."""
    read = b""
    async for chunk in response.aiter_raw(chunk_size=EXCERPT_BYTES):
        read += chunk
        if len(read) >= EXCERPT_BYTES:
            break
    text = read[:EXCERPT_BYTES].decode("utf-8", errors="replace")
    return "".join(char if char.isprintable() else " " for char in text)


def _retry_after(response: httpx.Response) -> int | None:
    value = response.headers.get("retry-after", "")
    return int(value) if value.isdigit() and len(value) < 7 else None
