"""One link of a tenant's audit chain, and the hash that binds it to the one before."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from app.foundation.canonical import canonical_bytes, sha256_hex

GENESIS_HASH = "0" * 64


def chained_hash(previous_hash: str, content: Mapping[str, Any]) -> str:
    """Bind what an entry says to the entry before it."""
    return sha256_hex(previous_hash.encode() + canonical_bytes(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what to which thing, on whose behalf, with which key, in which trace, and why."""

    tenant_id: str
    sequence: int
    at: datetime
    actor: str
    on_behalf_of: str | None
    key_id: str | None
    trace_id: str | None
    action: str
    subject: str
    before_sha256: str | None
    after_sha256: str | None
    reason: str | None
    details: Mapping[str, Any]
    previous_hash: str
    entry_hash: str

    def as_json(self) -> dict[str, Any]:
        """Return every member, in the form that is hashed and shown; the time to the microsecond."""
        values = {name.name: getattr(self, name.name) for name in fields(self)}
        values["at"] = self.at.isoformat(timespec="microseconds").replace("+00:00", "Z")
        values["details"] = dict(self.details)
        return values

    def expected_hash(self) -> str:
        """SHA-256 over the previous hash and the RFC 8785 form of everything but the two hashes."""
        content = {key: value for key, value in self.as_json().items() if key not in ("previous_hash", "entry_hash")}
        return chained_hash(self.previous_hash, content)
