"""From the job schema to the engine's workload; every value nobody stated becomes an assumption with its source."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from app.catalog.snapshot import Snapshot
from app.engine.hardware import Accelerator
from app.engine.precision import FORMATS
from app.engine.training.setting import STACK_FAMILIES
from app.engine.transformer import Transformer
from app.engine.workload import (
    Adapter,
    LatencyObjective,
    Lengths,
    Rollout,
    ServingPlanRequest,
    ServingWorkload,
    Software,
    TrainingPlanRequest,
    TrainingWorkload,
)
from app.estimates.assumptions import HOURS, Assumption
from app.estimates.errors import refused_field, unknown_name
from app.estimates.job_schemas import InferenceJob, LengthsField, SoftwareField, TrainingJob, WeightFormat
from app.estimates.models import ChosenModel, choose_model

SECONDS_PER_DAY = 86_400.0
MILLISECONDS = 1e-3
DAYS_PER_YEAR = 365.25

# Llama 3 was pretrained at 8,192 tokens (Grattafiori et al. 2024, section 3.4.1)
PRETRAIN_SEQUENCE = 8192
# usual instruction-tuning length of the Llama 2 and Tulu recipes (Touvron et al. 2023, section 3.1)
FINETUNE_SEQUENCE = 4096
# Llama 2 pretraining: global batch of 4 million tokens (Touvron et al. 2023, section 2.2)
PRETRAIN_BATCH_TOKENS = 4_194_304
# Tulu 3 fine-tuning: 128 sequences a batch (Lambert et al. 2024, table 12)
FINETUNE_BATCH_SEQUENCES = 128
PRETRAINING = ("pretrain", "continued_pretrain")
# group size of the DeepSeekMath GRPO recipe is 64, of common open recipes 8; DPO compares two answers
DEFAULT_ROLLOUT = {"grpo": (8, 512.0, 1024.0), "dpo": (2, 512.0, 1024.0)}

# weights, activations, cache
Formats = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpec:
    """A training job in the engine's words."""

    workload: TrainingWorkload
    plan: TrainingPlanRequest
    assumptions: tuple[Assumption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSpec:
    """An inference job in the engine's words, but for number formats that depend on the accelerator."""

    job: InferenceJob
    model: ChosenModel
    plan: ServingPlanRequest
    requests_per_s: float | None
    concurrency: float | None
    peak_to_mean: float
    assumptions: tuple[Assumption, ...]

    def workloads(self, accelerator: Accelerator) -> tuple[ServingWorkload, ...]:
        """The workload in every format it may take on one kind of accelerator, what ``auto`` alone means first."""
        usual = serving_formats(self.job, self.model, accelerator)
        also = [
            serving_formats(self.job, self.model, accelerator, form)
            for form in sorted(set(self.job.precision.allow), key=lambda f: (-FORMATS[f].bytes_per_element, f))
            if getattr(accelerator.dense_peaks, FORMATS[form].peak) is not None
        ]
        return tuple(self.workload(accelerator, formats=f) for f in dict.fromkeys((usual, *also)))

    def workload(
        self, accelerator: Accelerator, concurrency: float | None = None, formats: Formats | None = None
    ) -> ServingWorkload:
        """The workload on one kind of accelerator; ``concurrency`` replaces the load when it is solved for."""
        weights, activations, cache = formats or serving_formats(self.job, self.model, accelerator)
        job, load = self.job, self.job.traffic
        asked = self.concurrency if concurrency is None else concurrency
        return ServingWorkload(
            transformer=self.model.transformer,
            input_tokens=_lengths(load.input_tokens),
            output_tokens=_lengths(load.output_tokens),
            weights_precision=weights,
            activations_precision=activations,
            kv_precision=cache,
            requests_per_s=self.requests_per_s if concurrency is None else None,
            concurrency=asked,
            offline=load.offline,
            minimum_replicas=self.job.availability.minimum_replicas,
            peak_to_mean=self.peak_to_mean,
            prefix_cache_hit_rate=load.prefix_cache_hit_rate,
            objectives=_objectives(job),
            speculative_tokens=job.speculative.tokens if job.speculative else 0,
            speculative_acceptance=job.speculative.acceptance if job.speculative else 0.0,
            memory_fraction=job.software.memory_fraction,
            chunked_prefill_tokens=job.software.chunked_prefill_tokens,
            software=_software(job.software),
        )


def training_spec(snapshot: Snapshot, job: TrainingJob, at: str, tokens: float | None = None) -> TrainingSpec:
    """The workload and plan request of a training job; ``tokens`` stands in where the amount of work is solved for."""
    model = choose_model(snapshot, job.model, f"{at}/model")
    _check_stack(job.software, STACK_FAMILIES, at)
    assumed = list(model.assumptions)
    sequence = _sequence_length(job, model.transformer, assumed)
    batch = _batch(job, sequence, assumed)
    precision = job.precision
    if precision == "auto":
        precision = "bf16"
        assumed.append(_assumed("precision", "bf16", "format", "precision auto: BF16 needs no recipe of its own"))
    workload = TrainingWorkload(
        transformer=model.transformer,
        method=job.method,
        tokens=tokens if tokens is not None else work_tokens(job),
        sequence_length=sequence,
        global_batch_sequences=batch,
        precision=precision,
        fp8_scaling=job.plan.fp8_scaling,
        moe_routing=job.plan.moe_routing,
        mtp_layers=model.transformer.mtp_layers if job.multi_token_prediction is None else job.multi_token_prediction,
        software=_software(job.software),
        adapter=_adapter(job),
        rollout=_rollout(job, assumed),
    )
    return TrainingSpec(workload=workload, plan=_plan(job), assumptions=tuple(assumed))


def work_tokens(job: TrainingJob) -> float:
    """Tokens of one full run [token]."""
    if job.dataset is not None:
        return job.dataset.samples * job.dataset.mean_tokens * job.dataset.epochs
    return job.tokens or 0.0


def serving_spec(snapshot: Snapshot, job: InferenceJob, at: str) -> ServingSpec:
    """The workload of an inference job before an accelerator is chosen."""
    model = choose_model(snapshot, job.model, f"{at}/model")
    _check_stack(job.software, snapshot.calibration["serving"]["engines"], at)
    load = job.traffic
    assumed = list(model.assumptions)
    rate = load.requests_per_second
    if load.tokens_per_day is not None:
        per_request = load.input_tokens.mean_tokens + load.output_tokens.mean_tokens
        rate = load.tokens_per_day / SECONDS_PER_DAY / per_request
        assumed.append(
            _assumed("tokens_per_day", "input plus output", "text", "tokens_per_day counts input and output tokens")
        )
    peak = load.peak_to_mean or 1.0
    if load.hourly_weights is not None:
        peak = max(load.hourly_weights) * len(load.hourly_weights) / sum(load.hourly_weights)
    longest = max(_longest(load.input_tokens) + _longest(load.output_tokens), 1.0)
    context = model.transformer.context
    if context is None:
        source = "no published context length of this model is known, so the lengths of requests are not checked"
        assumed.append(_assumed("context", "not known", "token", source))
    elif longest > context:
        raise refused_field(
            f"{at}/traffic/input_tokens",
            "context",
            f"{longest:.0f} tokens of input and output exceed the model's context of {context}",
            {f"{at}/traffic/input_tokens": max(1, int(context - _longest(load.output_tokens)))},
        )
    return ServingSpec(
        job=job,
        model=model,
        plan=_serving_plan(job),
        requests_per_s=rate,
        concurrency=load.concurrency,
        peak_to_mean=peak,
        assumptions=tuple(assumed),
    )


def serving_formats(
    job: InferenceJob, model: ChosenModel, accelerator: Accelerator, allowed: WeightFormat | None = None
) -> Formats:
    """Number formats of weights, activations and cache; ``auto`` = the published one, else FP8 where it computes.

    ``allowed`` is a format the caller opened ``auto`` to.
    """
    has_fp8 = accelerator.dense_peaks.fp8 is not None
    asked = job.precision
    weights = allowed or asked.weights
    if weights == "auto":
        weights = _known_format(model.stated_format) or ("fp8" if has_fp8 else "bf16")  # type: ignore[assignment]
    activations = asked.activations
    if activations == "auto":
        activations = weights if weights in ("bf16", "fp16", "fp8", "int8") else ("fp8" if has_fp8 else "bf16")
    cache = "bf16" if asked.kv_cache == "auto" else asked.kv_cache
    return weights, activations, cache


def _known_format(stated: str | None) -> str | None:
    return stated if stated in ("bf16", "fp16", "fp8", "int8", "int4", "nvfp4", "mxfp4") else None


def _sequence_length(job: TrainingJob, transformer: Transformer, assumed: list[Assumption]) -> int:
    context = transformer.context
    if job.sequence_length is not None:
        if context is not None and job.sequence_length > context:
            source = f"longer than the {context} tokens of the model's published configuration; positions are extended"
            assumed.append(_assumed("sequence_beyond_context", job.sequence_length, "token", source))
        return job.sequence_length
    usual = PRETRAIN_SEQUENCE if job.method in PRETRAINING else FINETUNE_SEQUENCE
    chosen = min(usual, context) if context else usual
    assumed.append(_assumed("sequence_length", chosen, "token", f"usual for {job.method}, within the model's context"))
    return chosen


def _batch(job: TrainingJob, sequence: int, assumed: list[Assumption]) -> int:
    if job.global_batch_sequences is not None:
        return job.global_batch_sequences
    if job.method in PRETRAINING:
        chosen, source = max(1, PRETRAIN_BATCH_TOKENS // sequence), "4 million tokens a batch (Llama 2, 2023)"
    else:
        chosen, source = FINETUNE_BATCH_SEQUENCES, "128 sequences a batch (Tulu 3, 2024)"
    assumed.append(_assumed("global_batch_sequences", chosen, "sequence", source))
    return chosen


def _adapter(job: TrainingJob) -> Adapter | None:
    if job.method not in ("lora", "qlora"):
        return None
    field = job.adapter
    base = field.base_precision if field else None
    return Adapter(
        rank=field.rank if field else Adapter().rank,
        targets=tuple(field.targets) if field else Adapter().targets,
        # QLoRA holds the base in 4-bit NormalFloat, as large as INT4 with group scales (Dettmers et al. 2023)
        base_precision=base or ("int4" if job.method == "qlora" else "bf16"),
    )


def _rollout(job: TrainingJob, assumed: list[Assumption]) -> Rollout | None:
    if job.method not in DEFAULT_ROLLOUT:
        return None
    samples, prompt, output = DEFAULT_ROLLOUT[job.method]
    if job.rollout is not None:
        samples, prompt, output = (
            job.rollout.samples_per_prompt,
            job.rollout.prompt_tokens,
            job.rollout.output_tokens,
        )
    else:
        assumed.append(
            _assumed("rollout", f"{samples} x ({prompt:.0f} + {output:.0f})", "token", f"usual for {job.method}")
        )
    return Rollout(samples_per_prompt=samples, prompt_tokens=prompt, output_tokens=output)


def _plan(job: TrainingJob) -> TrainingPlanRequest:
    pinned = job.plan
    return TrainingPlanRequest(
        tensor=pinned.tensor,
        pipeline=pinned.pipeline,
        virtual_pipeline=pinned.virtual_pipeline,
        context=pinned.context,
        expert=pinned.expert,
        expert_tensor=pinned.expert_tensor,
        data=pinned.data,
        sharding="zero3" if pinned.sharding == "fsdp" else pinned.sharding,
        micro_batch_sequences=pinned.micro_batch_sequences,
        recompute=pinned.recompute,
        sequence_parallel=pinned.sequence_parallel,
        overlap=pinned.overlap,
        cpu_offload=pinned.cpu_offload,
    )


def _serving_plan(job: InferenceJob) -> ServingPlanRequest:
    pinned = job.plan
    split = pinned.disaggregated
    return ServingPlanRequest(
        tensor=pinned.tensor,
        pipeline=pinned.pipeline,
        expert=pinned.expert,
        data=pinned.data,
        max_batch=pinned.max_batch,
        prefill_replicas=split.prefill_replicas if split else None,
        decode_replicas=split.decode_replicas if split else None,
    )


def _objectives(job: InferenceJob) -> tuple[LatencyObjective, ...]:
    stated = (("ttft", job.slo.ttft_ms), ("tpot", job.slo.tpot_ms), ("e2e", job.slo.e2e_ms))
    return tuple(
        LatencyObjective(metric=metric, seconds=slo.value * MILLISECONDS, percentile=slo.percentile)
        for metric, slo in stated
        if slo is not None
    )


def _lengths(field: LengthsField) -> Lengths:
    bars = tuple((b.tokens, b.share) for b in field.histogram) if field.histogram else None
    return Lengths(mean=field.mean_tokens, p95=field.p95, histogram=bars)


def _longest(field: LengthsField) -> float:
    if field.histogram:
        return max(b.tokens for b in field.histogram)
    return field.p95 or field.mean_tokens


def _check_stack(field: SoftwareField, known: Iterable[str], at: str) -> None:
    """A stack nobody has measured is a typing error or a guess; both would be computed as another stack."""
    if field.stack is not None and field.stack not in known:
        raise unknown_name(f"{at}/software/stack", "software stack", field.stack, known)


def _software(field: SoftwareField) -> Software:
    year = None if field.released_on is None else _decimal_year(field.released_on)
    return Software(stack=field.stack, released_year=year)


def _decimal_year(text: str) -> float:
    parts = [int(p) for p in text.split("-")]
    day = date(parts[0], parts[1] if len(parts) > 1 else 7, parts[2] if len(parts) > 2 else 1)
    return day.year + (day - date(day.year, 1, 1)).days / DAYS_PER_YEAR


def _assumed(name: str, value: str | int | float, unit: str, source: str) -> Assumption:
    return Assumption(id=name, value=value, unit=unit, source=source, moves=HOURS)
