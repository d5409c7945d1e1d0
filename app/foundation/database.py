"""One request, one unit of work: the only door to the database."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, text

from app.foundation.columns import CanonicalJson, ExactDecimal, UtcDateTime, metadata
from app.foundation.engines import create_reader, create_writer, database_url
from app.foundation.tenancy import SYSTEM, System, Tenant, enter_tenant
from app.foundation.writer import Writer, run_alone

__all__ = ["SYSTEM", "CanonicalJson", "Database", "ExactDecimal", "System", "Tenant", "UtcDateTime", "metadata"]

T = TypeVar("T")


class Database:
    """Runs units of work. ``work`` gets a connection inside a transaction, never commits, and may be run again.

    Because a unit may be run again (serialization failure, a batch that was split), it must do nothing but talk to
    the database: no network, no counters of its own, no use of a value left behind by an earlier run.
    """

    def __init__(self, url: str, *, queue_limit: int = 1_000, read_threads: int = 4) -> None:
        self.url = database_url(url)
        self.writer_engine = create_writer(self.url)
        self.reader_engine = create_reader(self.url, pool_size=read_threads)
        self._readers = ThreadPoolExecutor(max_workers=read_threads, thread_name_prefix="reader")
        self._writer = Writer(self.writer_engine, queue_limit=queue_limit)

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    async def transact(self, work: Callable[[Connection], T], *, tenant: Tenant = None) -> T:
        """Run ``work`` in a transaction and return its result after the commit; a failed commit raises."""
        result: T = await self._writer.submit(work, tenant)
        return result

    async def read(self, work: Callable[[Connection], T], *, tenant: Tenant = None) -> T:
        """Run ``work`` on one consistent snapshot of the database, on a connection that cannot write."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self.read_now, work, tenant)

    def transact_now(self, work: Callable[[Connection], T], tenant: Tenant = None) -> T:
        """Do as ``transact``, blocking, for commands and start-up."""
        result: T = run_alone(self.writer_engine, work, tenant)
        return result

    def read_now(self, work: Callable[[Connection], T], tenant: Tenant = None) -> T:
        """Do as ``read``, blocking."""
        with self.reader_engine.connect() as connection, connection.begin():
            enter_tenant(connection, tenant)
            return work(connection)

    async def ping(self) -> None:
        """Raise when the database cannot be reached."""
        await self.read(lambda connection: connection.execute(text("SELECT 1")).scalar_one())

    def close(self) -> None:
        """Finish what is waiting, then let go of every connection."""
        self._writer.close()
        self._readers.shutdown(wait=True)
        self.writer_engine.dispose()
        self.reader_engine.dispose()
