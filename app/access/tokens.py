"""OpenID Connect bearer tokens: one issuer, one audience, fixed algorithms, keys fetched and kept for a while."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import structlog

from app.access.principal import TENANT_SCOPES, Principal
from app.foundation.problems import Problem
from app.foundation.settings import Settings

log = structlog.get_logger()

KEYS_KEPT_S = 600.0
# A flood of tokens with made-up key ids must not become a flood of fetches.
REFETCH_PAUSE_S = 30.0
# Without any key nobody gets in, so a service that starts before its issuer asks again sooner.
FIRST_FETCH_PAUSE_S = 5.0
_REQUIRED_CLAIMS = ["exp", "iat", "iss", "aud", "sub"]


class TokenVerifier:
    """Checks tokens against the issuer's published keys."""

    def __init__(
        self,
        settings: Settings,
        *,
        client: httpx.AsyncClient | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._client = client
        self._monotonic = monotonic
        self._keys: dict[str, Any] = {}
        self._fetched_at = float("-inf")
        self._lock = asyncio.Lock()

    @property
    def is_configured(self) -> bool:
        return None not in (self._settings.oidc_issuer, self._settings.oidc_audience, self._settings.oidc_jwks_url)

    async def verify(self, token: str) -> Principal | None:
        """Return who the token speaks for, or nothing, whatever is wrong with it.

        Raises
        ------
        Problem
            ``maintenance`` while the issuer's keys were never had: then no token can be judged, good or bad.
        """
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            # The algorithm comes from our settings, never from the token: "none" and HMAC with a public key end here.
            if header.get("alg") not in settings.oidc_algorithms or not isinstance(header.get("kid"), str):
                return None
            key = await self._key(header["kid"])
            if key is None or key.algorithm_name != header["alg"]:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=list(settings.oidc_algorithms),
                audience=settings.oidc_audience,
                issuer=settings.oidc_issuer,
                leeway=30,
                options={"require": _REQUIRED_CLAIMS},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        tenant_id = claims.get(settings.oidc_tenant_claim)
        if not isinstance(tenant_id, str) or not tenant_id:
            return None
        granted = frozenset(str(claims.get("scope", "")).split()) & TENANT_SCOPES
        actor = f"oidc:{claims['sub']}"[:200]
        return Principal(tenant_id=tenant_id, actor=actor, scopes=granted, is_machine="client_id" in claims)

    async def _key(self, key_id: str) -> Any:
        now = self._monotonic()
        is_stale = now - self._fetched_at > KEYS_KEPT_S
        pause = REFETCH_PAUSE_S if self._keys else FIRST_FETCH_PAUSE_S
        is_unknown = key_id not in self._keys and now - self._fetched_at > pause
        if is_stale or is_unknown:
            async with self._lock:
                if self._fetched_at <= now - pause:
                    await self._fetch(now)
        if not self._keys:
            raise Problem(
                "maintenance",
                "Tokens cannot be checked: the identity provider's keys could not be fetched. Try again, or use an "
                "API key.",
                headers={"Retry-After": str(int(FIRST_FETCH_PAUSE_S))},
            )
        return self._keys.get(key_id)

    async def _fetch(self, now: float) -> None:
        self._fetched_at = now
        try:
            answer = await self._get(str(self._settings.oidc_jwks_url))
            key_set = jwt.PyJWKSet.from_dict(answer.raise_for_status().json())
        except (httpx.HTTPError, jwt.PyJWTError, ValueError) as error:
            log.warning("signing_keys_not_fetched", reason=type(error).__name__)
            return
        self._keys = {key.key_id: key for key in key_set.keys if key.key_id is not None}

    async def _get(self, url: str) -> httpx.Response:
        if self._client is not None:
            return await self._client.get(url)
        async with httpx.AsyncClient(timeout=5.0, follow_redirects=False) as client:
            return await client.get(url)
