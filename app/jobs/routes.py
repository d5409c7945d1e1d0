"""``/v1/jobs/{id}``: how far a request answered later has come, and giving it up."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import Response as StarletteResponse

from app.access.dependencies import require_scopes
from app.access.principal import Principal
from app.foundation.problems import preferred_language
from app.jobs import service
from app.jobs.answering import OPEN_HEADERS
from app.jobs.job import OPEN, Job
from app.jobs.schemas import JobView

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
Reader = Annotated[Principal, Depends(require_scopes("quotes:read"))]
Writer = Annotated[Principal, Depends(require_scopes("quotes:write"))]


@router.get("/{job_id}", summary="How far a job has come")
async def show_job(request: Request, response: Response, principal: Reader, job_id: str) -> JobView:
    """Give the state; ``result_url`` once it is done, ``problem`` when it failed. Ask again after Retry-After."""
    job = await request.app.state.database.read(
        lambda c: service.find(c, principal.tenant_id, job_id), tenant=principal.tenant_id
    )
    return _shown(request, response, job)


@router.delete("/{job_id}", summary="Cancel a job")
async def cancel_job(request: Request, response: Response, principal: Writer, job_id: str) -> JobView:
    """End a queued or running job: it will store nothing. A finished job is refused."""
    clock = request.app.state.clock
    job = await request.app.state.database.transact(
        lambda c: service.cancel(c, principal, job_id, clock=clock), tenant=principal.tenant_id
    )
    return _shown(request, response, job)


def _shown(request: Request, response: StarletteResponse, job: Job) -> JobView:
    language = preferred_language(request.headers.get("accept-language"))
    response.headers.update({"Cache-Control": "no-store", "Vary": "Accept-Language, Authorization"})
    if job.status in OPEN:
        response.headers.update(OPEN_HEADERS)
    return JobView.of(job, language=language, problems_url=request.app.state.settings.problems_url)
