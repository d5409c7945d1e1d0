"""API keys: what opens, what does not, and what is never told."""

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.access.keys import split_key
from app.access.principal import SCOPES, TENANT_SCOPES
from app.foundation.clock import ManualClock
from app.foundation.settings import Settings
from app.main import create_app
from tests.access.conftest import bearer, make_key


@pytest.fixture
def acme(guarded: TestClient, clock: ManualClock) -> dict[str, str]:
    return bearer(make_key(guarded.app.state.database, "acme", clock.now()))


def test_a_key_opens_its_own_tenant(guarded: TestClient, acme: dict[str, str]) -> None:
    answer = guarded.get("/v1/me", headers=acme)
    assert answer.status_code == 200
    assert answer.json()["tenant_id"] == "acme"
    assert answer.json()["default_currency"] == "EUR"
    by_header = guarded.get("/v1/me", headers={"X-API-Key": acme["Authorization"].removeprefix("Bearer ")})
    assert by_header.json()["key_id"] == answer.json()["key_id"]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic abc",
        "Bearer",
        "Bearer gq_000000000000_" + "A" * 43,
        "Bearer gq_x",
        "Bearer a.b.c",
        "Bearer " + "x" * 9_000,
    ],
)
def test_other_credentials_do_not(guarded: TestClient, acme: dict[str, str], header: str) -> None:
    answer = guarded.get("/v1/me", headers={"Authorization": header} if header else {})
    assert answer.status_code == 401
    assert answer.json()["slug"] == "unauthenticated"
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_changed_secret_and_an_unknown_prefix_get_the_same_answer(guarded: TestClient, acme: dict[str, str]) -> None:
    key = acme["Authorization"]
    changed = key[:-1] + ("A" if key[-1] != "A" else "B")
    other_prefix = "Bearer gq_" + "0" * 12 + key[-44:]
    answers = [guarded.get("/v1/me", headers={"Authorization": text}).json() for text in (changed, other_prefix)]
    for answer in answers:
        answer.pop("trace_id")
    assert answers[0] == answers[1]


def test_a_key_is_shown_once_and_kept_nowhere(guarded: TestClient, acme: dict[str, str]) -> None:
    headers = {**acme, "Idempotency-Key": '"k1"'}
    body = {"name": "reader", "scopes": ["quotes:read"]}
    made = guarded.post("/v1/api-keys", json=body, headers=headers)
    replay = guarded.post("/v1/api-keys", json=body, headers=headers)
    listed = guarded.get("/v1/api-keys", headers=acme)
    assert made.status_code == 201
    assert guarded.get("/v1/me", headers=bearer(made.json()["key"])).json()["scopes"] == ["quotes:read"]
    assert (replay.status_code, replay.json()["id"], replay.json()["key"]) == (201, made.json()["id"], None)
    assert made.json()["key"] not in listed.text
    _, secret = split_key(made.json()["key"]) or ("", "")
    assert len(secret) == 43
    database = guarded.app.state.database
    if database.is_sqlite:
        files = [path.read_bytes() for path in database_files(database)]
        assert not any(secret.encode() in content for content in files)


def database_files(database):
    from pathlib import Path

    path = Path(str(database.url.database))
    return [file for file in (path, path.with_name(path.name + "-wal")) if file.exists()]


def test_nobody_gives_away_a_scope_they_lack(guarded: TestClient, clock: ManualClock) -> None:
    key = make_key(guarded.app.state.database, "acme", clock.now(), frozenset({"admin", "quotes:read"}))
    headers = {**bearer(key), "Idempotency-Key": '"k"'}
    refused = guarded.post("/v1/api-keys", json={"name": "x", "scopes": ["quotes:issue"]}, headers=headers)
    assert (refused.status_code, refused.json()["slug"]) == (403, "insufficient-scope")
    unknown = guarded.post("/v1/api-keys", json={"name": "x", "scopes": ["fly"]}, headers=headers)
    assert (unknown.status_code, unknown.json()["pointer"]) == (422, "/scopes")


def test_an_expired_a_revoked_and_a_rotated_key(guarded: TestClient, acme: dict[str, str], clock: ManualClock) -> None:
    database = guarded.app.state.database
    short = bearer(make_key(database, "acme", clock.now(), expires_at=clock.now() + timedelta(hours=1)))
    short_id = guarded.get("/v1/me", headers=short).json()["key_id"]
    rotated = guarded.post(
        f"/v1/api-keys/{short_id}/rotate", json={"grace_seconds": 60}, headers={**acme, "Idempotency-Key": "r"}
    )
    successor = bearer(rotated.json()["key"])
    assert rotated.json()["replaces_id"] == short_id
    assert guarded.get("/v1/me", headers=short).status_code == 200
    clock.advance(timedelta(seconds=61))
    assert guarded.get("/v1/me", headers=short).status_code == 401
    assert guarded.get("/v1/me", headers=successor).status_code == 200
    assert guarded.delete(f"/v1/api-keys/{rotated.json()['id']}", headers=acme).status_code == 204
    assert guarded.get("/v1/me", headers=successor).status_code == 401
    assert guarded.delete(f"/v1/api-keys/{rotated.json()['id']}", headers=acme).status_code == 204
    verdict = guarded.get("/v1/audit/verify", headers=acme).json()
    assert verdict["match"]
    actions = guarded.get("/v1/usage", headers=acme).json()["actions"]
    assert actions == {"key.create": 3, "key.revoke": 1}


@pytest.mark.parametrize("end", [0, "2027-01-01", "2027-01-01T00:00:00", "9999-12-31T23:59:59-12:00"])
def test_a_keys_end_is_an_instant_with_a_zone(guarded: TestClient, acme: dict[str, str], end: object) -> None:
    body = {"name": "x", "scopes": ["catalog:read"], "expires_at": end}
    refused = guarded.post("/v1/api-keys", json=body, headers={**acme, "Idempotency-Key": "k"})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/expires_at"), refused.text
    assert len(guarded.get("/v1/api-keys", headers=acme).json()["items"]) == 1


def test_a_key_is_bound_to_its_networks(guarded: TestClient, clock: ManualClock) -> None:
    database = guarded.app.state.database
    key = bearer(make_key(database, "acme", clock.now(), allowed_networks=["203.0.113.0/24"]))
    assert guarded.get("/v1/me", headers=key).status_code == 401
    for address, status in (("203.0.113.9", 200), ("::ffff:203.0.113.9", 200), ("203.0.114.9", 401)):
        with TestClient(guarded.app, client=(address, 1), raise_server_exceptions=False) as client:
            assert client.get("/v1/me", headers=key).status_code == status


def test_rotating_the_pepper_locks_nobody_out(
    guarded_settings: Settings, guarded: TestClient, acme: dict[str, str], clock: ManualClock
) -> None:
    assert guarded.get("/v1/me", headers=acme).status_code == 200

    def serve(peppers: str) -> int:
        changed = guarded_settings.model_copy(update={"peppers": SecretStr(peppers)})
        with TestClient(create_app(changed, clock=clock), raise_server_exceptions=False) as client:
            return client.get("/v1/me", headers=acme).status_code

    both = "p2:fedcba9876543210fedc,p1:0123456789abcdef0123"
    assert serve("p2:fedcba9876543210fedc") == 401
    assert serve(both) == 200
    assert serve("p2:fedcba9876543210fedc") == 200


def test_another_tenants_key_does_not_exist(guarded: TestClient, acme: dict[str, str], clock: ManualClock) -> None:
    other = bearer(make_key(guarded.app.state.database, "other", clock.now()))
    key_id = guarded.get("/v1/me", headers=acme).json()["key_id"]
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
        answer = guarded.request(
            method,
            f"/v1/api-keys/{key_id}{path}",
            json={} if method == "POST" else None,
            headers={**other, "Idempotency-Key": '"x"'},
        )
        absent = guarded.get("/v1/api-keys/key_" + "0" * 32, headers=other)
        assert (answer.status_code, answer.json()["detail"]) == (404, absent.json()["detail"])
    assert [key["created_by"] for key in guarded.get("/v1/api-keys", headers=other).json()["items"]] == ["operator"]


def test_keys_are_paged(guarded: TestClient, acme: dict[str, str], clock: ManualClock) -> None:
    for _ in range(4):
        make_key(guarded.app.state.database, "acme", clock.now())
    seen, url = [], "/v1/api-keys?limit=2"
    while url:
        page = guarded.get(url, headers=acme)
        seen += [key["id"] for key in page.json()["items"]]
        url = page.links["next"]["url"] if "next" in page.links else ""
    assert len(seen) == len(set(seen)) == 5


def test_the_loopback_default_ends_with_the_first_key(client: TestClient) -> None:
    assert client.get("/v1/me").json() == {
        "tenant_id": "ten_loopback",
        "actor": "loopback",
        "key_id": None,
        "scopes": sorted(SCOPES),
        "default_currency": "USD",
    }
    for body in ({"scopes": ["quotes:read"]}, {"scopes": sorted(TENANT_SCOPES), "expires_at": "2099-01-01T00:00:00Z"}):
        refused = client.post("/v1/api-keys", json={"name": "first", **body})
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "first_key")
        assert client.get("/v1/me").status_code == 200, "nobody is locked out"
    made = client.post("/v1/api-keys", json={"name": "first", "scopes": sorted(TENANT_SCOPES)})
    assert made.status_code == 201
    assert client.get("/v1/me").status_code == 401
    assert client.get("/v1/me", headers=bearer(made.json()["key"])).json()["tenant_id"] == "ten_loopback"


def test_a_web_page_cannot_rebind_its_name_to_the_loopback_default(client: TestClient) -> None:
    assert client.get("/v1/me", headers={"Host": "attacker.example"}).status_code == 401
    assert client.get("/v1/me", headers={"Host": "127.0.0.1:8000"}).status_code == 200


def test_a_key_holder_has_to_say_which_requests_are_retries(guarded: TestClient, clock: ManualClock) -> None:
    key = bearer(make_key(guarded.app.state.database, "acme", clock.now()))
    body = {"name": "x", "scopes": ["admin"]}
    refused = guarded.post("/v1/api-keys", json=body, headers=key)
    assert (refused.status_code, refused.json()["slug"]) == (400, "idempotency-key-missing")
    assert refused.json()["docs"] == "/docs#idempotency"
    assert guarded.post("/v1/api-keys", json=body, headers={**key, "Idempotency-Key": '"once"'}).status_code == 201
