"""How Alembic reaches the database and what it compares against."""

import os

from alembic import context
from sqlalchemy import Connection

from app.foundation.columns import metadata
from app.foundation.engines import create_migrator, database_url
from app.foundation.migrations import load_all_tables

load_all_tables()


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
        user_module_prefix="",
        transactional_ddl=True,
    )
    context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    url = os.environ.get("GPUQUOTE_DATABASE_URL", "sqlite:///var/gpuquote.db")
    with create_migrator(database_url(url)).connect() as connection, connection.begin():
        run(connection)
