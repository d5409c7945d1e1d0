"""How fast claims are: ``python -m benchmarks.claims_speed``.

Processor time of one core for every claim of the article, a two-way comparison and a Sobol study, each asked for the
first time: engine answers are forgotten before every repeat, prices are not (they change with the catalog only).
"""

import time
from collections.abc import Callable
from functools import partial

from app.catalog.snapshot import Snapshot
from app.claims.comparison import compare
from app.claims.schemas import ClaimsRequest, ComparisonRequest
from app.claims.service import judge_claims
from app.estimates import item_runs, physics, service
from app.estimates.schemas import EstimateRequest
from app.estimates.sensitivity import SAMPLES, Limits, sensitivity
from benchmarks.article.cases import Article, read_article, shipped_snapshot

REPEATS = 5
TARGET_MS, SOBOL_TARGET_MS = 100.0, 1000.0
JOB = {"kind": "training", "model": {"parameters": 1e11}, "tokens": 4.4e11}


def forget() -> None:
    """Forget what the engine has answered."""
    for memory in (physics._searched, physics._swept, physics._served):
        memory.clear()
    item_runs._remembered.clear()


def first_time_ms(work: Callable[[], object]) -> float:
    """Processor time of the fastest of several first times [ms]."""
    times = []
    for _ in range(REPEATS):
        forget()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def show(name: str, milliseconds: float, target: float) -> None:
    """One line."""
    print(f"{name:36} {milliseconds:8.1f} ms   target {target:6.0f} ms   {'ok' if milliseconds <= target else 'over'}")


def claims(snapshot: Snapshot, article: Article) -> None:
    """Every claim of the article, alone."""
    for case in article.cases:
        body = {**article.defaults, "claims": [dict(case.claim)], "as_of": article.as_of}
        request = ClaimsRequest.model_validate(body)
        show(case.id, first_time_ms(partial(judge_claims, snapshot, request, article.as_of)), TARGET_MS)


def comparison(snapshot: Snapshot, article: Article) -> None:
    """H100 against B200 for one job."""
    supplies = [{**article.defaults[name], "purchase_models": ["on_demand"]} for name in ("baseline", "candidate")]
    for scaling in ("none", "coarse", "full"):
        body = {"job": JOB, "supplies": supplies, "accelerator_count": 256, "scaling": scaling}
        request = ComparisonRequest.model_validate(body)
        work = first_time_ms(partial(compare, snapshot, request, article.as_of))
        show(f"comparison of two, scaling {scaling}", work, TARGET_MS)


def sobol(snapshot: Snapshot, article: Article) -> None:
    """Sensitivity of one option."""
    supply = {**article.defaults["candidate"], "accelerator_count": 256, "purchase_models": ["on_demand"]}
    request = EstimateRequest.model_validate({"items": [{"job": JOB, "supply": supply}]})
    option = service.estimate(snapshot, request, article.as_of).content["items"][0]["options"][0]
    limits = Limits(deadline_hours=400.0, budget=1e6)
    show(
        f"Sobol study, {SAMPLES} samples", first_time_ms(lambda: sensitivity(snapshot, option, limits)), SOBOL_TARGET_MS
    )


def main() -> None:
    """Print the table."""
    snapshot, article = shipped_snapshot(), read_article()
    claims(snapshot, article)
    comparison(snapshot, article)
    sobol(snapshot, article)


if __name__ == "__main__":
    main()
