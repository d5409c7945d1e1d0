"""Many cases at once: their operators, rates and requests stacked into arrays, and their predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from app.engine.serving.calibration import ServingCalibration, Situation
from app.engine.serving.memory import admitted_sequences, serving_memory
from app.engine.serving.operators import Floats, Operators, PlanArrays, Precisions, build_operators
from app.engine.serving.plans import routed_experts
from app.engine.serving.rates import resolve_rates
from app.engine.serving.regimes import Requests, lengths_of, static_batch_s, steady_state
from app.engine.serving.step import Lengths, Rates, costs_of
from app.engine.transformer import Transformer
from benchmarks.serving.cases import Case

# requests of an offline run are far more than run at once; TensorRT-LLM tables use a thousand and more
OFFLINE_REQUESTS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Cases of one regime as arrays ``(cases, 1)`` and ``(cases, operators)``."""

    cases: tuple[Case, ...]
    operators: Operators
    rates: Rates
    requests: Requests
    lengths: Lengths
    running: Floats
    asked: Floats
    replicas: Floats
    finite: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """Figures of a batch, ``(cases,)``; NaN where the regime has none."""

    output_tokens_per_s: Floats
    tpot_s: Floats
    ttft_s: Floats


@lru_cache(maxsize=4096)
def operators_of(transformer: Transformer, precisions: Precisions, plan: tuple[int, int, int, int]) -> Operators:
    """Operators of one plan, kept."""
    tensor, pipeline, expert, data = (np.array([float(x)]) for x in plan)
    return build_operators(
        transformer, precisions, PlanArrays(tensor=tensor, pipeline=pipeline, expert=expert, data=data)
    )


# sizes that divide: padded operators must not divide by zero, their count is 0 anyway
_DIVISORS = frozenset({"inner", "outer", "read_cap", "held_cap"})


def stack_rows(items: Sequence[Any], padding: float) -> dict[str, Floats]:
    """Stack equal dataclasses of ``(1, k)`` arrays into ``(n, max k)``, padding the columns that some lack."""
    out = {}
    for field in fields(items[0]):
        fill = 1.0 if field.name in _DIVISORS else padding
        arrays = [getattr(item, field.name) for item in items]
        width = max(a.shape[1] for a in arrays)
        stacked = np.full((len(arrays), width), fill)
        for i, a in enumerate(arrays):
            stacked[i, : a.shape[1]] = a[0]
        out[field.name] = stacked
    return out


def finite_test(case: Case) -> float:
    """Share of the steady rate that a test of a stated number of requests shows: it ends at falling concurrency."""
    if not case.test_requests or not case.concurrency:
        return 1.0
    at_once = min(case.concurrency, case.test_requests)
    waves = case.test_requests / at_once
    return waves / (waves + case.tail * (1.0 - 1.0 / at_once))


def assemble(cases: Sequence[Case], calibration: ServingCalibration) -> Batch:
    """Stack cases that state a plan."""
    operators, rates, running, asked, replicas = [], [], [], [], []
    for case in cases:
        assert case.plan is not None
        assert case.prompt is not None
        o = operators_of(case.transformer, case.precisions, case.plan)
        situation = Situation(
            accelerator=case.accelerator, precisions=case.precisions, stack=case.stack, released_year=case.year,
            experts=routed_experts(case.transformer),
        )  # fmt: skip
        operators.append(o)
        engine = calibration.engine(case.stack)
        found = resolve_rates(calibration, situation, o, None)
        if case.overlaps:
            found = replace(found, overlap=np.full_like(found.overlap, calibration.overlap_share(situation)))
        rates.append(found)
        memory = serving_memory(o, engine, case.accelerator.memory_bytes, engine.memory_fraction, engine.chunk_tokens)
        admitted = np.array([[case.prompt + engine.admitted_output_share * case.output]])
        room = float(admitted_sequences(o, memory, admitted, engine.frees_windows)[0, 0])
        copies = max(case.accelerators / float(case.plan[0] * case.plan[1] * case.plan[3]), 1.0)
        asked_for = min(case.concurrency or OFFLINE_REQUESTS, case.test_requests or OFFLINE_REQUESTS)
        want = asked_for / copies if asked_for < OFFLINE_REQUESTS else OFFLINE_REQUESTS
        cap = engine.max_sequences * case.plan[3] if case.regime == "offline" and not case.concurrency else np.inf
        running.append(max(min(room, want, cap), 1.0))
        asked.append(want)
        replicas.append(copies)
    pad = stack_rows(operators, 0.0)
    n = len(cases)

    def column(values: Sequence[float]) -> Floats:
        return np.array(values, dtype=np.float64).reshape(n, 1)

    chunk = [(c.chunk or float(calibration.engine(c.stack).chunk_tokens)) * c.plan[3] for c in cases]  # type: ignore[index]
    requests = Requests(
        prompt=column([c.prompt or 1.0 for c in cases]), cached=np.zeros((n, 1)),
        output=column([c.output for c in cases]), chunk=column(chunk), draft=column([float(c.draft) for c in cases]),
        accepted=column([c.accepted for c in cases]),
        together=column([calibration.burst(c.fixed_lengths) for c in cases]),
        apart=column([float(c.year < calibration.engine(c.stack).mixes_prefill_since) for c in cases]),
    )  # fmt: skip
    return Batch(
        cases=tuple(cases), operators=Operators(**pad), rates=Rates(**stack_rows(rates, 1.0)), requests=requests,
        lengths=lengths_of(requests),
        running=column(running), asked=column(asked), replicas=column(replicas),
        finite=column([finite_test(c) for c in cases]),
    )  # fmt: skip


def predict(b: Batch, frontend_s: Floats) -> Predicted:
    """Predict a batch of one regime."""
    regime = b.cases[0].regime
    costs = costs_of(b.operators, b.rates, b.lengths)
    nothing = np.full(len(b.cases), np.nan)
    if regime == "static":
        waves = np.maximum(b.asked / b.running, 1.0)
        total, first = static_batch_s(costs, b.requests, np.minimum(b.running, b.asked), waves)
        rate = b.asked * b.requests.output / total * b.replicas
        return Predicted(output_tokens_per_s=rate[:, 0], tpot_s=nothing, ttft_s=first[:, 0])
    steady = steady_state(costs, b.requests, b.running)
    rate = steady.requests_per_s
    out = rate * b.requests.output * b.replicas * b.finite
    if regime == "offline":
        return Predicted(output_tokens_per_s=out[:, 0], tpot_s=nothing, ttft_s=nothing)
    queue = np.maximum(b.asked - b.running, 0.0) / rate
    ttft = frontend_s + 0.5 * steady.decode_s + steady.first_token_s + queue
    tpot = steady.iteration_s / b.requests.accepted
    return Predicted(output_tokens_per_s=out[:, 0], tpot_s=tpot[:, 0], ttft_s=ttft[:, 0])
