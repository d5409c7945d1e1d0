"""The shipped catalog, and the article's defaults."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from app.catalog.snapshot import Snapshot
from app.claims.schemas import ClaimsRequest
from app.claims.service import judge_claims
from tests.estimates.conftest import seeded_database, snapshot

__all__ = ["seeded_database", "snapshot"]

TODAY = date(2026, 11, 30)
H100, B200 = {"accelerators": ["h100-sxm5-80"]}, {"accelerators": ["b200-sxm-180"]}
TRAINING = {"kind": "training", "model": {"parameters": 1e10}, "tokens": 1.1e11}
SERVING = {
    "kind": "inference",
    "model": {"ref": "llama3-70b"},
    "traffic": {"concurrency": 64, "input_tokens": {"mean": 1000}, "output_tokens": {"mean": 500}},
}

Judge = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def judge_one(snapshot: Snapshot) -> Judge:
    """Judges one claim; body fields beside it may be given."""

    def run(claim: dict[str, Any], **body: Any) -> dict[str, Any]:
        whole = {"baseline": H100, "candidate": B200, **body, "claims": [claim]}
        request = ClaimsRequest.model_validate({k: v for k, v in whole.items() if v is not None})
        answer: dict[str, Any] = judge_claims(snapshot, request, TODAY)["claims"][0]
        return answer

    return run
