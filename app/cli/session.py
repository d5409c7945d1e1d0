"""What a command works with: the database of the settings, who acts, the time, and where errors go."""

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

import typer
from fastapi.exceptions import RequestValidationError
from sqlalchemy import Connection

from app.access import service as access
from app.access.principal import LOOPBACK_TENANT, SCOPES, Principal
from app.catalog import service as catalog
from app.foundation.clock import Clock, SystemClock
from app.foundation.database import SYSTEM, Database
from app.foundation.migrations import migrate
from app.foundation.problem_handlers import validation_problem
from app.foundation.problems import Problem
from app.foundation.settings import Settings
from app.foundation.telemetry import configure_logging
from app.quotes.service import Acting

OK, ERROR, USAGE, MISMATCH = 0, 1, 2, 3

T = TypeVar("T")


class Session:
    """One command's door to the service, in this process and on the database of the settings."""

    def __init__(self, database: Database, tenant: str) -> None:
        self.database = database
        self.clock: Clock = SystemClock()
        self.principal = Principal(
            tenant_id=tenant,
            actor=f"cli:{getpass.getuser()}",
            scopes=SCOPES,
            is_machine=False,
            may_self_approve=tenant == LOOPBACK_TENANT,
        )

    @property
    def acting(self) -> Acting:
        """Who acts."""
        return Acting(principal=self.principal, clock=self.clock)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Read as the tenant."""
        return self.database.read_now(work, self.principal.tenant_id)

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Change as the tenant."""
        return self.database.transact_now(work, self.principal.tenant_id)


@contextmanager
def open_session(tenant: str = LOOPBACK_TENANT) -> Iterator[Session]:
    """Open the database, bring it up to date, and end with a sentence and exit code 1 where a command is refused."""
    settings = Settings()
    configure_logging("ERROR", settings.log_format)
    migrate(settings.database_url)
    database = Database(settings.database_url)
    try:
        if tenant != LOOPBACK_TENANT and database.read_now(lambda c: access.find_tenant(c, tenant), tenant) is None:
            fail(f"There is no tenant {tenant}. Make it with: python -m app create-tenant {tenant}")
        database.transact_now(catalog.seed_when_empty, SYSTEM)
        yield Session(database, tenant)
    except Problem as problem:
        fail(f"{problem.kind.title_en}: {problem.detail}", *(f"{e.pointer or ''}: {e.message}" for e in problem.errors))
    except RequestValidationError as error:
        errors = validation_problem(error).errors
        fail("The request does not fit the schema.", *(f"{e.pointer or ''}: {e.message}" for e in errors))
    finally:
        database.close()


def fail(*lines: str) -> NoReturn:
    """Say what is wrong on standard error and end with exit code 1."""
    for line in lines:
        typer.echo(line, err=True)
    raise typer.Exit(ERROR)
