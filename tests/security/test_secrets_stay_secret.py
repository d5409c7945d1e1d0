"""Whatever goes wrong, no key, token, webhook secret or password of an address reaches the logs or an answer."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr, ValidationError
from sqlalchemy import text

from app.access.keys import split_key
from app.events import webhook_repository
from app.foundation.settings import Settings
from app.main import create_app
from tests.access.conftest import bearer, make_key
from tests.quotes.conftest import NOON
from tests.security.calls import Names, call
from tests.security.conftest import guarded_settings
from tests.security.matrix import OPERATIONS
from tests.security.world import Headers, send

SENTINEL = "5entine1"
SECRET, PEPPER = f"the {SENTINEL} of the service", f"p1:0123456789{SENTINEL}"
KEY = f"gq_0123456789ab_{SENTINEL:A<43}"
CREDENTIALS = {
    "an unknown key": {"Authorization": f"Bearer {KEY}"},
    "a malformed key": {"Authorization": f"Bearer gq_{SENTINEL}"},
    "a malformed header": {"Authorization": f"Basic {SENTINEL}"},
    "a key in the other header": {"X-API-Key": KEY},
    "a token that is none": {"Authorization": f"Bearer {SENTINEL}.{SENTINEL}.{SENTINEL}"},
    "a bent link": {"Authorization": f"Bearer gqs_{SENTINEL}.{SENTINEL}"},
}


@dataclass(slots=True)
class Loud:
    """A service that logs everything it can, and what it has logged."""

    client: TestClient
    log: io.StringIO

    def key(self) -> str:
        return make_key(self.client.app.state.database, "acme", NOON, peppers=PEPPER)  # type: ignore[attr-defined]

    def hides(self, *secrets: str) -> bool:
        assert all(len(secret) >= 8 for secret in secrets), "a shorter one may stand in any id"
        return not any(secret in self.log.getvalue() for secret in secrets)


@pytest.fixture
def loud(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loud]:
    log = io.StringIO()
    # pytest puts back its own standard error between a fixture and its test
    monkeypatch.setattr("app.foundation.telemetry.sys", SimpleNamespace(stderr=log))
    settings = guarded_settings(
        database_url, log_level="DEBUG", secret=SecretStr(SECRET), peppers=SecretStr(PEPPER),
        oidc_issuer="https://id.example", oidc_audience="gpuquote", oidc_jwks_url="http://127.0.0.1:9/jwks",
    )  # fmt: skip
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield Loud(client, log)


def test_credentials_that_fail_are_neither_logged_nor_repeated(loud: Loud) -> None:
    for what, headers in CREDENTIALS.items():
        answer = loud.client.get("/v1/me", headers=headers)
        assert answer.status_code in (401, 503), what
        assert SENTINEL not in answer.text, what
    assert "HTTP Request" in loud.log.getvalue(), "the log is not the one that is written"
    assert loud.hides(SENTINEL)


def test_no_operation_repeats_a_credential(loud: Loud) -> None:
    for key, operation in OPERATIONS.items():
        if not operation.public:
            answer = call(loud.client, key, operation, Names(), {"X-API-Key": KEY})
            assert answer.status_code == 401
            assert SENTINEL not in answer.text
    assert loud.hides(SENTINEL)


def test_a_failure_inside_is_logged_without_secrets(loud: Loud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback of what nobody caught, and the database's own error without the values of its statement."""
    key = loud.key()
    who: Headers = bearer(key)
    made = send(loud.client, "POST", "/v1/webhooks", who, {"url": "https://93.184.216.34/x"})
    assert made.status_code == 201

    def failing(connection, webhook):
        connection.execute(text("SELECT :sealed FROM nowhere"), {"sealed": f"{SENTINEL}{webhook.sealed_secret}"})

    monkeypatch.setattr(webhook_repository, "insert_webhook", failing)
    failed = send(loud.client, "POST", "/v1/webhooks", who, {"url": "https://93.184.216.34/y"})
    assert (failed.status_code, failed.json()["slug"]) == (500, "internal")
    assert "nowhere" in loud.log.getvalue()
    _, secret = split_key(key) or ("", "")
    hidden = (key, secret, made.json()["secret"], SECRET, PEPPER.partition(":")[2], SENTINEL)
    assert loud.hides(*hidden)
    assert not any(secret in failed.text for secret in hidden)


@pytest.mark.parametrize(
    "url",
    [f"https://user:{SENTINEL}@hooks.example/x", f"https://{SENTINEL}.invalid/x", f"http://hooks.example/{SENTINEL}"],
)
def test_a_refused_address_is_not_repeated(loud: Loud, url: str) -> None:
    refused = send(loud.client, "POST", "/v1/webhooks", bearer(loud.key()), {"url": url})
    assert (refused.status_code, refused.json()["slug"]) == (422, "webhook-url-forbidden")
    assert SENTINEL not in refused.text
    assert loud.hides(SENTINEL)


def test_settings_that_are_wrong_are_not_repeated() -> None:
    settings = Settings(peppers=SecretStr(f"{SENTINEL}"), secret=SecretStr(SECRET))
    assert SENTINEL not in repr(settings)
    with pytest.raises(ValueError, match="GPUQUOTE_PEPPERS") as refused:
        _ = settings.pepper_list
    assert SENTINEL not in str(refused.value)
    with pytest.raises(ValidationError) as wrong:
        Settings(database_url=f"mysql://me:{SENTINEL}@host/db")
    rows = [row["msg"] for row in wrong.value.errors()]
    assert SENTINEL not in str(rows)
