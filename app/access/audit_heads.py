"""Signed heads of audit chains, and checking an exported chain against one without the service.

A head is signed with Ed25519 by a key derived from the service's secret. Whoever kept a head and noted the public key
can show later that the chain was written anew: the exported entries no longer lead to it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from sqlalchemy import Connection

from app.access import audit_repository as repository
from app.access.audit_entry import GENESIS_HASH, chained_hash
from app.access.audit_repository import SignedHead
from app.foundation.canonical import canonical_bytes
from app.foundation.clock import rfc3339

ALGORITHM = "Ed25519"
_HASHES = ("previous_hash", "entry_hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportVerdict:
    """Whether exported entries lead to a signed head; where and why not."""

    match: bool
    entries: int
    reason: str | None = None


def _private_key(signing_key: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"audit heads\0" + signing_key).digest())


def _statement(head: Mapping[str, Any]) -> bytes:
    said = {name: head[name] for name in ("tenant_id", "sequence", "entry_hash", "signed_at")}
    return b"gpuquote audit head\0" + canonical_bytes(said)


def as_json(head: SignedHead) -> dict[str, Any]:
    """Return the head as it is exported."""
    return {
        "tenant_id": head.tenant_id,
        "sequence": head.sequence,
        "entry_hash": head.entry_hash,
        "signed_at": rfc3339(head.signed_at),
        "algorithm": ALGORITHM,
        "public_key": head.public_key,
        "signature": head.signature,
    }


def sign(connection: Connection, tenant_id: str, *, now: datetime, signing_key: bytes) -> SignedHead:
    """Sign the tenant's head as it is now."""
    sequence, entry_hash = repository.head(connection, tenant_id)
    key = _private_key(signing_key)
    public = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()
    unsigned = SignedHead(
        tenant_id=tenant_id,
        day=now.date().isoformat(),
        sequence=sequence,
        entry_hash=entry_hash,
        signed_at=now,
        public_key=public,
        signature="",
    )
    return replace(unsigned, signature=key.sign(_statement(as_json(unsigned))).hex())


def sign_day(connection: Connection, *, now: datetime, signing_key: bytes) -> int:
    """Sign and keep today's head of every chain that has none yet; run as the system, as often as one likes."""
    waiting = repository.tenants_without_head(connection, now.date().isoformat())
    heads = [sign(connection, tenant_id, now=now, signing_key=signing_key) for tenant_id in waiting]
    return sum(repository.keep_head(connection, head) for head in heads)


def signature_holds(head: Mapping[str, Any], public_key: str | None = None) -> bool:
    """Check a head's signature by the public key that was noted, else by the one it names itself."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key or head["public_key"]))
        key.verify(bytes.fromhex(head["signature"]), _statement(head))
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True


def verify_export(
    entries: Iterable[Mapping[str, Any]], head: Mapping[str, Any], public_key: str | None = None
) -> ExportVerdict:
    """Walk exported entries from the first on and hold them against a signed head; needs no database."""
    if not signature_holds(head, public_key):
        return ExportVerdict(match=False, entries=0, reason="the head is not signed by this key")
    previous, sequence = GENESIS_HASH, 0
    for entry in entries:
        if sequence == head["sequence"]:
            break
        content = {name: value for name, value in entry.items() if name not in _HASHES}
        content["tenant_id"] = head["tenant_id"]
        if entry.get("sequence") != sequence + 1:
            return ExportVerdict(match=False, entries=sequence, reason=f"entry {sequence + 1} is missing")
        if entry.get("previous_hash") != previous or entry.get("entry_hash") != chained_hash(previous, content):
            return ExportVerdict(match=False, entries=sequence, reason=f"entry {sequence + 1} was changed")
        previous, sequence = str(entry["entry_hash"]), sequence + 1
    if (sequence, previous) != (head["sequence"], head["entry_hash"]):
        return ExportVerdict(match=False, entries=sequence, reason="the entries do not lead to the signed head")
    return ExportVerdict(match=True, entries=sequence)
