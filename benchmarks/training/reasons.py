"""Why the searched plan of a row claims far more than was measured, in words that name what differs."""

from dataclasses import fields

from app.engine.outcome import Infeasible, TrainingResult
from app.engine.workload import TrainingPlan, TrainingPlanRequest
from benchmarks.training.rows import Row

# a searched plan that claims more than this over the measurement has to say why
CLAIM_LIMIT = 1.25
NAMES = {
    "tensor": "tensor",
    "pipeline": "pipeline",
    "virtual_pipeline": "virtual pipeline",
    "context": "context",
    "expert": "expert",
    "expert_tensor": "expert-tensor",
    "data": "data",
    "sharding": "sharding",
    "micro_batch_sequences": "micro-batch",
    "recompute": "recompute",
    "sequence_parallel": "sequence parallel",
    "overlap": "overlap",
    "cpu_offload": "offload",
}


def reason(row: Row, stated: TrainingResult, free: TrainingResult | Infeasible) -> str | None:
    """Why a searched plan claims far more than was measured; None where it does not."""
    if isinstance(free, Infeasible):
        return f"no plan: {free.message}"
    count, measured = row.cluster.accelerators, row.tokens_per_s
    ours, theirs = free.tokens_per_s.p50 / count, stated.tokens_per_s.p50 / count
    if measured is None or ours <= CLAIM_LIMIT * measured:
        return None
    unknown = " (the row states no plan)" if row.request == TrainingPlanRequest() else ""
    itself = f"the {'assumed' if unknown else 'stated'} plan itself{unknown} is predicted at {theirs / measured:.2f}x"
    inside = stated.tokens_per_s.p10 <= measured * count <= stated.tokens_per_s.p90
    itself += f" its measurement, which lies {'inside' if inside else 'outside'} the p10 to p90 interval"
    differing = differences(stated.plan, free.plan)
    if not differing:
        return f"no plan dimension differs: {itself}"
    return f"{differing}: predicted {ours / theirs:.2f}x as fast, mostly by less {_saving(stated, free)}; {itself}"


def differences(stated: TrainingPlan, free: TrainingPlan) -> str:
    """Every plan dimension that differs, as "tensor 1 for 4"."""
    pairs = [(f.name, getattr(free, f.name), getattr(stated, f.name)) for f in fields(TrainingPlan)]
    return ", ".join(f"{NAMES[name]} {ours} for {theirs}" for name, ours, theirs in pairs if ours != theirs)


def _saving(stated: TrainingResult, free: TrainingResult) -> str:
    before = {k: v * stated.step_s.p50 for k, v in stated.time_breakdown.items()}
    after = {k: v * free.step_s.p50 for k, v in free.time_breakdown.items()}
    return max(before, key=lambda name: before[name] - after.get(name, 0.0))
