"""The SQLAlchemy engines: a writing one and a reading one, for SQLite and PostgreSQL."""

import sqlite3
import time
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

BUSY_TIMEOUT_S = 15
_BUSY_PAUSE_S = 0.02
# A unit that waits longer for a row lock gives up, so that one hot row cannot hold the writer thread for ever.
LOCK_TIMEOUT_MS = 4_000
STATEMENT_TIMEOUT_MS = 60_000
# Serialization failure, deadlock, lock not available: the transaction was rolled back and may be run again.
_TRANSIENT_SQLSTATES = frozenset({"40001", "40P01", "55P03"})
# SQLITE_BUSY and SQLITE_LOCKED; the primary code is the low byte of the extended one.
_TRANSIENT_SQLITE_CODES = frozenset({5, 6})


def database_url(url: str) -> URL:
    """Parse the setting; ``postgresql://`` means psycopg 3."""
    parsed = make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise ValueError("an in-memory SQLite database cannot be shared by the readers and the writer: name a file")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise ValueError(f"database driver {parsed.drivername!r} is not supported: use sqlite or postgresql+psycopg")
    return parsed


def create_writer(url: URL, *, pool_size: int = 4) -> Engine:
    """Engine whose transactions take the write lock at once (SQLite) and are durable when committed."""
    if url.get_backend_name() == "sqlite":
        return _create_sqlite(url, pool_size=pool_size, begin="BEGIN IMMEDIATE", read_only=False)
    return _create_postgresql(url, pool_size=pool_size)


def create_reader(url: URL, *, pool_size: int) -> Engine:
    """Engine that sees one consistent snapshot a transaction and cannot write."""
    if url.get_backend_name() == "sqlite":
        return _create_sqlite(url, pool_size=pool_size, begin="BEGIN", read_only=True)
    engine = _create_postgresql(url, pool_size=pool_size, isolation_level="REPEATABLE READ")

    @event.listens_for(engine, "connect")
    def _read_only(dbapi_connection: Any, _record: object) -> None:
        dbapi_connection.read_only = True

    return engine


def create_migrator(url: URL) -> Engine:
    """Engine for migrations: foreign keys off on SQLite, or rebuilding a table would delete its children."""
    if url.get_backend_name() == "sqlite":
        return _create_sqlite(url, pool_size=1, begin="BEGIN IMMEDIATE", read_only=False, foreign_keys=False)
    return create_engine(url, pool_size=1)


def _create_sqlite(url: URL, *, pool_size: int, begin: str, read_only: bool, foreign_keys: bool = True) -> Engine:
    Path(str(url.database)).expanduser().parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=8,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        json_serializer=_dumps,
        # An error is logged with its statement: the values in it are customers' data and sealed secrets.
        hide_parameters=True,
        json_deserializer=orjson.loads,
    )

    @event.listens_for(engine, "connect")
    def _pragmas(dbapi_connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own transactions leave the first SELECT outside; ours begin explicitly.
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        _write_ahead(cursor)
        cursor.execute("PRAGMA synchronous=FULL")
        # INSERT OR REPLACE deletes what it replaces: the triggers that refuse a deletion see it only with this
        cursor.execute("PRAGMA recursive_triggers=ON")
        cursor.execute(f"PRAGMA foreign_keys={'ON' if foreign_keys else 'OFF'}")
        if read_only:
            cursor.execute("PRAGMA query_only=ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Switch to the write-ahead log; the busy timeout does not cover two processes that switch at once."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in _TRANSIENT_SQLITE_CODES
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(_BUSY_PAUSE_S)


def _create_postgresql(url: URL, *, pool_size: int, isolation_level: str = "READ COMMITTED") -> Engine:
    options = (
        f"-c lock_timeout={LOCK_TIMEOUT_MS} -c statement_timeout={STATEMENT_TIMEOUT_MS}"
        f" -c idle_in_transaction_session_timeout={STATEMENT_TIMEOUT_MS} -c timezone=UTC"
    )
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=8,
        pool_pre_ping=True,
        isolation_level=isolation_level,
        connect_args={"options": options, "application_name": "gpuquote"},
        json_serializer=_dumps,
        # An error is logged with its statement: the values in it are customers' data and sealed secrets.
        hide_parameters=True,
        json_deserializer=orjson.loads,
    )


def _dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def is_transient(error: BaseException) -> bool:
    """Tell whether the database rolled the transaction back for a reason that may be gone on the next try."""
    if not isinstance(error, DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.OperationalError):
        return error.orig.sqlite_errorcode & 0xFF in _TRANSIENT_SQLITE_CODES
    return getattr(error.orig, "sqlstate", None) in _TRANSIENT_SQLSTATES
