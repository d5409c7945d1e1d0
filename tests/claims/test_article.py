"""The article behind the product: facts agree with what is known, and the document is what the service says."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.catalog.snapshot import Snapshot
from benchmarks.article.__main__ import TARGET
from benchmarks.article.cases import Article, example_quote, judge_article, read_article
from benchmarks.article.render import render
from benchmarks.article.systems import place_of

GOLDEN = yaml.safe_load((Path(__file__).parents[1] / "golden" / "article.yaml").read_text(encoding="utf-8"))
VERDICTS = {"supported", "optimistic", "pessimistic", "contradicted", "not_decidable"}


@pytest.fixture(scope="module")
def article() -> Article:
    return read_article()


@pytest.fixture(scope="module")
def answers(snapshot: Snapshot, article: Article) -> dict[str, dict[str, Any]]:
    return judge_article(snapshot, article)


@pytest.mark.parametrize("case", GOLDEN, ids=[case["id"] for case in GOLDEN])
def test_what_official_figures_decide(answers: dict[str, dict[str, Any]], case: dict[str, Any]) -> None:
    row = answers[case["id"]]
    assert row["verdict"] == case["verdict"]
    if case["p50"] is not None:
        assert row["predicted"]["p50"] == pytest.approx(case["p50"], abs=case["tolerance"])


def test_every_row_with_a_known_fact_is_golden(article: Article) -> None:
    assert {case.id for case in article.cases if case.we_know} == {case["id"] for case in GOLDEN}


def test_every_claim_is_judged_with_evidence_and_a_reason(answers: dict[str, dict[str, Any]]) -> None:
    for name, row in answers.items():
        assert row["verdict"] in VERDICTS, name
        assert "missing" not in row, name
        assert row["reason"]["en"], name
        assert row["reason"]["zh-CN"], name
        assert row["evidence"] or row["candidate"], name


def test_what_is_said_of_a_row_never_changes_its_verdict(
    snapshot: Snapshot, article: Article, answers: dict[str, dict[str, Any]]
) -> None:
    """``we_know`` and the row's own id are not sent: the verdict comes from computing."""
    for case in article.cases:
        assert "we_know" not in case.claim
        assert "verdict" not in case.claim
    assert judge_article(snapshot, article) == answers


def test_every_system_the_article_names_has_a_place(snapshot: Snapshot, article: Article) -> None:
    assert [name for name in article.systems if place_of(snapshot, name) is None] == []


def test_pitfalls_are_advice_with_their_number(snapshot: Snapshot, article: Article) -> None:
    advice = {row["code"]: row for row in example_quote(snapshot, article)["advice"]}
    for pitfall in article.pitfalls:
        assert advice[pitfall["id"]]["numbers"][pitfall["needs"]]


def test_cost_drivers_are_parts_of_a_quote(snapshot: Snapshot, article: Article) -> None:
    quote = example_quote(snapshot, article)
    shown = {
        **quote["performance"],
        "reruns": quote["run"]["hours_split"]["reruns"],
        "failures": quote["run"]["hours_split"]["failures"],
        "checkpoints": quote["run"]["hours_split"]["checkpoints"],
        "data_stall": quote["run"]["data"],
        "campaign": quote["run"]["hours_split"]["campaign"],
        "cost_per_experiment": quote["unit_costs"]["per_experiment"],
    }
    for driver in article.cost_drivers:
        assert [part for part in driver["quote_shows"] if not shown.get(part)] == [], driver["id"]


def test_the_document_is_up_to_date(snapshot: Snapshot, article: Article, answers: dict[str, dict[str, Any]]) -> None:
    text = render(snapshot, article, answers, example_quote(snapshot, article))
    assert TARGET.read_text(encoding="utf-8") == text, "run python -m benchmarks.article"
