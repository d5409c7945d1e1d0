"""``python -m app``: migrate, seed the catalog when it is empty, and serve."""

import importlib
import importlib.util
import sys

import structlog
import uvicorn
from pydantic import ValidationError

from app.foundation.database import SYSTEM, Database
from app.foundation.migrations import migrate
from app.foundation.settings import Settings
from app.foundation.telemetry import configure_logging

log = structlog.get_logger()


def prepare(settings: Settings) -> None:
    """Migrate, and seed what is empty."""
    migrate(settings.database_url)
    if importlib.util.find_spec("app.catalog") is None or importlib.util.find_spec("app.catalog.service") is None:
        return
    catalog = importlib.import_module("app.catalog.service")
    if not hasattr(catalog, "seed_when_empty"):
        return
    database = Database(settings.database_url)
    try:
        database.transact_now(catalog.seed_when_empty, SYSTEM)
    finally:
        database.close()


def main() -> int:
    """Serve until told to stop; 2 when the settings cannot be used."""
    try:
        settings = Settings()
    except ValidationError as error:
        for row in error.errors():
            name = "GPUQUOTE_" + str(row["loc"][0]).upper()
            sys.stderr.write(f"{name}: {row['msg']}\n")
        return 2
    configure_logging(settings.log_level, settings.log_format)
    if not settings.on_loopback:
        sys.stderr.write(
            f"GPUQUOTE_HOST is {settings.host!r}, which other machines can reach, and there are no API keys. "
            "Create one first, or serve on 127.0.0.1.\n"
        )
        return 2
    prepare(settings)
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


if __name__ == "__main__":
    sys.exit(main())
