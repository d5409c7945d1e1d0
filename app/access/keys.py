"""API keys: 256 random bits, shown once, kept as an HMAC under a server pepper, found by a short prefix."""

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

_FORM = re.compile(r"gq_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
Peppers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it is kept. The secret is not here and cannot be had back."""

    tenant_id: str
    id: str
    prefix: str
    name: str
    secret_hmac: str
    pepper_id: str
    scopes: tuple[str, ...]
    allowed_networks: tuple[str, ...]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    replaces_id: str | None

    def is_active(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def admits(self, address: str | None) -> bool:
        """Tell whether the caller's address is on the allow-list; an empty list admits every address."""
        if not self.allowed_networks:
            return True
        try:
            caller = ipaddress.ip_address(address or "")
        except ValueError:
            return False
        if isinstance(caller, ipaddress.IPv6Address) and caller.ipv4_mapped is not None:
            caller = caller.ipv4_mapped
        return any(caller in ipaddress.ip_network(network) for network in self.allowed_networks)


def new_secret() -> tuple[str, str, str]:
    """Return prefix, secret, and the whole key as the caller sends it."""
    prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return prefix, secret, f"gq_{prefix}_{secret}"


def split_key(text: str) -> tuple[str, str] | None:
    """Return prefix and secret of something that has the form of a key."""
    match = _FORM.fullmatch(text)
    return None if match is None else (match.group(1), match.group(2))


def secret_hmac(secret: str, pepper: bytes) -> str:
    return hmac.new(pepper, b"api key\0" + secret.encode(), hashlib.sha256).hexdigest()


def matches(key: ApiKey | None, secret: str, peppers: Peppers) -> bool:
    """Compare in constant time, and do the same work when there is no such key."""
    by_id = dict(peppers)
    pepper = by_id.get(key.pepper_id) if key is not None else None
    expected = key.secret_hmac if key is not None and pepper is not None else "0" * 64
    return hmac.compare_digest(secret_hmac(secret, pepper or peppers[0][1]), expected)


def checked_networks(networks: Sequence[str]) -> tuple[str, ...]:
    """Return the networks in canonical form; ValueError names the one that is none."""
    return tuple(str(ipaddress.ip_network(network, strict=False)) for network in networks)
