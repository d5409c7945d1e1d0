"""Share links: a signed token that opens one revision of one quote, until it expires or is revoked."""

import base64
import binascii
import hashlib
import hmac
from datetime import datetime

import orjson
from sqlalchemy import Connection

from app.access import audit, repository
from app.access.principal import Principal, ShareGrant
from app.access.repository import ShareLink
from app.foundation.identifiers import new_id
from app.foundation.problems import NotFound, Problem

__all__ = ["LINK_PREFIX", "ShareLink", "create_link", "open_link", "revoke_link"]

LINK_PREFIX = "gqs_"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _mac(payload: bytes, signing_key: bytes) -> bytes:
    return hmac.new(signing_key, b"share link\0" + payload, hashlib.sha256).digest()


def create_link(
    connection: Connection,
    *,
    principal: Principal,
    quote_id: str,
    revision: int,
    may_accept: bool,
    expires_at: datetime,
    now: datetime,
    signing_key: bytes,
) -> tuple[ShareLink, str]:
    """Keep a link and return it with its token. The caller has checked that the revision exists and is issued."""
    link = ShareLink(
        tenant_id=principal.tenant_id,
        id=new_id("shl"),
        quote_id=quote_id,
        revision=revision,
        may_accept=may_accept,
        created_by=principal.actor,
        created_at=now,
        expires_at=expires_at,
    )
    repository.insert_share_link(connection, link)
    details = {"link": link.id, "revision": revision, "may_accept": may_accept}
    audit.record(connection, principal=principal, at=now, action="share.create", subject=quote_id, details=details)
    payload = orjson.dumps([link.tenant_id, link.id])
    return link, f"{LINK_PREFIX}{_encode(payload)}.{_encode(_mac(payload, signing_key))}"


def revoke_link(connection: Connection, *, principal: Principal, link_id: str, now: datetime) -> None:
    """Close a link at once."""
    link = repository.find_share_link(connection, principal.tenant_id, link_id)
    if link is None:
        raise NotFound("share link")
    repository.revoke_share_link(connection, principal.tenant_id, link_id, now)
    details = {"link": link_id}
    audit.record(connection, principal=principal, at=now, action="share.revoke", subject=link.quote_id, details=details)


def verified_ids(token: str, signing_key: bytes) -> tuple[str, str] | None:
    """Return tenant and link of a token that we signed, or nothing."""
    head, _, tail = token.removeprefix(LINK_PREFIX).partition(".")
    try:
        payload, mac = _decode(head), _decode(tail)
    except (binascii.Error, ValueError):
        return None
    if not hmac.compare_digest(mac, _mac(payload, signing_key)):
        return None
    tenant_id, link_id = orjson.loads(payload)
    return tenant_id, link_id


def open_link(connection: Connection, tenant_id: str, link_id: str, *, now: datetime) -> Principal | None:
    """Return who comes by this link; expired and revoked ones are gone."""
    link = repository.find_share_link(connection, tenant_id, link_id)
    if link is None:
        return None
    if link.revoked_at is not None or now >= link.expires_at:
        raise Problem("gone", "This link has expired or was withdrawn. Ask the sender of the quote for a new one.")
    tenant = repository.find_tenant(connection, tenant_id)
    scopes = {"quotes:read", "quotes:accept"} if link.may_accept else {"quotes:read"}
    return Principal(
        tenant_id=tenant_id,
        actor=f"share:{link.id}",
        scopes=frozenset(scopes),
        is_machine=False,
        default_currency=tenant.default_currency if tenant else "USD",
        share=ShareGrant(link_id=link.id, quote_id=link.quote_id, revision=link.revision),
    )
