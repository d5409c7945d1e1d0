"""Bring a database to the current schema. All rooms share one line of migrations."""

import importlib
import importlib.util
import pkgutil
from functools import lru_cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

import app
from app.foundation.engines import create_migrator, database_url

ROOT = Path(__file__).resolve().parents[2]
# Any number no other program uses on the same database: two replicas that start together must not both migrate.
ADVISORY_LOCK = 0x6770_7571_6F74_6501


def load_all_tables() -> None:
    """Import ``tables`` of every room, so that the shared metadata is complete."""
    for room in pkgutil.iter_modules(app.__path__, "app."):
        if room.ispkg and importlib.util.find_spec(f"{room.name}.tables") is not None:
            importlib.import_module(f"{room.name}.tables")


def alembic_config() -> Config:
    config = Config(str(ROOT / "alembic.ini"))
    config.set_main_option("script_location", str(ROOT / "migrations"))
    return config


@lru_cache(maxsize=1)
def head_revision() -> str | None:
    """Return the newest migration that this build knows."""
    return ScriptDirectory.from_config(alembic_config()).get_current_head()


def current_revision(connection: Connection) -> str | None:
    """Return the migration the database stands at."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(url: str, revision: str = "heads") -> None:
    """Upgrade (or with a relative or older revision, downgrade) in one transaction, one process at a time."""
    engine = create_migrator(database_url(url))
    try:
        with engine.connect() as connection, connection.begin():
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
            config = alembic_config()
            config.attributes["connection"] = connection
            is_down = revision == "base" or revision.startswith("-")
            (command.downgrade if is_down else command.upgrade)(config, revision)
    finally:
        engine.dispose()
