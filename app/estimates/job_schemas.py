"""What to train or serve, as a client sends it (API contract A). Every default is written here and echoed."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from app.estimates.fields import Name, Schema
from app.estimates.model_schemas import LONGEST_SEQUENCE, Model
from app.foundation.numbers import LEAST, Count, Flag, Number

# Bounds exist to answer a typing error instead of computing it; each is far beyond anything built so far.
MOST_TOKENS = 1e17
MOST_ACCELERATORS = 131_072
LARGEST_BATCH = 1_000_000
MOST_REQUESTS_PER_SECOND = 1e7

Tokens = Annotated[Number, Field(ge=1, le=MOST_TOKENS)]
PlanSize = Annotated[Count, Field(ge=1, le=MOST_ACCELERATORS)]
Fraction = Annotated[Number, Field(ge=0, le=1)]
ReleaseDate = Annotated[
    str, Field(pattern=r"^20[0-9]{2}(-(0[1-9]|1[0-2])(-(0[1-9]|1[0-9]|2[0-8]))?)?$", description="YYYY[-MM[-DD]]")
]
TrainingPrecision = Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4", "int8", "auto"]
WeightFormat = Literal["bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4"]
ServingPrecision = Literal["bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4", "auto"]


class Dataset(Schema):
    """Work stated as samples: tokens = samples x mean_tokens x epochs."""

    samples: Annotated[Number, Field(ge=1, le=1e15)]
    mean_tokens: Annotated[Number, Field(ge=1, le=1e9)]
    epochs: Annotated[Number, Field(ge=LEAST, le=1e6)] = 1


class SoftwareField(Schema):
    """Framework and its date; throughput drifts with both."""

    stack: Name | None = None
    released_on: ReleaseDate | None = None


class ServingSoftware(SoftwareField):
    """Serving engine, its date and its memory settings."""

    memory_fraction: Annotated[Number, Field(gt=0.05, le=1)] | None = None
    chunked_prefill_tokens: Annotated[Count, Field(ge=1, le=1_048_576)] | None = None


class AdapterField(Schema):
    """LoRA or QLoRA adapter."""

    rank: Annotated[Count, Field(ge=1, le=8192)] = 16
    alpha: Annotated[Number, Field(ge=LEAST, le=65_536)] | None = None
    targets: list[Literal["attention", "mlp"]] = Field(default=["attention", "mlp"], min_length=1, max_length=2)
    base_precision: Literal["bf16", "fp8", "int8", "int4", "nvfp4"] | None = None


class RolloutField(Schema):
    """Generation phase of DPO or GRPO."""

    samples_per_prompt: Annotated[Count, Field(ge=1, le=4096)] = 8
    prompt_tokens: Annotated[Number, Field(ge=1, le=1e7)] = 512
    output_tokens: Annotated[Number, Field(ge=1, le=1e7)] = 1024
    generation_stack: Name | None = None


class TrainingPlanField(Schema):
    """Plan fields the caller pins; the rest is searched."""

    tensor: PlanSize | None = None
    pipeline: PlanSize | None = None
    virtual_pipeline: PlanSize | None = None
    context: PlanSize | None = None
    expert: PlanSize | None = None
    expert_tensor: PlanSize | None = None
    data: PlanSize | None = None
    sharding: Literal["none", "zero1", "zero2", "zero3", "fsdp", "hybrid"] | None = None
    micro_batch_sequences: Annotated[Count, Field(ge=1, le=LARGEST_BATCH)] | None = None
    recompute: Literal["none", "selective", "full"] | None = None
    fp8_scaling: Literal["delayed", "current", "blockwise"] | None = None
    moe_routing: Literal["dropless", "token_drop"] | None = None
    sequence_parallel: Flag | None = None
    overlap: Flag | None = None
    cpu_offload: Flag | None = None


class DataField(Schema):
    """Where training data comes from and what reading it costs the host."""

    bytes_per_token: Annotated[Number, Field(ge=LEAST, le=1e6)] = 4.0
    storage: Name | None = None
    gpu_direct_storage: Flag | None = None
    preprocessing_core_seconds_per_million_tokens: Annotated[Number, Field(ge=0, le=1e7)] = 0.0
    compressed: Flag = False


class CheckpointField(Schema):
    """How often and how the state is saved."""

    interval_minutes: Annotated[Number, Field(ge=LEAST, le=100_000)] | Literal["auto"] = "auto"
    asynchronous: Flag = True


class CampaignField(Schema):
    """Runs around the one run: sweeps, partial runs, reruns, evaluation."""

    full_runs: Annotated[Count, Field(ge=0, le=10_000)] = 1
    partial_runs: Annotated[Count, Field(ge=0, le=100_000)] = 0
    fraction: Annotated[Number, Field(ge=LEAST, le=1)] = 0.1
    concurrent_runs: Annotated[Count, Field(ge=1, le=100_000)] = 1
    reruns_expected: Annotated[Number, Field(ge=0, le=1000)] = 0.0
    evaluation_fraction: Annotated[Number, Field(ge=0, lt=1)] = 0.0


class EfficiencyOverride(Schema):
    """A measurement of the caller's own that replaces the model's throughput."""

    model_flops_utilization: Annotated[Number, Field(ge=LEAST, le=1)] | None = None
    tokens_per_second: Annotated[Number, Field(ge=LEAST, le=1e12)] | None = None
    tokens_per_second_per_accelerator: Annotated[Number, Field(ge=LEAST, le=1e9)] | None = None

    @model_validator(mode="after")
    def _one(self) -> "EfficiencyOverride":
        given = (self.model_flops_utilization, self.tokens_per_second, self.tokens_per_second_per_accelerator)
        if sum(v is not None for v in given) != 1:
            raise PydanticCustomError("one_of", "give exactly one measured figure", {})
        return self


class TrainingJob(Schema):
    """A training job."""

    kind: Literal["training"]
    model: Model
    method: Literal["pretrain", "continued_pretrain", "full_finetune", "lora", "qlora", "dpo", "grpo"] = "pretrain"
    tokens: Tokens | None = None
    dataset: Dataset | None = None
    sequence_length: Annotated[Count, Field(ge=1, le=LONGEST_SEQUENCE)] | None = None
    global_batch_sequences: Annotated[Count, Field(ge=1, le=LARGEST_BATCH)] | None = None
    precision: TrainingPrecision = "auto"
    software: SoftwareField = SoftwareField()
    adapter: AdapterField | None = None
    rollout: RolloutField | None = None
    multi_token_prediction: Annotated[Count, Field(ge=0, le=16)] | None = None
    plan: TrainingPlanField = TrainingPlanField()
    data: DataField = DataField()
    checkpointing: CheckpointField = CheckpointField()
    campaign: CampaignField = CampaignField()
    efficiency_override: EfficiencyOverride | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "TrainingJob":
        if self.tokens is not None and self.dataset is not None:
            raise PydanticCustomError("one_of", "give tokens or dataset, not both", {})
        if self.adapter is not None and self.method not in ("lora", "qlora"):
            raise PydanticCustomError("adapter", "adapter belongs to method lora or qlora", {})
        if self.rollout is not None and self.method not in ("dpo", "grpo"):
            raise PydanticCustomError("rollout", "rollout belongs to method dpo or grpo", {})
        if self.campaign.full_runs + self.campaign.partial_runs < 1:
            raise PydanticCustomError("campaign", "a campaign has at least one full or partial run", {})
        return self


class HistogramBar(Schema):
    """One length and the share of requests that have it."""

    tokens: Annotated[Number, Field(ge=1, le=LONGEST_SEQUENCE)]
    share: Annotated[Number, Field(ge=LEAST, le=1)]


class LengthsField(Schema):
    """Token lengths of requests: a mean, optionally a 95th percentile or a histogram."""

    mean: Annotated[Number, Field(ge=1, le=LONGEST_SEQUENCE)] | None = None
    p95: Annotated[Number, Field(ge=1, le=LONGEST_SEQUENCE)] | None = None
    histogram: list[HistogramBar] | None = Field(default=None, min_length=1, max_length=200)

    @model_validator(mode="after")
    def _consistent(self) -> "LengthsField":
        if self.mean is None and self.histogram is None:
            raise PydanticCustomError("one_of", "give a mean or a histogram", {})
        if self.p95 is not None and self.mean is not None and self.p95 < self.mean:
            raise PydanticCustomError("p95", "p95 is at least the mean; nearest: {mean}", {"mean": self.mean})
        if self.histogram is not None and abs(sum(b.share for b in self.histogram) - 1.0) > 1e-6:
            raise PydanticCustomError("histogram", "the shares of a histogram add up to 1", {})
        return self

    @property
    def mean_tokens(self) -> float:
        """Mean length [token]."""
        if self.mean is not None:
            return self.mean
        return sum(b.tokens * b.share for b in self.histogram or ())


def _lengths(value: Any) -> Any:
    return {"mean": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


Lengths = Annotated[LengthsField, BeforeValidator(_lengths)]


class Traffic(Schema):
    """Load on the service; exactly one of the three load figures."""

    requests_per_second: Annotated[Number, Field(ge=LEAST, le=MOST_REQUESTS_PER_SECOND)] | None = None
    concurrency: Annotated[Number, Field(ge=1, le=1e7)] | None = None
    tokens_per_day: Annotated[Number, Field(ge=1, le=MOST_TOKENS)] | None = None
    offline: Flag = False
    input_tokens: Lengths
    output_tokens: Lengths
    peak_to_mean: Annotated[Number, Field(ge=1, le=1000)] | None = None
    hourly_weights: list[Annotated[Number, Field(ge=0, le=1e9)]] | None = None
    prefix_cache_hit_rate: Annotated[Number, Field(ge=0, lt=1)] = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> "Traffic":
        if sum(v is not None for v in (self.requests_per_second, self.concurrency, self.tokens_per_day)) > 1:
            raise PydanticCustomError("one_of", "give one of requests_per_second, concurrency and tokens_per_day", {})
        if self.offline and self.concurrency is not None:
            message = "give concurrency or offline: offline queues everything at once, whatever the concurrency"
            raise PydanticCustomError("one_of", message, {})
        if self.hourly_weights is not None:
            if len(self.hourly_weights) not in (24, 168):
                raise PydanticCustomError("hourly_weights", "give 24 or 168 hourly weights", {})
            if sum(self.hourly_weights) <= 0:
                raise PydanticCustomError("hourly_weights", "at least one hourly weight is above zero", {})
            if self.peak_to_mean is not None:
                raise PydanticCustomError("one_of", "give peak_to_mean or hourly_weights, not both", {})
        return self


class ObjectiveField(Schema):
    """A latency objective in milliseconds at a percentile: ``1000``, ``{"p95": 1000}`` or both fields spelled out."""

    value: Annotated[Number, Field(ge=LEAST, le=1e8)]
    percentile: Annotated[Number, Field(ge=1, le=99.9)] = 95.0


def _objective(value: Any) -> Any:
    """Also read a bare number and the short form ``{"p95": 1000}``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"value": value}
    if isinstance(value, dict) and len(value) == 1:
        name, limit = next(iter(value.items()))
        if re.fullmatch(r"p[1-9][0-9](\.[0-9])?", str(name)):
            return {"value": limit, "percentile": float(name[1:])}
    return value


Objective = Annotated[ObjectiveField, BeforeValidator(_objective)]


class Slo(Schema):
    """Service-level objectives; none = throughput-optimal."""

    ttft_ms: Objective | None = None
    tpot_ms: Objective | None = None
    e2e_ms: Objective | None = None

    @property
    def any(self) -> bool:
        """Whether any objective was stated."""
        return any(o is not None for o in (self.ttft_ms, self.tpot_ms, self.e2e_ms))


class ServingPrecisions(Schema):
    """Number formats of weights, activations and KV cache, each on its own.

    ``allow`` names formats ``auto`` may also choose for the weights, where the accelerator computes in them. What they
    cost in quality is for the caller to judge, so none is tried unasked.
    """

    weights: ServingPrecision = "auto"
    activations: ServingPrecision = "auto"
    kv_cache: ServingPrecision = "auto"
    allow: Annotated[tuple[WeightFormat, ...], Field(max_length=7)] = ()

    @model_validator(mode="after")
    def _allowed_where_open(self) -> "ServingPrecisions":
        if self.allow and self.weights != "auto":
            raise PydanticCustomError("one_of", "allow opens weights auto to more formats; weights are pinned here", {})
        return self


class ServingPlanField(Schema):
    """Serving plan fields the caller pins; ``data`` is attention data parallelism inside a replica."""

    tensor: PlanSize | None = None
    pipeline: PlanSize | None = None
    expert: PlanSize | None = None
    data: PlanSize | None = None
    max_batch: Annotated[Count, Field(ge=1, le=LARGEST_BATCH)] | None = None
    disaggregated: "Disaggregated | None" = None


class Disaggregated(Schema):
    """Separate pools for prefill and decode."""

    prefill_replicas: Annotated[Count, Field(ge=1, le=100_000)]
    decode_replicas: Annotated[Count, Field(ge=1, le=100_000)]


class Speculative(Schema):
    """Speculative decoding or multi-token prediction."""

    tokens: Annotated[Count, Field(ge=1, le=32)]
    acceptance: Fraction


class Availability(Schema):
    """Replicas kept beyond the load, scaling, and the months a bill is counted for."""

    minimum_replicas: Annotated[Count, Field(ge=1, le=100_000)] = 1
    spare_replicas: Annotated[Count, Field(ge=0, le=100_000)] = 0
    autoscaling: Literal["none", "hourly"] = "none"
    months: Annotated[Count, Field(ge=1, le=120)] = 12


class InferenceJob(Schema):
    """An inference job."""

    kind: Literal["inference"]
    model: Model
    traffic: Traffic
    slo: Slo = Slo()
    precision: ServingPrecisions = ServingPrecisions()
    plan: ServingPlanField = ServingPlanField()
    software: ServingSoftware = ServingSoftware()
    speculative: Speculative | None = None
    availability: Availability = Availability()


ServingPlanField.model_rebuild()
InferenceJob.model_rebuild()
Job = Annotated[TrainingJob | InferenceJob, Field(discriminator="kind")]
