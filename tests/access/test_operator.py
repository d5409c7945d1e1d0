"""The operator makes, limits and closes tenants; nobody else does, and each keeps to its own trail."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.__main__ import main
from app.access.principal import OPERATOR_SCOPES, SCOPES, TENANT_SCOPES
from app.foundation.clock import ManualClock
from app.foundation.settings import Settings
from app.main import create_app
from tests.access.conftest import PEPPERS, bearer, make_key

NEW = {"tenant_id": "acme", "name": "ACME", "default_currency": "JPY", "quotas": {"webhooks": 2}, "first_key": "first"}


@pytest.fixture
def operator(guarded: TestClient, clock: ManualClock) -> dict[str, str]:
    return bearer(make_key(guarded.app.state.database, "operator", clock.now(), SCOPES))


def create(client: TestClient, who: dict[str, str], key: str = "k", **changes: Any) -> Any:
    return client.post("/v1/tenants", json={**NEW, **changes}, headers={**who, "Idempotency-Key": key})


def test_a_new_tenant_can_begin_at_once(guarded: TestClient, operator: dict[str, str]) -> None:
    made = create(guarded, operator)
    assert made.status_code == 201, made.text
    assert made.headers["location"] == "/v1/tenants/acme"
    own = bearer(made.json()["key"])
    me = guarded.get("/v1/me", headers=own).json()
    assert (me["tenant_id"], me["default_currency"], set(me["scopes"])) == ("acme", "JPY", set(TENANT_SCOPES))
    assert create(guarded, operator).json() == {**made.json(), "key": None}
    assert guarded.get("/v1/tenants/acme", headers=operator).json()["quotas"]["webhooks"] == 2
    assert guarded.get("/v1/tenants/acme", headers=own).status_code == 403
    trails = [guarded.get("/v1/audit", headers=who).json()["items"] for who in (operator, own)]
    assert [entry["action"] for entry in trails[0]][-1] == "tenant.create"
    assert [(entry["action"], entry["actor"].partition(":")[0]) for entry in trails[1]] == [("key.create", "operator")]


def test_a_tenants_administrator_gives_nobody_the_operators_rights(guarded: TestClient, clock: ManualClock) -> None:
    own = bearer(make_key(guarded.app.state.database, "acme", clock.now(), TENANT_SCOPES))
    assert create(guarded, own, tenant_id="other").status_code == 403
    for scope in OPERATOR_SCOPES:
        body = {"name": "x", "scopes": [scope]}
        refused = guarded.post("/v1/api-keys", json=body, headers={**own, "Idempotency-Key": scope})
        assert (refused.status_code, refused.json()["slug"]) == (403, "insufficient-scope")


@pytest.mark.parametrize(
    ("changes", "status", "pointer"),
    [
        ({"tenant_id": "Acme"}, 422, "/tenant_id"),
        ({"tenant_id": "a"}, 422, "/tenant_id"),
        ({"tenant_id": "a'; --"}, 422, "/tenant_id"),
        ({"default_currency": "XXX"}, 422, "/default_currency"),
        ({"quotas": {"wishes": 1}}, 422, "/quotas/wishes"),
        ({"quotas": {"webhooks": -1}}, 422, "/quotas/webhooks"),
        ({"quotas": {"webhooks": True}}, 422, "/quotas/webhooks"),
        ({"requests_per_minute": "60"}, 422, "/requests_per_minute"),
        ({"tenant_id": "operator"}, 409, None),
    ],
)
def test_a_tenant_that_cannot_be_made(
    guarded: TestClient, operator: dict[str, str], changes: dict[str, Any], status: int, pointer: str | None
) -> None:
    refused = create(guarded, operator, **changes)
    assert (refused.status_code, refused.json().get("pointer")) == (status, pointer)
    listed = guarded.get("/v1/tenants", headers=operator).json()["items"]
    assert [tenant["tenant_id"] for tenant in listed] == ["operator"]


def test_limits_change_and_a_closed_tenant_is_out(guarded: TestClient, operator: dict[str, str]) -> None:
    own = bearer(create(guarded, operator).json()["key"])
    changed = guarded.patch(
        "/v1/tenants/acme", json={"requests_per_minute": 9, "quotas": {"webhooks": None}}, headers=operator
    )
    assert (changed.status_code, changed.json()["quotas"]["webhooks"]) == (200, 50)
    assert '"default";q=9;' in guarded.get("/v1/me", headers=own).headers["ratelimit-policy"]
    assert guarded.patch("/v1/tenants/acme", json={"closed": True}, headers=operator).status_code == 200
    assert guarded.get("/v1/me", headers=own).status_code == 401
    guarded.patch("/v1/tenants/acme", json={"closed": False, "name": None}, headers=operator)
    assert guarded.get("/v1/me", headers=own).status_code == 200
    assert guarded.patch("/v1/tenants/none", json={"name": "x"}, headers=operator).status_code == 404
    assert guarded.get("/v1/audit/verify", headers=operator).json()["match"]


@pytest.fixture
def commands(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUQUOTE_DATABASE_URL", database_url)
    monkeypatch.setenv("GPUQUOTE_PEPPERS", PEPPERS)


@pytest.mark.usefixtures("commands")
def test_the_command_line_makes_the_first_operator(
    database_url: str, capsys: pytest.CaptureFixture[str], clock: ManualClock
) -> None:
    assert main(["create-tenant", "house"]) == 0
    assert main(["create-key", "house", "--name", "operator", "--scopes", "operator"]) == 0
    operator = bearer(capsys.readouterr().out.strip().rpartition("\t")[2])
    assert main(["create-key", "house", "--name", "usual"]) == 0
    usual = bearer(capsys.readouterr().out.strip().rpartition("\t")[2])
    assert main(["set-quota", "house", "webhooks", "7"]) == 0
    assert main(["set-quota", "house", "webhooks", "many"]) == 1
    assert main(["set-quota", "nobody", "webhooks", "7"]) == 1
    settings = Settings(
        database_url=database_url, log_level="CRITICAL", background_work=False, peppers=SecretStr(PEPPERS)
    )
    with TestClient(create_app(settings, clock=clock), base_url="http://127.0.0.1:8000") as client:
        assert client.get("/v1/tenants/house", headers=operator).json()["quotas"]["webhooks"] == 7
        assert client.get("/v1/tenants", headers=usual).status_code == 403
