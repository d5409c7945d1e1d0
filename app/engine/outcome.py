"""What the engine answers: results with breakdowns and intervals, or the reason there is none."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.engine.workload import ServingPlan, TrainingPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A figure with its uncertainty: 10th, 50th and 90th percentile, in the unit of the field that holds it."""

    p10: float
    p50: float
    p90: float

    def __post_init__(self) -> None:
        if not self.p10 <= self.p50 <= self.p90:
            raise ValueError(f"a band needs p10 <= p50 <= p90, got {self.p10}, {self.p50}, {self.p90}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Why there is no result.

    Parameters
    ----------
    rule : str
        Stable code of the violated rule: ``memory``, ``divisibility``, ``no_peak``, ``unknown_fabric`` ...
    message : str
        One sentence with the numbers.
    numbers : mapping of str to float
        The figures behind it (``missing_bytes``, ``available_bytes`` ...), base units.
    nearest : mapping of str to value
        The nearest feasible values of the fields at fault.
    """

    rule: str
    message: str
    numbers: Mapping[str, float]
    nearest: Mapping[str, float | int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """Predicted training of one workload on one cluster with one plan (step level; run level is ``goodput``).

    Parameters
    ----------
    tokens_per_s : Band [token/s]
        Of the whole cluster, while it trains.
    step_s : Band [s]
    model_flops_utilization : float
        Model FLOPs (causal attention at half, no recompute) over the dense peak of the compute format.
    model_flops_per_token : float [FLOP/token]
    time_breakdown : mapping of str to float
        Shares of the step that add to 1.
    memory_breakdown_bytes : mapping of str to float [byte]
        Of the fullest accelerator; ``headroom`` included.
    bottleneck : str
        The largest share's name.
    plan_origin : str
        ``pinned`` or ``searched``.
    evidence_class : str
        ``calibrated``, ``transferred`` or ``datasheet``.
    assumptions : mapping of str to value
        What the engine assumed (efficiencies, release date ...).
    """

    plan: TrainingPlan
    plan_origin: str
    tokens_per_s: Band
    step_s: Band
    model_flops_utilization: float
    model_flops_per_token: float
    time_breakdown: Mapping[str, float]
    memory_breakdown_bytes: Mapping[str, float]
    bottleneck: str
    evidence_class: str
    assumptions: Mapping[str, float | int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency statistics [s]."""

    mean: Band
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingResult:
    """Predicted serving of one workload by a fleet of equal replicas.

    Parameters
    ----------
    replicas, accelerators_per_replica : int
    output_tokens_per_s : Band [token/s]
        Of the whole fleet at the asked load (or its capacity when offline or saturated).
    requests_per_s : float [request/s]
    capacity_requests_per_s_per_replica : float [request/s]
    ttft_s, tpot_s, e2e_s : Latency [s]
    concurrency_per_replica : float [request]
        In flight, waiting or served: the rate times the mean end-to-end time.
    kv_cache_tokens : float [token]
        Tokens one replica's cache holds.
    utilization : float
        Load over capacity.
    saturated : bool
    time_breakdown, memory_breakdown_bytes : mapping
        As in :class:`TrainingResult`, of one decode-dominated second of one replica.
    """

    plan: ServingPlan
    plan_origin: str
    replicas: int
    accelerators_per_replica: int
    output_tokens_per_s: Band
    requests_per_s: float
    capacity_requests_per_s_per_replica: float
    ttft_s: Latency
    tpot_s: Latency
    e2e_s: Latency
    concurrency_per_replica: float
    kv_cache_tokens: float
    utilization: float
    saturated: bool
    time_breakdown: Mapping[str, float]
    memory_breakdown_bytes: Mapping[str, float]
    bottleneck: str
    evidence_class: str
    assumptions: Mapping[str, float | int | str]
