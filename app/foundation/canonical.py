"""Canonical JSON (RFC 8785) and its hash: the same value gives the same bytes everywhere."""

import hashlib
from typing import Any

import rfc8785


def canonical_bytes(value: Any) -> bytes:
    """Serialise as RFC 8785; integers beyond 2**53 and non-finite numbers are refused with ValueError."""
    return rfc8785.dumps(value)


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical_sha256(value: Any) -> str:
    """Hash of the canonical bytes, 64 hexadecimal digits."""
    return sha256_hex(canonical_bytes(value))
