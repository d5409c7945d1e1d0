"""The article's claims as requests, and their answers over the shipped catalog."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from app.catalog import service as catalog
from app.catalog.snapshot import Snapshot
from app.claims.schemas import ClaimsRequest
from app.claims.service import judge_claims
from app.estimates import service as estimates
from app.estimates.schemas import EstimateRequest
from app.foundation.database import Database
from app.foundation.migrations import migrate

DATA = Path(__file__).resolve().parents[1] / "data"
CLAIM_FIELDS = ("metric", "relation", "low", "high", "equals", "text", "job", "accelerator_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row: the claim as sent, and what is said about it."""

    id: str
    claim: Mapping[str, Any]
    we_know: str | None
    says: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """The cases with everything around them."""

    cases: tuple[Case, ...]
    defaults: Mapping[str, Any]
    cost_drivers: tuple[Mapping[str, Any], ...]
    pitfalls: tuple[Mapping[str, Any], ...]
    systems: tuple[str, ...]
    as_of: date


def read_article() -> Article:
    """Read the rows and what stands beside them."""
    rows = yaml.safe_load((DATA / "article_claims.yaml").read_text(encoding="utf-8"))
    beside = yaml.safe_load((DATA / "article_requests.yaml").read_text(encoding="utf-8"))
    cases: list[Case] = []
    for row in rows["claims"]:
        claim = {key: row[key] for key in CLAIM_FIELDS if key in row} | dict(beside["beside"].get(row["id"], {}))
        cases.append(Case(id=row["id"], claim=claim, we_know=row.get("we_know"), says=row.get("text")))
        for also in beside["also"]:
            if also["of"] == row["id"]:
                own = {key: value for key, value in also.items() if key not in ("of", "id", "says")}
                cases.append(Case(id=also["id"], claim={**claim, **own}, we_know=None, says=also["says"]))
    return Article(
        cases=tuple(cases),
        defaults=rows["defaults"],
        cost_drivers=tuple(rows["cost_drivers"]),
        pitfalls=tuple(rows["deployment_pitfalls"]),
        systems=tuple(rows["systems_named"]),
        as_of=beside["as_of"],
    )


def shipped_snapshot() -> Snapshot:
    """The catalog as shipped, in a database that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'article.db'}"
        migrate(url)
        database = Database(url)
        try:
            database.transact_now(lambda connection: catalog.seed_when_empty(connection))
            return database.read_now(catalog.current_snapshot)
        finally:
            database.close()


def judge_article(snapshot: Snapshot, article: Article) -> dict[str, dict[str, Any]]:
    """The answer to every case, by id."""
    answers = {}
    for case in article.cases:
        body = {**article.defaults, "claims": [dict(case.claim)], "as_of": article.as_of}
        request = ClaimsRequest.model_validate(body)
        answers[case.id] = judge_claims(snapshot, request, article.as_of)["claims"][0]
    return answers


def example_quote(snapshot: Snapshot, article: Article) -> Mapping[str, Any]:
    """The recommended option of the article's 10-billion campaign, for cost drivers and pitfalls."""
    job = {
        "kind": "training",
        "model": {"parameters": 1e10},
        "tokens": 1.1e11,
        "campaign": {"full_runs": 2, "partial_runs": 6, "fraction": 0.1, "reruns_expected": 0.2},
    }
    supply = {**article.defaults["candidate"], "accelerator_count": 64, "purchase_models": ["on_demand"]}
    body = {"items": [{"job": job, "supply": supply}], "as_of": article.as_of}
    answer = estimates.estimate(snapshot, EstimateRequest.model_validate(body), article.as_of)
    found: Mapping[str, Any] = {
        **answer.content["items"][0]["options"][0],
        "run": answer.engine_outputs["items"][0]["runs"][0],
    }
    return found
