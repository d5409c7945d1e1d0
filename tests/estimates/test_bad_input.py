"""Bad input: each gets a problem with a pointer, the reason and the nearest value that would do, and leaves no row."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import inspect, text

from app.catalog import service as catalog
from tests.estimates.conftest import body, inference, training

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
         "intermediate_size": 14336, "vocab_size": 128256}  # fmt: skip
MODEL = {"model": {"parameters": 1e10}}


@pytest.fixture
def seeded(client: TestClient, database: Any) -> Iterator[TestClient]:
    database.transact_now(lambda connection: catalog.seed_when_empty(connection))
    return client


def edited(path: str, value: object, job: dict[str, Any] | None = None) -> dict[str, Any]:
    """A good body with one value put in at a JSON pointer."""
    request = body(job or training())
    node: Any = request
    *parents, last = path.strip("/").split("/")
    for name in parents:
        node = node[int(name)] if isinstance(node, list) else node.setdefault(name, {})
    node[int(last) if isinstance(node, list) else last] = value
    return request


CASES: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("unknown model", edited("/items/0/job/model", {"ref": "llama3-70bb"}), "validation-failed",
     "/items/0/job/model/ref", "llama3-70b"),
    ("unknown accelerator", edited("/items/0/supply/accelerators", ["h100-sxm"]), "validation-failed",
     "/items/0/supply/accelerators/0", "h100-sxm5-80"),
    ("unknown region", edited("/items/0/supply/regions", ["us-east-9"]), "validation-failed",
     "/items/0/supply/regions/0", "us-east"),
    ("unknown provider", edited("/items/0/supply/providers", ["awss"]), "validation-failed",
     "/items/0/supply/providers/0", "aws"),
    ("unknown storage", edited("/items/0/job/data", {"storage": "wekka"}), "validation-failed",
     "/items/0/job/data/storage", "weka"),
    ("unknown field", edited("/items/0/job/tokenz", 1), "validation-failed", "/items/0/job/tokenz", "not known"),
    ("negative tokens", edited("/items/0/job/tokens", -1e9), "validation-failed", "/items/0/job/tokens", "1"),
    ("too many tokens", edited("/items/0/job/tokens", 1e30), "validation-failed", "/items/0/job/tokens",
     "100000000000000000"),
    ("text as a number", edited("/items/0/job/tokens", "1e9"), "validation-failed", "/items/0/job/tokens", "number"),
    ("a fraction of an accelerator", edited("/items/0/supply/accelerator_count", 1.5), "validation-failed",
     "/items/0/supply/accelerator_count", "integer"),
    ("no work", edited("/items/0/job", {"kind": "training", **MODEL}), "validation-failed", "/items/0", "job.tokens"),
    *((f"a transformer that is {type(odd).__name__}", edited("/items/0/job/model", {"transformer": odd}),
       "validation-failed", "/items/0/job/model/transformer", "a JSON object is expected")
      for odd in (7, 0.5, True, "llama", [], [None], ["groups"])),
    *((f"a context that is {odd!r}", edited("/items/0/job/model", {"huggingface_config": {
        **LLAMA, "max_position_embeddings": odd}}), "validation-failed", "/items/0/job/model/huggingface_config",
       "max_position_embeddings is a whole number") for odd in ({}, [], "x", True, 0.5, -1)),
    ("no time at all", edited("/items/0/constraints/deadline_hours", 5e-324), "validation-failed",
     "/items/0/constraints/deadline_hours", "0.000000001"),
    ("next to no time", edited("/items/0", {"job": training(1e17), "constraints": {"deadline_hours": 1e-9}}),
     "infeasible-spec", "/items/0/constraints/deadline_hours", "fastest option"),
    ("no speed at all", edited("/items/0/job/efficiency_override", {"tokens_per_second": 5e-324}),
     "validation-failed", "/items/0/job/efficiency_override/tokens_per_second", "0.000000001"),
    ("a run that never ends", edited("/items/0", {
        "job": training(1e13, efficiency_override={"tokens_per_second": 1e-9}),
        "supply": {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64}}), "infeasible-spec", "/items/0/job",
     "has no price"),
    ("two models", edited("/items/0/job/model", {"ref": "llama3-70b", "parameters": 1e10}), "validation-failed",
     "/items/0/job/model", "exactly one"),
    ("money as a number", edited("/items/0/constraints/budget", {"amount": 5, "currency": "USD"}),
     "money-not-string", "/items/0/constraints/budget/amount", "strings"),
    ("markup as a percentage", edited("/terms/markup", "15%"), "money-format", "/terms/markup", "0.15"),
    ("markup as a number tells the form", edited("/terms/markup", 15), "money-not-string", "/terms/markup",
     "decimal fraction"),
    ("too many items", edited("/items", [{"id": f"i{n}", "job": training()} for n in range(21)]), "validation-failed",
     "/items", "20"),
    ("too many options", edited("/items/0/constraints", {"max_options": 101}), "validation-failed",
     "/items/0/constraints/max_options", "100"),
    ("too many names", edited("/items/0/supply/providers", ["aws"] * 201), "validation-failed",
     "/items/0/supply/providers", "200"),
    ("too many decimals", edited("/terms/markup", "0." + "1" * 40), "money-format", "/terms/markup", "digits"),
    ("unknown kind", edited("/items/0/job/kind", "trainin"), "validation-failed", "/items/0/job/kind", "training"),
    ("no kind", edited("/items/0/job", {**MODEL, "tokens": 1e9}), "validation-failed", "/items/0/job/kind", "kind"),
    ("beyond the context", edited("/items/0/job", {**inference(), "model": {"ref": "llama3-8b"}, "traffic": {
        "concurrency": 1, "input_tokens": {"mean": 16777216}, "output_tokens": {"mean": 500}}}), "validation-failed",
     "/items/0/job/traffic/input_tokens", "130572"),
    ("a day before the catalog", edited("/as_of", "1999-12-31"), "as-of-out-of-range", "/as_of", "2000-01-01"),
    ("a day to come", edited("/as_of", "2027-05-01"), "as-of-out-of-range", "/as_of", "2026-11-30"),
    ("unknown training stack", edited("/items/0/job/software", {"stack": "megatronn"}), "validation-failed",
     "/items/0/job/software/stack", "megatron"),
    ("unknown serving stack", edited("/items/0/job/software", {"stack": "vlm"}, inference()), "validation-failed",
     "/items/0/job/software/stack", "vllm"),
    ("ownership without owned", edited("/items/0/supply", {"purchase_models": ["on_demand"],
                                                           "ownership": {"depreciation_months": 48}}),
     "validation-failed", "/items/0/supply/ownership", "owned"),
    ("more parameters than the engine knows", edited("/items/0/job/model", {"parameters": 1e14}),
     "validation-failed", "/items/0/job/model/parameters", "20000000000000"),
    ("fewer parameters than the engine knows", edited("/items/0/job/model", {"parameters": 1e6}),
     "validation-failed", "/items/0/job/model/parameters", "30000000"),
    ("markup as a number", edited("/terms/markup", 0.15), "money-not-string", "/terms/markup", "strings"),
    ("money with an exponent", edited("/items/0/constraints/budget", {"amount": "1e3", "currency": "USD"}),
     "money-format", "/items/0/constraints/budget/amount", "exponent"),
    ("a free price", edited("/items/0/supply/ownership",
                            {"electricity_price": {"amount": "0", "currency": "USD"}}),
     "validation-failed", "/items/0/supply/ownership/electricity_price", "above zero"),
    ("a price beyond all money", edited("/items/0", {"job": inference(), "supply": {
        "accelerators": ["h100-sxm5-80"], "purchase_models": ["owned"], "ownership": {
            "server_price": {"amount": "9" * 18, "currency": "USD"}, "network_share": "0.999999999999"}}}),
     "money-format", "", "State smaller prices"),
    ("unknown currency", edited("/terms/currency", "RMB"), "currency-unknown", "/terms/currency", "ISO 4217"),
    ("a currency without a rate", edited("/terms/currency", "KWD"), "fx-unavailable", "/terms/currency", "USD"),
    ("an unknown price book", edited("/terms/price_book", "acme-2027"), "validation-failed", "/terms/price_book",
     "list prices"),
    ("a discount above one", edited("/terms/discount", "1.5"), "validation-failed", "/terms/discount", "1"),
    ("an unknown time zone", edited("/terms/timezone", "Shanghai"), "validation-failed", "/terms/timezone", "IANA"),
    ("a day in the future", edited("/as_of", "2031-01-01"), "as-of-out-of-range", "/as_of", "2026-11-30"),
    ("an unknown revision", edited("/catalog_revision", "cat_0"), "unknown-catalog-revision",
     "/catalog_revision", "newest"),
    ("a revision beyond 32 bits", edited("/catalog_revision", 3_000_000_000), "unknown-catalog-revision",
     "/catalog_revision", "newest"),
    ("a revision beyond 64 bits", edited("/catalog_revision", 10**20), "unknown-catalog-revision",
     "/catalog_revision", "newest"),
    ("an item id twice", edited("/items", [{"id": "a", "job": training()}, {"id": "a", "job": training()}]),
     "validation-failed", "/items/1/id", "used twice"),
    ("a plan that does not divide", edited("/items/0", {
        "job": training(plan={"tensor": 3, "pipeline": 5}), "supply": {"accelerator_count": 64}}),
     "infeasible-spec", "/items/0/job/plan", "60"),
    ("a config.json with missing keys",
     edited("/items/0/job/model", {"huggingface_config": {"model_type": "llama", "hidden_size": 4096}}),
     "validation-failed", "/items/0/job/model/huggingface_config/num_hidden_layers", "not determined without it"),
    ("a deadline nothing keeps", edited("/items/0", {
        "job": training(1e13), "supply": {"accelerators": ["h100-sxm5-80"], "accelerator_count": 8},
        "constraints": {"deadline_hours": 10}}),
     "infeasible-spec", "/items/0/constraints/deadline_hours", "fastest"),
    ("a budget nothing keeps", edited("/items/0/constraints/budget", {"amount": "1.00", "currency": "USD"}),
     "infeasible-spec", "/items/0/constraints/budget", "cheapest"),
    ("a context longer than the model's", edited("/items/0/job", inference(
        model={"ref": "gemma4-26b-a4b"},
        traffic={"concurrency": 1, "input_tokens": 1e6, "output_tokens": 10})),
     "validation-failed", "/items/0/job/traffic/input_tokens", "context"),
    ("a latency below the floor", edited("/items/0/job", inference(slo={"tpot_ms": 0.001})),
     "infeasible-spec", "/items/0/job", "tpot of 0.001 ms at p95 is below what"),
]  # fmt: skip


@pytest.mark.parametrize(("request_body", "slug", "pointer", "says"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_bad_values_name_the_place_the_reason_and_what_would_do(
    seeded_client: TestClient, request_body: dict[str, Any], slug: str, pointer: str, says: str
) -> None:
    response = seeded_client.post("/v1/estimates", json=request_body)
    problem = response.json()
    assert response.headers["content-type"].startswith("application/problem+json"), response.text[:300]
    assert problem["slug"] == slug, problem
    assert 400 <= response.status_code < 500
    if pointer:
        assert any(e["pointer"].startswith(pointer) for e in problem["errors"]), problem["errors"]
    assert says in response.text, response.text[:1000]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b'{"items":[{"job":{"kind":"training","model":{"parameters":1e10},"tokens":NaN}}]}', 400),
        (b'{"items":[{"job":{"kind":"training","model":{"parameters":1e10},"tokens":1e400}}]}', 400),
        (b'{"items":[],"items":[]}', 400),
        (b"{", 400),
        (b'{"title":"' + b"x" * 5_000_000 + b'"}', 413),
    ],
    ids=["NaN", "1e400", "duplicate key", "truncated", "5 MB"],
)
def test_bodies_that_are_not_plain_json_are_refused_before_anything_runs(
    seeded_client: TestClient, raw: bytes, status: int
) -> None:
    response = seeded_client.post("/v1/estimates", content=raw, headers={"content-type": "application/json"})
    assert response.status_code == status
    assert response.headers["content-type"].startswith("application/problem+json")


def test_refusals_and_answers_leave_no_row(seeded: TestClient, database: Any) -> None:
    def counts() -> dict[str, int]:
        def read(connection: Any) -> dict[str, int]:
            names = catalog_tables(connection)
            return {n: connection.execute(text(f'SELECT count(*) FROM "{n}"')).scalar_one() for n in names}

        result: dict[str, int] = database.read_now(read)
        return result

    before = counts()
    assert seeded.post("/v1/estimates", json=body(training())).status_code == 200
    assert seeded.post("/v1/estimates", json=body(training(-1))).status_code == 422
    assert counts() == before


def catalog_tables(connection: Any) -> list[str]:
    names: list[str] = inspect(connection).get_table_names()
    return names


def test_over_the_whole_catalog_a_missed_objective_speaks_before_hardware_that_is_too_small(
    seeded_client: TestClient,
) -> None:
    body = edited("/items/0", {"id": "a", "job": inference(model={"ref": "llama3-70b"}, slo={"tpot_ms": 0.01})})
    refused = seeded_client.post("/v1/estimates", json=body).json()
    assert refused["constraint"] == "objective"
    assert {"asked_s", "best_s", "weights_bytes", "memory_bandwidth_bytes_per_s"} <= set(refused["numbers"])
    assert refused["nearest_feasible"]["tpot_s"] == refused["numbers"]["best_s"]
    others = [row["numbers"]["best_s"] for row in refused["refused"] if row["rule"] == "objective"]
    assert refused["numbers"]["best_s"] == min(others)
    assert "memory" in {row["rule"] for row in refused["refused"]}
