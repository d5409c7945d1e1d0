"""Step results without the step model: the run level is tested on its own."""

from app.catalog.shipped import shipped_accelerators
from app.engine.hardware import Cluster
from app.engine.outcome import Band, TrainingResult
from app.engine.run import RunConditions, RunOutcome, run_training
from app.engine.typical import typical_transformer
from app.engine.workload import TrainingPlan, TrainingWorkload

PLAN = TrainingPlan(
    tensor=1,
    pipeline=1,
    virtual_pipeline=1,
    context=1,
    expert=1,
    expert_tensor=1,
    data=1,
    sharding="zero1",
    micro_batch_sequences=1,
    recompute="none",
    sequence_parallel=False,
    overlap=True,
    cpu_offload=False,
)


def result(tokens_per_s: float, spread: float = 0.1) -> TrainingResult:
    low, high = tokens_per_s * (1 - spread), tokens_per_s * (1 + spread)
    return TrainingResult(
        plan=PLAN,
        plan_origin="pinned",
        tokens_per_s=Band(p10=low, p50=tokens_per_s, p90=high),
        step_s=Band(p10=1.0, p50=1.0, p90=1.0),
        model_flops_utilization=0.4,
        model_flops_per_token=1.0,
        time_breakdown={"matmul": 1.0},
        memory_breakdown_bytes={"weights": 1.0},
        bottleneck="matmul",
        evidence_class="calibrated",
        assumptions={},
    )


def workload(tokens: float, parameters: float = 8e9, method: str = "pretrain") -> TrainingWorkload:
    return TrainingWorkload(
        transformer=typical_transformer(parameters),
        method=method,
        tokens=tokens,
        sequence_length=4096,
        global_batch_sequences=512,
        precision="bf16",
    )


def cluster(accelerators: int = 64, accelerator: str = "h100-sxm5-80") -> Cluster:
    return Cluster(accelerator=shipped_accelerators()[accelerator], accelerators=accelerators, fabric=None)


def run(
    conditions: RunConditions | None = None,
    *,
    accelerators: int = 64,
    tokens: float = 1e12,
    tokens_per_s: float = 1e6,
    parameters: float = 8e9,
    spread: float = 0.1,
    accelerator: str = "h100-sxm5-80",
) -> RunOutcome:
    outcome = run_training(
        result(tokens_per_s, spread),
        workload(tokens, parameters),
        cluster(accelerators, accelerator),
        conditions or RunConditions(),
    )
    assert isinstance(outcome, RunOutcome)
    return outcome
