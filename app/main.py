"""The application: the only place that knows every room."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute

from app import __version__
from app.access.authentication import Authenticator
from app.access.routes import router as access_router
from app.catalog import service as catalog
from app.catalog.routes import router as catalog_router
from app.claims.routes import router as claims_router
from app.engine.version import ENGINE_VERSION
from app.estimates.routes import router as estimates_router
from app.events.egress import Egress
from app.events.routes import router as events_router
from app.events.worker import EventWorker
from app.foundation.api_document import DocumentedApi
from app.foundation.clock import Clock, SystemClock
from app.foundation.database import Database
from app.foundation.docs_page import add_docs_page
from app.foundation.health import router as health_router
from app.foundation.metrics import MetricsMiddleware, metrics
from app.foundation.middleware import BodyMiddleware, HeadMiddleware, TraceMiddleware
from app.foundation.negotiation import refuse_unacceptable
from app.foundation.problem_catalogue import CATALOGUE
from app.foundation.problem_handlers import install_problem_handlers
from app.foundation.problems import Problem
from app.foundation.query import refuse_unknown_parameters
from app.foundation.settings import Settings
from app.foundation.telemetry import configure_logging
from app.jobs.routes import router as jobs_router
from app.jobs.worker import JobWorker
from app.pricing.errors import MoneyFormatError, PricingError
from app.proposals.routes import router as proposals_router
from app.quotes.asked import KINDS as QUOTE_KINDS
from app.quotes.routes import router as quotes_router
from app.quotes.sweeper import Sweeper

# In the order of the API document. A room that is not named here is not served; a test finds the forgotten ones.
ROUTERS = (
    health_router,
    access_router,
    events_router,
    jobs_router,
    catalog_router,
    estimates_router,
    quotes_router,
    claims_router,
    proposals_router,
)


def money_problem(error: Exception) -> Problem:
    """Money that cannot be worked out is refused under its slug: never guessed, and not a fault of ours."""
    assert isinstance(error, PricingError)
    slug = error.code if error.code in CATALOGUE else "internal"
    is_size = isinstance(error, MoneyFormatError)
    advice = "smaller prices or less work" if is_size else "amounts in one currency, or in ones with a rate on that day"
    return Problem(slug, f"{error}. State {advice}.")


def operation_id(route: APIRoute) -> str:
    """Name an operation as generated clients call it: what it belongs to, and what it does."""
    about = [str(tag).lower().replace(" ", "_") for tag in route.tags[:1]]
    return "_".join([*about, route.name])


async def catalog_check(database: Database) -> str | None:
    """Without a published catalog there is nothing to quote from."""
    try:
        await database.read(catalog.current_revision)
    except Problem:
        return "the catalog has not been seeded"
    return None


def create_app(settings: Settings | None = None, *, clock: Clock | None = None) -> FastAPI:
    """Build the service. The database is opened when the application starts and drained when it stops."""
    settings = settings or Settings()
    configure_logging(settings.log_level, settings.log_format)

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        database = Database(
            settings.database_url, queue_limit=settings.write_queue_limit, read_threads=settings.read_threads
        )
        application.state.database = database
        application.state.authenticator = Authenticator(settings, database, application.state.clock)
        worker = EventWorker(database, application.state.clock, signing_key=settings.signing_key, egress=Egress())
        application.state.event_worker = worker
        sweeper = Sweeper(database, application.state.clock)
        application.state.quote_sweeper = sweeper
        jobs = JobWorker(database, application.state.clock, kinds=QUOTE_KINDS, budget_s=settings.job_budget_s)
        application.state.job_worker = jobs
        meter = application.state.authenticator.meter
        if settings.background_work:
            meter.start()
            worker.start()
            jobs.start()
            sweeper.start()
        try:
            yield
        finally:
            await jobs.stop()
            await sweeper.stop()
            await worker.stop()
            await meter.stop()
            database.close()

    application = DocumentedApi(
        title="gpuquote",
        version=__version__,
        summary="Quotes for LLM training and inference: what it costs, how long it takes, on what hardware.",
        lifespan=lifespan,
        dependencies=[Depends(refuse_unknown_parameters), Depends(refuse_unacceptable)],
        redirect_slashes=False,
        docs_url=None,
        generate_unique_id_function=operation_id,
        redoc_url=None,
    )
    application.state.settings = settings
    application.state.clock = clock or SystemClock()
    application.state.engine_version = ENGINE_VERSION
    application.state.readiness_checks = (catalog_check,)
    for router in ROUTERS:
        application.include_router(router)
    add_docs_page(application)
    install_problem_handlers(application, problems_url=settings.problems_url, translated={PricingError: money_problem})
    application.add_middleware(
        BodyMiddleware,
        max_body_bytes=settings.max_body_bytes,
        max_upload_bytes=settings.max_upload_bytes,
        problems_url=settings.problems_url,
    )
    application.add_middleware(TraceMiddleware, problems_url=settings.problems_url)
    application.add_middleware(HeadMiddleware)
    application.add_middleware(MetricsMiddleware)
    application.add_route("/metrics", metrics, include_in_schema=False)
    return application
