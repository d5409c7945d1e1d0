"""Is the process alive, is the service ready to quote, and what runs here."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from app.foundation.database import Database
from app.foundation.migrations import current_revision, head_revision
from app.foundation.problems import Problem

# Says what is missing, or nothing. Rooms add theirs to ``app.state.readiness_checks``.
ReadinessCheck = Callable[[Database], Awaitable[str | None]]

router = APIRouter(tags=["service"])


class Health(BaseModel):
    """The service can quote."""

    status: str


class Version(BaseModel):
    """What runs here."""

    version: str
    engine_version: str
    schema_revision: str | None


async def schema_check(database: Database) -> str | None:
    """Compare the database's migration with the newest one of this build."""
    revision = await database.read(current_revision)
    expected = head_revision()
    if revision == expected:
        return None
    return f"the database stands at migration {revision or 'none'}, this build needs {expected}"


async def _ready(request: Request) -> None:
    database: Database = request.app.state.database
    checks: list[ReadinessCheck] = [schema_check, *getattr(request.app.state, "readiness_checks", ())]
    for check in checks:
        try:
            missing = await check(database)
        except SQLAlchemyError as error:
            missing = f"the database cannot be used ({type(error).__name__})"
        if missing is not None:
            raise Problem("maintenance", f"Not ready to quote: {missing}. Try again.", headers={"Retry-After": "5"})


@router.get("/healthz", summary="200 only when the service is ready to quote")
async def healthz(_: Annotated[None, Depends(_ready)]) -> Health:
    return Health(status="ok")


@router.get("/readyz", summary="The same answer as /healthz, for orchestrators that ask for it")
async def readyz(_: Annotated[None, Depends(_ready)]) -> Health:
    return Health(status="ok")


@router.get("/version", summary="What runs here")
async def version(request: Request) -> Version:
    return Version(
        version=request.app.version,
        engine_version=request.app.state.engine_version,
        schema_revision=head_revision(),
    )
