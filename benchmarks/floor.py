"""The least a service can do for one accepted, stored quote: check about 1 KB, store about 4 KB, answer 201.

No engine, tenancy, idempotency, audit or log. It stands on the same framework and the same kind of database door
(one writer thread, shared commits, full durability), so that the ratio to it is what the product itself costs.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import orjson
from fastapi import FastAPI, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Column, Connection, MetaData, String, Table, Text, insert

from app.foundation.database import Database
from app.foundation.engines import create_migrator
from app.foundation.identifiers import new_id

metadata = MetaData()
stored = Table("floor_quotes", metadata, Column("id", String(64), primary_key=True), Column("document", Text))
LINES = [
    {"id": str(n), "amount": "0.00", "currency": "USD", "description": "a line of the floor" * 6} for n in range(24)
]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Model(Strict):
    parameters: float = Field(gt=0)


class Job(Strict):
    kind: Literal["training", "inference"]
    model: Model
    tokens: float = Field(gt=0)


class Supply(Strict):
    accelerators: list[str] = Field(default_factory=list, max_length=64)
    accelerator_count: int | None = Field(default=None, gt=0)
    providers: list[str] = Field(default_factory=list, max_length=64)


class Item(Strict):
    id: Annotated[str, Field(max_length=64)]
    job: Job
    supply: Supply = Supply()


class Quote(Strict):
    title: str = Field(default="", max_length=200)
    items: list[Item] = Field(min_length=1, max_length=64)


def create() -> FastAPI:
    """Build the floor over the database named in the environment."""
    url = os.environ["GPUQUOTE_DATABASE_URL"]

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(url)
        engine = create_migrator(database.url)
        metadata.create_all(engine)
        engine.dispose()
        app.state.database = database
        yield
        database.close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/v1/quotes", status_code=201)
    async def create_quote(body: Quote) -> Response:
        quote_id = new_id("quo")
        document: dict[str, Any] = {"id": quote_id, "spec": body.model_dump(mode="json"), "lines": LINES}
        content = orjson.dumps(document)

        def work(connection: Connection) -> None:
            connection.execute(insert(stored).values(id=quote_id, document=content.decode()))

        await app.state.database.transact(work)
        return Response(content, status_code=201, media_type="application/json")

    return app
