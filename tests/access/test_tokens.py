"""Bearer tokens of an identity provider: one issuer, one audience, fixed algorithms."""

import asyncio
import json
import time
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from app.access.tokens import TokenVerifier
from app.foundation.problems import Problem
from app.foundation.settings import Settings

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
SETTINGS = Settings(oidc_issuer="https://id.example", oidc_audience="gpuquote", oidc_jwks_url="https://id.example/jwks")


def jwks() -> dict[str, Any]:
    rsa_key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key()))
    ec_key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(EC.public_key()))
    return {"keys": [{**rsa_key, "kid": "r1", "alg": "RS256"}, {**ec_key, "kid": "e1", "alg": "ES256"}]}


class Issuer:
    """Serves the key set and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_down = False
        self.now = 0.0
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        self.verifier = TokenVerifier(SETTINGS, client=client, monotonic=lambda: self.now)

    def _answer(self, _request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if self.is_down:
            raise httpx.ConnectError("the issuer is down")
        return httpx.Response(200, json=jwks())


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    base = {
        "iss": "https://id.example",
        "aud": "gpuquote",
        "sub": "user-1",
        "iat": now,
        "exp": now + 86_400,
        "tenant_id": "acme",
        "scope": "quotes:read quotes:write root",
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def signed(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "r1", **changes: Any) -> str:
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers={"kid": kid} if kid else {})


@pytest.mark.parametrize("token", [signed(), signed(EC, "ES256", "e1")])
def test_a_good_token_is_who_it_says(token: str) -> None:
    principal = asyncio.run(Issuer().verifier.verify(token))
    assert principal is not None
    assert (principal.tenant_id, principal.actor) == ("acme", "oidc:user-1")
    assert principal.scopes == {"quotes:read", "quotes:write"}


PUBLIC_PEM = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def hmac_with_public_key() -> str:
    """The classic confusion: HS256 under the text of the published key."""
    import base64
    import hashlib
    import hmac

    def encode(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    head = encode(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "r1"}).encode())
    body = encode(json.dumps(claims()).encode())
    mac = hmac.new(PUBLIC_PEM, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{encode(mac)}"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(jwt.encode(claims(), None, algorithm="none", headers={"kid": "r1"}), id="unsigned"),
        pytest.param(hmac_with_public_key(), id="hmac with the public key"),
        pytest.param(signed(algorithm="RS512"), id="another algorithm of the same key"),
        pytest.param(signed(OTHER_RSA), id="another key under a known id"),
        pytest.param(signed(kid="unknown"), id="unknown key id"),
        pytest.param(signed(kid=None), id="no key id"),
        pytest.param(signed(EC, "ES256", "r1"), id="key of another type"),
        pytest.param(signed(aud="other"), id="wrong audience"),
        pytest.param(signed(aud=None), id="no audience"),
        pytest.param(signed(iss="https://evil.example"), id="wrong issuer"),
        pytest.param(signed(exp=int(time.time()) - 60), id="expired"),
        pytest.param(signed(exp=None), id="never expires"),
        pytest.param(signed(nbf=int(time.time()) + 600), id="not yet valid"),
        pytest.param(signed(tenant_id=None), id="no tenant"),
        pytest.param(signed(tenant_id=["acme"]), id="tenant of another type"),
        pytest.param(signed()[:-4] + "AAAA", id="changed signature"),
        pytest.param("not.a.token", id="nonsense"),
    ],
)
def test_a_bad_token_is_nobody(token: str) -> None:
    assert asyncio.run(Issuer().verifier.verify(token)) is None


def test_keys_are_fetched_once_and_not_for_every_made_up_id() -> None:
    issuer = Issuer()

    async def run() -> None:
        for _ in range(20):
            await issuer.verifier.verify(signed())
            await issuer.verifier.verify(signed(kid="made-up"))
        issuer.now = 31.0
        await issuer.verifier.verify(signed(kid="made-up"))
        await issuer.verifier.verify(signed())

    asyncio.run(run())
    assert issuer.asked == 2


def test_keys_that_were_fetched_go_on_while_the_issuer_is_down() -> None:
    issuer = Issuer()

    async def run() -> None:
        assert await issuer.verifier.verify(signed()) is not None
        issuer.is_down = True
        for hours in (1, 2):
            issuer.now = hours * 3_600.0
            assert await issuer.verifier.verify(signed()) is not None
            assert await issuer.verifier.verify(signed(kid="made-up")) is None

    asyncio.run(run())


def test_without_any_key_the_answer_is_503_and_the_issuer_is_not_flooded() -> None:
    issuer = Issuer()
    issuer.is_down = True

    async def run() -> None:
        for _ in range(20):
            with pytest.raises(Problem) as refused:
                await issuer.verifier.verify(signed())
            assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "5")
        assert issuer.asked == 1
        issuer.is_down, issuer.now = False, 6.0
        assert await issuer.verifier.verify(signed()) is not None

    asyncio.run(run())


def test_a_symmetric_key_among_the_published_ones_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An issuer that publishes an HMAC key by mistake hands out no way to sign."""
    import base64

    secret = b"0123456789abcdef0123456789abcdef"
    encoded = base64.urlsafe_b64encode(secret).decode().rstrip("=")
    published = {"keys": [*jwks()["keys"], {"kty": "oct", "kid": "h1", "alg": "HS256", "k": encoded}]}
    monkeypatch.setattr("tests.access.test_tokens.jwks", lambda: published)
    token = jwt.encode(claims(), secret, algorithm="HS256", headers={"kid": "h1"})
    assert asyncio.run(Issuer().verifier.verify(token)) is None


def test_a_token_carries_none_of_the_operators_rights() -> None:
    scopes = "quotes:read catalog:write tenants:manage"
    principal = asyncio.run(Issuer().verifier.verify(signed(scope=scopes)))
    assert principal is not None
    assert principal.scopes == {"quotes:read"}
