"""``python -m app``: migrate, seed the catalog when it is empty, and serve. Other commands: ``--help``."""

import argparse
import sys
from datetime import UTC, datetime

import structlog
import uvicorn
from pydantic import ValidationError

from app.access import commands as access_commands
from app.access import service as access
from app.catalog import service as catalog
from app.foundation.database import SYSTEM, Database
from app.foundation.metrics import share_between_workers
from app.foundation.migrations import migrate
from app.foundation.settings import Settings
from app.foundation.telemetry import configure_logging

log = structlog.get_logger()


def prepare(settings: Settings) -> None:
    """Bring the schema up to date, and seed the catalog where it is empty."""
    migrate(settings.database_url)
    database = Database(settings.database_url)
    try:
        database.transact_now(catalog.seed_when_empty, SYSTEM)
    finally:
        database.close()


def refusal_to_serve(settings: Settings) -> str | None:
    """Say why the service must not be opened to other machines as it is configured, or nothing."""
    if settings.on_loopback:
        return None
    if settings.secret is None or settings.peppers is None:
        return (
            f"GPUQUOTE_HOST is {settings.host!r}, which other machines can reach: set GPUQUOTE_SECRET and "
            "GPUQUOTE_PEPPERS, or serve on 127.0.0.1."
        )
    if settings.oidc_issuer is not None:
        return None
    database = Database(settings.database_url)
    try:
        if database.read_now(lambda c: access.keys_exist(c, datetime.now(UTC)), SYSTEM):
            return None
    finally:
        database.close()
    return (
        f"GPUQUOTE_HOST is {settings.host!r}, which other machines can reach, and there are no API keys. Make one: "
        "python -m app create-tenant acme && python -m app create-key acme --name first; or serve on 127.0.0.1."
    )


def serve(settings: Settings) -> int:
    """Serve until told to stop; 2 when it would be unsafe."""
    refusal = refusal_to_serve(settings)
    if refusal is not None:
        sys.stderr.write(refusal + "\n")
        return 2
    share_between_workers(settings)
    log.info("serving", host=settings.host, port=settings.port, workers=settings.worker_count)
    uvicorn.run(
        "app.main:create_app",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.worker_count,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http="httptools",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=20,
    )
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m app", description=__doc__)
    commands = made.add_subparsers(dest="command")
    commands.add_parser("serve", help="migrate, seed when empty, and serve (the default)")
    commands.add_parser("migrate", help="migrate and seed when empty, then stop")
    access_commands.add_parsers(commands)
    return made


def main(arguments: list[str]) -> int:
    """Run a command; 2 when the settings cannot be used."""
    options = parser().parse_args(arguments)
    try:
        settings = Settings()
    except ValidationError as error:
        for row in error.errors():
            sys.stderr.write(f"GPUQUOTE_{str(row['loc'][0]).upper()}: {row['msg']}\n")
        return 2
    configure_logging(settings.log_level, settings.log_format)
    if options.command in access_commands.COMMANDS:
        return access_commands.run(options, settings)
    prepare(settings)
    return 0 if options.command == "migrate" else serve(settings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
