"""A service with two tenants and keys, as it runs where others can reach it."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.access import service, tenants
from app.access.principal import SCOPES, Principal
from app.foundation.clock import ManualClock
from app.foundation.database import SYSTEM, Database
from app.foundation.settings import Settings
from app.main import create_app

PEPPERS = "p1:0123456789abcdef0123"


def make_key(
    database: Database,
    tenant: str,
    at: datetime,
    scopes: frozenset[str] = SCOPES,
    peppers: str = PEPPERS,
    **options: object,
) -> str:
    """Make a key of a tenant (which is made too) and return what the caller sends."""
    pepper_list = Settings(peppers=SecretStr(peppers)).pepper_list
    if database.read_now(lambda c: service.find_tenant(c, tenant), tenant) is None:
        database.transact_now(
            lambda c: tenants.create(c, tenant_id=tenant, name=tenant, default_currency="EUR", now=at), SYSTEM
        )
    operator = Principal(tenant_id=tenant, actor="operator", scopes=SCOPES)
    _, text = database.transact_now(
        lambda c: service.create_key(
            c, principal=operator, name="test", scopes=sorted(scopes), now=at, peppers=pepper_list, **options
        ),
        tenant,
    )
    return text


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def guarded_settings(database_url: str) -> Settings:
    return Settings(
        database_url=database_url,
        log_level="ERROR",
        background_work=False,
        host="0.0.0.0",
        secret=SecretStr("a secret of the tests"),
        peppers=SecretStr(PEPPERS),
    )


@pytest.fixture
def guarded_app(guarded_settings: Settings, clock: ManualClock) -> FastAPI:
    return create_app(guarded_settings, clock=clock)


@pytest.fixture
def guarded(guarded_app: FastAPI) -> Iterator[TestClient]:
    with TestClient(guarded_app, raise_server_exceptions=False) as client:
        yield client
