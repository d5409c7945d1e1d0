"""Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): a retry gets the first answer, not a second effect.

Short operations: key row, effect and stored answer are one transaction; a concurrent twin waits on the unique index up
to a lock timeout, then gets 409. Long calculations call ``reserve`` first, which commits an in-progress row with a
lease, compute outside any transaction, and ``renew`` the lease while they do; a key whose process died is free when the
lease ends, which is what Retry-After says. Stored are 2xx and business 4xx; never 400, 401, 403, 412, 428, 429 or 5xx.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import orjson
from fastapi import Request
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from starlette.responses import Response

from app.foundation import repository
from app.foundation.canonical import sha256_hex
from app.foundation.clock import Clock, rfc3339
from app.foundation.database import Database
from app.foundation.identifiers import new_id
from app.foundation.problem_handlers import RenderedAnswer
from app.foundation.problems import MEDIA_TYPE, Problem, preferred_language, problem_body
from app.foundation.repository import KeyRecord

TIME_TO_LIVE = timedelta(hours=72)
# A dead process keeps its key this long at most. Three renewals fit into it, so that a busy machine may miss two.
LEASE = timedelta(seconds=10)
RENEW_EVERY_S = 3.0
MAX_KEY_LENGTH = 255
_NEVER_STORED = frozenset({400, 401, 403, 412, 428, 429})
_KEPT_HEADERS = ("Location", "ETag", "Content-Language", "Retry-After", "Link", "Preference-Applied")
_SF_STRING = re.compile(r'"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_BARE = re.compile(r"[\x21\x23-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a unit of work wants to be told to the client. ``body`` is JSON-able, or bytes that are JSON already."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"
    # What a replay shows, where the first answer holds a secret that is told once and never kept.
    stored_body: Any = None

    def render(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)

    def render_stored(self) -> bytes:
        return self.render() if self.stored_body is None else orjson.dumps(self.stored_body)


def parse_key(header: str) -> str:
    """Read the structured-field string, or its bare form."""
    value = header.strip()
    match = _SF_STRING.fullmatch(value)
    key = re.sub(r'\\(["\\])', r"\1", match.group(1)) if match else value if _BARE.fullmatch(value) else ""
    if not key or len(key) > MAX_KEY_LENGTH:
        raise Problem(
            "idempotency-key-invalid",
            f"Send Idempotency-Key as one quoted string of 1 to {MAX_KEY_LENGTH} visible ASCII characters, "
            'for example a random UUID: "8e03978e-40d5-43e8-bc93-6894a57f9324".',
            docs="/docs#idempotency",
        )
    return key


def fingerprint(method: str, path: str, content_type: str, body: bytes, parsed: Any) -> str:
    """Hash of what was asked: method, path, content type, and the body without regard to spacing and key order."""
    canonical = body
    if parsed is not None:
        canonical = json.dumps(parsed, sort_keys=True, separators=(",", ":")).encode()
    head = "\n".join((method, path, content_type.partition(";")[0].strip().lower())).encode()
    return sha256_hex(head + b"\n\n" + canonical)


class Idempotency:
    """One request under its key (or under none). Made by a dependency that runs before the body is validated."""

    def __init__(
        self,
        *,
        request: Request,
        tenant_id: str,
        key_sha256: str | None,
        fingerprint_sha256: str,
    ) -> None:
        self._request = request
        self._database: Database = request.app.state.database
        self._clock: Clock = request.app.state.clock
        self._tenant_id = tenant_id
        self._key_sha256 = key_sha256
        self._fingerprint_sha256 = fingerprint_sha256
        self._lease_owner: str | None = None

    async def look_up(self) -> None:
        """End the request with the stored answer, 409 or 422 when the key was seen before."""
        key = self._key_sha256
        if key is None:
            return
        record = await self._database.read(
            lambda connection: repository.find_key(connection, self._tenant_id, key), tenant=self._tenant_id
        )
        now = self._clock.now()
        if record is not None and record.expires_at > now:
            self._judge(record, now)

    async def reserve(self) -> None:
        """Commit an in-progress row with a lease, before a calculation too long to hold a transaction open for."""
        key = self._key_sha256
        if key is None:
            return
        owner = new_id("lea")

        def work(connection: Connection) -> bool:
            return self._claim(connection, key, lease_owner=owner)

        await self._database.transact(work, tenant=self._tenant_id)
        self._lease_owner = owner

    async def renew(self) -> None:
        """Keep a reserved key while the calculation goes on; whether that worked shows when it is completed."""
        key, owner = self._key_sha256, self._lease_owner
        if key is None or owner is None:
            return
        until = self._clock.now() + LEASE
        with suppress(DBAPIError, Problem):
            await self._database.transact(
                lambda c: repository.renew_lease(c, self._tenant_id, key, lease_until=until, lease_owner=owner),
                tenant=self._tenant_id,
            )

    async def release(self) -> None:
        """Give a reserved key back after a refusal that is not stored."""
        key, owner = self._key_sha256, self._lease_owner
        if key is None or owner is None:
            return
        await self._database.transact(
            lambda connection: repository.release_key(connection, self._tenant_id, key, lease_owner=owner),
            tenant=self._tenant_id,
        )
        self._lease_owner = None

    async def transact(self, work: Callable[[Connection], Answer]) -> Response:
        """Run effect, key row and stored answer in one transaction; return the response after its commit."""
        key = self._key_sha256
        if key is None:
            answer = await self._database.transact(work, tenant=self._tenant_id)
            return self._respond(answer.status, answer.headers, answer.render(), answer.media_type)
        outcome = await self._database.transact(lambda c: self._run(c, key, work), tenant=self._tenant_id)
        if isinstance(outcome, Problem):
            raise outcome
        self._lease_owner = None
        status, headers, body, media_type = outcome
        return self._respond(status, headers, body, media_type, expires_at=self._clock.now() + TIME_TO_LIVE)

    def _run(
        self, connection: Connection, key: str, work: Callable[[Connection], Answer]
    ) -> tuple[int, dict[str, str], bytes, str] | Problem:
        if self._lease_owner is None:
            self._claim(connection, key, lease_owner=None)
        savepoint = connection.begin_nested()
        try:
            answer = work(connection)
        except Problem as problem:
            savepoint.rollback()
            if problem.status in _NEVER_STORED or problem.status >= 500:
                repository.release_key(connection, self._tenant_id, key, lease_owner=self._lease_owner)
                return problem
            stored = told = self._problem_answer(problem)
        else:
            savepoint.commit()
            stored = (answer.status, _kept(answer.headers), answer.render_stored(), answer.media_type)
            told = (answer.status, dict(answer.headers), answer.render(), answer.media_type)
        status, headers, body, media_type = stored
        done = repository.complete_key(
            connection,
            self._tenant_id,
            key,
            lease_owner=self._lease_owner,
            status=status,
            headers={**headers, "Content-Type": media_type},
            body=body,
        )
        if not done:
            raise _in_progress("The request took so long that a retry took its place. Nothing was stored by this one.")
        return told

    def _claim(self, connection: Connection, key: str, *, lease_owner: str | None) -> bool:
        """Own the key from here on, or end the request with what is known about it."""
        now = self._clock.now()
        lease_until = now + LEASE
        for _ in range(2):
            if repository.claim_key(
                connection,
                self._tenant_id,
                key,
                fingerprint_sha256=self._fingerprint_sha256,
                now=now,
                expires_at=now + TIME_TO_LIVE,
                lease_until=lease_until,
                lease_owner=lease_owner,
            ):
                return True
            record = repository.find_key(connection, self._tenant_id, key)
            if record is None:
                continue
            if record.expires_at <= now:
                repository.forget_expired_keys(connection, now, self._tenant_id)
                continue
            self._judge(record, now)
            owner = lease_owner or new_id("lea")
            if repository.take_over_key(
                connection, self._tenant_id, key, now=now, lease_until=lease_until, lease_owner=owner
            ):
                self._lease_owner = owner
                return True
        raise _in_progress("Another request with this key is running.")

    def _judge(self, record: KeyRecord, now: datetime) -> None:
        """Raise what a second request with a known key is owed; return when its lease has run out."""
        if record.fingerprint_sha256 != self._fingerprint_sha256:
            raise Problem(
                "idempotency-key-reused",
                "This Idempotency-Key was used for another method, path or body. Use a fresh key for a new request.",
                first_seen_at=rfc3339(record.created_at),
            )
        if record.state == "done":
            raise RenderedAnswer(self._replay(record))
        if record.lease_until is not None and record.lease_until > now:
            left = math.ceil((record.lease_until - now).total_seconds())
            raise _in_progress("The first request with this key has not been answered yet.", retry_after_s=left)

    def _replay(self, record: KeyRecord) -> Response:
        headers = dict(record.headers or {})
        media_type = headers.pop("Content-Type", "application/json")
        response = self._respond(
            record.status or 200, headers, record.body or b"", media_type, expires_at=record.expires_at
        )
        response.headers["Idempotent-Replayed"] = "true"
        return response

    def _respond(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        media_type: str,
        *,
        expires_at: datetime | None = None,
    ) -> Response:
        response = Response(body, status_code=status, headers=dict(headers), media_type=media_type)
        if expires_at is not None:
            response.headers["Idempotency-Expires"] = format_datetime(expires_at, usegmt=True)
        return response

    def _problem_answer(self, problem: Problem) -> tuple[int, dict[str, str], bytes, str]:
        language = preferred_language(self._request.headers.get("accept-language"))
        body = problem_body(
            problem,
            language=language,
            instance=self._request.url.path,
            trace_id=self._request.scope.get("trace_id"),
            problems_url=self._request.app.state.settings.problems_url,
        )
        headers = {**_kept(problem.headers), "Content-Language": language}
        return problem.status, headers, orjson.dumps(body, default=str), MEDIA_TYPE


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in _KEPT_HEADERS}


def _in_progress(detail: str, *, retry_after_s: int = 1) -> Problem:
    """At the latest after ``retry_after_s`` the first request is answered, renews its lease, or is taken over."""
    headers = {"Retry-After": str(retry_after_s)}
    return Problem("idempotency-in-progress", f"{detail} Retry with the same key.", headers=headers)


async def open_idempotency(request: Request, *, tenant_id: str, principal: str, required: bool) -> Idempotency:
    """Read the key of the request, look it up, and return the handle under which its effect is to run.

    The scope of a key is tenant, principal, method and route template.
    """
    header = request.headers.get("idempotency-key")
    if header is None and required:
        raise Problem(
            "idempotency-key-missing",
            "This operation needs an Idempotency-Key, so that a retry cannot act twice. "
            "Send a fresh random UUID with each new request and the same one with its retries.",
            docs="/docs#idempotency",
        )
    body = await request.body()
    asked = fingerprint(
        request.method,
        request.url.path,
        request.headers.get("content-type", ""),
        body,
        request.scope.get("state", {}).get("json_body"),
    )
    key_sha256 = None
    if header is not None:
        template = getattr(request.scope.get("route"), "path", request.url.path)
        scope = [tenant_id, principal, request.method, template, parse_key(header)]
        key_sha256 = sha256_hex(orjson.dumps(scope))
    handle = Idempotency(request=request, tenant_id=tenant_id, key_sha256=key_sha256, fingerprint_sha256=asked)
    await handle.look_up()
    return handle
