"""From a request's credential to a principal: API key, bearer token, share link, or the loopback default."""

import time
from dataclasses import dataclass, replace

import structlog
from fastapi import Request
from sqlalchemy import Connection

from app.access import quotas, service, share
from app.access.keys import ApiKey
from app.access.limits import RateLimiter
from app.access.metering import REQUESTS, UsageMeter
from app.access.principal import LOOPBACK_PRINCIPAL, Principal
from app.access.repository import Tenant
from app.access.tokens import TokenVerifier
from app.foundation.clock import Clock
from app.foundation.database import SYSTEM, Database
from app.foundation.problems import Problem
from app.foundation.settings import Settings

log = structlog.get_logger()

# How long a process believes that no key exists; the process that makes the first key forgets at once.
OPEN_MODE_KEPT_S = 2.0
MAX_CREDENTIAL_LENGTH = 8_192


@dataclass(frozen=True, slots=True)
class _OpenMode:
    is_open: bool
    until: float


def unauthenticated(detail: str) -> Problem:
    return Problem(
        "unauthenticated",
        f"{detail} Send Authorization: Bearer with a valid API key or token.",
        headers={"WWW-Authenticate": 'Bearer realm="gpuquote"'},
    )


class Authenticator:
    """Knows who is asking. One per process."""

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._settings = settings
        self._database = database
        self._clock = clock
        self._peppers = settings.pepper_list
        self._open_mode = _OpenMode(is_open=False, until=0.0)
        self.tokens = TokenVerifier(settings)
        self.limiter = RateLimiter(database, clock)
        self.meter = UsageMeter(database, clock)

    async def authenticate(self, request: Request) -> Principal:
        """Return the principal, or raise 401; the reason a credential fails is not told."""
        credential = _credential(request)
        if credential is None:
            if await self._is_open():
                self._check_host(request)
                self.meter.count(LOOPBACK_PRINCIPAL.tenant_id, REQUESTS)
                return LOOPBACK_PRINCIPAL
            raise unauthenticated("This service needs a credential and none was sent.")
        principal = await self._by_credential(credential, request)
        if principal is None:
            raise unauthenticated("The credential is unknown, expired, or not valid from here.")
        await self._limit(request, principal)
        self.meter.count(principal.tenant_id, REQUESTS)
        return principal

    def forget_open_mode(self) -> None:
        """Ask the database again whether keys exist; called when one was made."""
        self._open_mode = _OpenMode(is_open=False, until=0.0)

    async def _is_open(self) -> bool:
        if not self._settings.on_loopback or self.tokens.is_configured:
            return False
        now = time.monotonic()
        if now >= self._open_mode.until:
            moment = self._clock.now()
            exist = await self._database.read(lambda c: service.keys_exist(c, moment), tenant=SYSTEM)
            self._open_mode = _OpenMode(is_open=not exist, until=now + OPEN_MODE_KEPT_S)
        return self._open_mode.is_open

    def _check_host(self, request: Request) -> None:
        """Refuse a page that reached the loopback address under a host name of its own (DNS rebinding)."""
        host = request.headers.get("host", "").lower()
        name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
        if name not in self._settings.loopback_hosts:
            raise unauthenticated(f"Without keys the service answers only under {self._settings.loopback_hosts[0]}.")

    async def _by_credential(self, credential: str, request: Request) -> Principal | None:
        if credential.startswith("gq_"):
            return await self._by_key(credential, request)
        if credential.startswith(share.LINK_PREFIX):
            return await self._by_share_link(credential, request)
        if self.tokens.is_configured and credential.count(".") == 2:
            return await self._by_token(credential)
        return None

    async def _by_key(self, text: str, request: Request) -> Principal | None:
        now, peppers = self._clock.now(), self._peppers
        address = request.client.host if request.client else None

        def look_up(connection: Connection) -> tuple[ApiKey, Tenant] | None:
            return service.authenticate_key(connection, text, now=now, address=address, peppers=peppers)

        found = await self._database.read(look_up, tenant=SYSTEM)
        if found is None:
            return None
        key, tenant = found
        if service.needs_touch(key, now, peppers):
            await self._database.transact(
                lambda c: service.touch_key(c, key, text, now=now, peppers=peppers), tenant=key.tenant_id
            )
        principal = Principal(
            tenant_id=key.tenant_id,
            actor=key.id,
            key_id=key.id,
            scopes=frozenset(key.scopes),
            on_behalf_of=_on_behalf_of(request),
        )
        return _of_tenant(principal, tenant)

    async def _by_share_link(self, token: str, request: Request) -> Principal | None:
        ids = share.verified_ids(token, self._settings.signing_key)
        if ids is None:
            return None
        tenant_id, link_id = ids
        now = self._clock.now()
        principal = await self._database.read(
            lambda c: share.open_link(c, tenant_id, link_id, now=now), tenant=tenant_id
        )
        if principal is not None and principal.share is not None and not principal.share.covers(request.url.path):
            raise Problem("not-found", "This link opens one revision of one quote, and nothing else.")
        return principal

    async def _by_token(self, token: str) -> Principal | None:
        principal = await self.tokens.verify(token)
        if principal is None:
            return None
        tenant_id = principal.tenant_id
        tenant = await self._database.read(lambda c: service.find_tenant(c, tenant_id), tenant=tenant_id)
        return _of_tenant(principal, tenant) if tenant is not None and tenant.closed_at is None else None

    async def _limit(self, request: Request, principal: Principal) -> None:
        limit = principal.requests_per_minute or self._settings.rate_limit_per_minute
        decision = await self.limiter.take(principal.tenant_id, limit=limit)
        headers = decision.headers()
        request.scope.setdefault("state", {})["response_headers"] = headers
        if not decision.allowed:
            problem = Problem(
                "quota-exceeded",
                f"This tenant may send {limit} requests a minute. Wait {decision.reset_s} seconds and send it again.",
                headers={"Retry-After": str(decision.reset_s), **headers},
            )
            problem.extensions["violated-policies"] = ["default"]
            raise problem


def _of_tenant(principal: Principal, tenant: Tenant) -> Principal:
    """What the tenant's own data says about each of its callers."""
    return replace(
        principal,
        default_currency=tenant.default_currency,
        requests_per_minute=tenant.requests_per_minute,
        items_per_request=quotas.limit_in(tenant.quotas, "items_per_request"),
    )


def _credential(request: Request) -> str | None:
    header = request.headers.get("authorization")
    if header is None:
        return request.headers.get("x-api-key")
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "bearer" or not value.strip() or len(value) > MAX_CREDENTIAL_LENGTH:
        raise unauthenticated("The Authorization header is not of the form Bearer <credential>.")
    return value.strip()


def _on_behalf_of(request: Request) -> str | None:
    value = request.headers.get("on-behalf-of")
    return value[:200] if value else None
