"""What is asked of the engine: training and serving workloads, and the plan fields a caller may pin."""

from dataclasses import dataclass, field

from app.engine.transformer import Transformer

METHODS = ("pretrain", "continued_pretrain", "full_finetune", "lora", "qlora", "dpo", "grpo")
ADAPTER_METHODS = ("lora", "qlora")


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """Framework and the date of its release (throughput drifts with both).

    Parameters
    ----------
    stack : str or None
        ``megatron``, ``nemo``, ``maxtext``, ``tensorrt-llm``, ``vllm``, ``sglang`` ...; None = best calibrated.
    released_year : float or None [year]
        Decimal year, 2025.75 = 1 October 2025; None = today's best calibrated.
    """

    stack: str | None = None
    released_year: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """LoRA or QLoRA adapter.

    Parameters
    ----------
    rank : int
    targets : tuple of str
        ``attention``, ``mlp``.
    base_precision : str
        Format the frozen weights are held in.
    """

    rank: int = 16
    targets: tuple[str, ...] = ("attention", "mlp")
    base_precision: str = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Generation phase of DPO or GRPO.

    Parameters
    ----------
    samples_per_prompt : int
    prompt_tokens, output_tokens : float [token]
    """

    samples_per_prompt: int
    prompt_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorkload:
    """One training run, independent of hardware.

    Parameters
    ----------
    transformer : Transformer
    method : str
        One of ``METHODS``.
    tokens : float [token]
        Tokens trained on.
    sequence_length : int [token]
    global_batch_sequences : int
    precision : str
        Compute format of the matmuls (``bf16``, ``fp16``, ``fp8``, ``mxfp8``, ``nvfp4``, ``int8``).
    fp8_scaling : str or None
        ``delayed``, ``current``, ``blockwise``; None = the stack's usual one.
    moe_routing : str or None
        ``dropless`` or ``token_drop``; None = dropless.
    mtp_layers : int
        Multi-token-prediction layers trained.
    document_tokens : float or None [token]
        Mean length of the documents packed into a sequence, where attention stays inside each; None = one document
        fills the sequence.
    """

    transformer: Transformer
    method: str
    tokens: float
    sequence_length: int
    global_batch_sequences: int
    precision: str
    fp8_scaling: str | None = None
    moe_routing: str | None = None
    mtp_layers: int = 0
    software: Software = field(default_factory=Software)
    adapter: Adapter | None = None
    rollout: Rollout | None = None
    document_tokens: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlanRequest:
    """Plan fields as the caller pins them; None = searched. Meanings as in ``design: API A, plan``."""

    tensor: int | None = None
    pipeline: int | None = None
    virtual_pipeline: int | None = None
    context: int | None = None
    expert: int | None = None
    expert_tensor: int | None = None
    data: int | None = None
    sharding: str | None = None
    micro_batch_sequences: int | None = None
    recompute: str | None = None
    sequence_parallel: bool | None = None
    overlap: bool | None = None
    cpu_offload: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """One complete plan; ``tensor * pipeline * context * data`` equals the accelerators."""

    tensor: int
    pipeline: int
    virtual_pipeline: int
    context: int
    expert: int
    expert_tensor: int
    data: int
    sharding: str
    micro_batch_sequences: int
    recompute: str
    sequence_parallel: bool
    overlap: bool
    cpu_offload: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Token lengths of requests.

    Parameters
    ----------
    mean : float [token]
    p95 : float or None [token]
    histogram : tuple of (float, float) or None
        (length [token], share of requests) pairs; shares add to 1.
    """

    mean: float
    p95: float | None = None
    histogram: tuple[tuple[float, float], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyObjective:
    """Service-level objective: ``metric`` (``ttft``, ``tpot``, ``e2e``) at ``percentile`` no more than ``seconds``."""

    metric: str
    seconds: float
    percentile: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingWorkload:
    """Inference traffic on one model, independent of hardware.

    Parameters
    ----------
    transformer : Transformer
    input_tokens, output_tokens : Lengths [token]
    requests_per_s : float or None [request/s]
        Open loop: arrival rate at the mean hour.
    concurrency : float or None [request]
        Closed loop: requests always in flight, over the whole fleet.
    offline : bool
        All queued at once; throughput only.
    peak_to_mean : float
    minimum_replicas : int
        Replicas that run in any case, whatever the load needs.
    prefix_cache_hit_rate : float
        Share of input tokens already in the cache.
    weights_precision, activations_precision, kv_precision : str
    objectives : tuple of LatencyObjective
    speculative_tokens : int
        Draft tokens a step, 0 = none.
    speculative_acceptance : float
    """

    transformer: Transformer
    input_tokens: Lengths
    output_tokens: Lengths
    weights_precision: str
    activations_precision: str
    kv_precision: str
    requests_per_s: float | None = None
    concurrency: float | None = None
    offline: bool = False
    peak_to_mean: float = 1.0
    minimum_replicas: int = 1
    prefix_cache_hit_rate: float = 0.0
    objectives: tuple[LatencyObjective, ...] = ()
    speculative_tokens: int = 0
    speculative_acceptance: float = 0.0
    memory_fraction: float | None = None
    chunked_prefill_tokens: int | None = None
    software: Software = field(default_factory=Software)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlanRequest:
    """Serving plan fields as pinned; None = searched. ``data`` is attention data parallelism inside a replica."""

    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    data: int | None = None
    max_batch: int | None = None
    prefill_replicas: int | None = None
    decode_replicas: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingPlan:
    """One complete serving plan; a replica holds ``tensor * pipeline * data`` accelerators."""

    tensor: int
    pipeline: int
    expert: int
    data: int
    max_batch: int
    prefill_replicas: int | None = None
    decode_replicas: int | None = None
