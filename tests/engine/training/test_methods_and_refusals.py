"""Methods, precisions and options move the answer the way they should; refusals name the rule and what would do."""

from typing import Any

import pytest

from app.engine.hardware import Fabric
from app.engine.outcome import Infeasible
from app.engine.training.search import search_training
from app.engine.workload import Adapter, Rollout, TrainingPlanRequest, TrainingWorkload
from tests.engine.training.builders import accelerator, calibration, cluster, gpt, result, workload


def refusal(job: TrainingWorkload, machine: Any, **pinned: Any) -> Infeasible:
    found = search_training(job, machine, TrainingPlanRequest(**pinned), calibration())
    assert isinstance(found, Infeasible), found
    return found


def test_a_hundred_billion_parameters_do_not_train_on_one_b200() -> None:
    """100B parameters at 16 bytes of state each are 1.6 TB; one part holds 180 GB."""
    job = workload(transformer=gpt(80, 10240, 80, 51200), method="full_finetune", global_batch_sequences=8)
    found = refusal(job, cluster(1, accelerator("b200-sxm-180")))
    assert found.rule == "memory"
    assert 1.2e12 < found.numbers["missing_bytes"] < 1.8e12
    assert found.numbers["needed_bytes"] - found.numbers["available_bytes"] == pytest.approx(
        found.numbers["missing_bytes"]
    )
    nearest = int(found.nearest["accelerators"])
    assert nearest > 1
    result(job, cluster(nearest * 2, accelerator("b200-sxm-180")))


def test_degrees_that_do_not_make_up_the_accelerators_are_refused() -> None:
    found = refusal(workload(), cluster(64), tensor=4, pipeline=3)
    assert (found.rule, found.nearest["accelerators"]) == ("divisibility", 12)


@pytest.mark.parametrize(
    ("family", "pinned", "rule", "nearest"),
    [
        ("llama3-8b", {"tensor": 3}, "divisibility", {"tensor": 2}),
        ("llama3-8b", {"expert": 8}, "contradiction", {"expert": 1}),
        ("qwen3-30b-a3b", {"expert": 3}, "divisibility", {"expert": 2}),
        ("llama3-8b", {"pipeline": 64}, "divisibility", {"pipeline": 32}),
    ],
)
def test_degrees_the_model_cannot_be_divided_by(
    family: str, pinned: dict[str, int], rule: str, nearest: dict[str, int]
) -> None:
    found = refusal(workload(family), cluster(192), **pinned)
    assert (found.rule, dict(found.nearest)) == (rule, nearest)


def test_a_batch_smaller_than_the_replicas_is_refused_with_the_batch_that_fits() -> None:
    found = refusal(workload(global_batch_sequences=4), cluster(64), tensor=1, pipeline=1, context=1)
    assert (found.rule, found.nearest["global_batch_sequences"]) == ("batch", 64)


def test_a_part_without_fp8_is_refused_with_what_it_has() -> None:
    found = refusal(workload(precision="fp8"), cluster(8, accelerator("a100-sxm4-80")))
    assert (found.rule, found.nearest["precision"]) == ("no_peak", "bf16")


def test_a_pinned_plan_that_does_not_fit_is_refused_although_another_would() -> None:
    job, machine = workload("llama3-70b"), cluster(64)
    found = refusal(job, machine, tensor=1, pipeline=1, context=1, sharding="none", recompute="none")
    assert found.rule == "memory"
    result(job, machine)


def test_precisions_are_ordered() -> None:
    machine = cluster(64, accelerator("gb300-288"))
    rates = [result(workload("llama3-70b", precision=p), machine).tokens_per_s.p50 for p in ("bf16", "mxfp8", "nvfp4")]
    assert rates == sorted(rates)


def test_adapters_are_faster_and_leaner_than_full_training() -> None:
    machine = cluster(8, accelerator("b200-sxm-180"))
    full = result(workload(method="full_finetune", sequence_length=4096), machine)
    lora = result(workload(method="lora", sequence_length=4096, adapter=Adapter()), machine)
    qlora = result(workload(method="qlora", sequence_length=4096, adapter=Adapter()), machine)
    assert lora.tokens_per_s.p50 > full.tokens_per_s.p50
    # frozen weights need no gradient of their own: 4N instead of 6N, so utilisation is counted on less work
    assert 0.66 < lora.model_flops_per_token / full.model_flops_per_token < 0.70
    assert qlora.model_flops_per_token == lora.model_flops_per_token
    assert lora.memory_breakdown_bytes["optimizer"] < 0.02 * full.memory_breakdown_bytes["optimizer"] * 8
    assert qlora.memory_breakdown_bytes["weights"] < 0.6 * lora.memory_breakdown_bytes["weights"]


def test_preference_training_costs_its_reference_passes() -> None:
    machine = cluster(16)
    plain = result(workload(method="full_finetune", sequence_length=4096), machine)
    dpo = result(workload(method="dpo", sequence_length=4096), machine)
    grpo = result(
        workload(
            method="grpo",
            sequence_length=4096,
            rollout=Rollout(samples_per_prompt=8, prompt_tokens=512.0, output_tokens=2048.0),
        ),
        machine,
    )
    assert 1.15 < plain.tokens_per_s.p50 / dpo.tokens_per_s.p50 < 1.6
    assert grpo.tokens_per_s.p50 < dpo.tokens_per_s.p50
    assert grpo.time_breakdown["generation"] > 0.2


def test_prediction_layers_and_packing_move_the_step() -> None:
    machine = cluster(256, accelerator("gb300-288"))
    job = workload("deepseek-v3", sequence_length=4096, global_batch_sequences=4096)
    pinned = {"tensor": 1, "pipeline": 2, "virtual_pipeline": 8, "context": 1, "expert": 32, "micro_batch_sequences": 1}
    plain = result(job, machine, **pinned)
    mtp = result(
        workload("deepseek-v3", sequence_length=4096, global_batch_sequences=4096, mtp_layers=1), machine, **pinned
    )
    assert 1.01 < mtp.step_s.p50 / plain.step_s.p50 < 1.12
    packed = result(workload("llama3-8b", document_tokens=256.0), cluster(8))
    assert packed.tokens_per_s.p50 > result(workload("llama3-8b"), cluster(8)).tokens_per_s.p50


def test_token_drop_is_faster_than_dropless_routing() -> None:
    machine = cluster(8, accelerator("b200-sxm-180"))
    rates = [
        result(
            workload("qwen3-30b-a3b", sequence_length=4096, moe_routing=routing), machine, micro_batch_sequences=1
        ).tokens_per_s.p50
        for routing in ("dropless", "token_drop")
    ]
    assert rates[0] < rates[1]


def test_recomputation_trades_time_for_memory() -> None:
    pinned = {"tensor": 4, "pipeline": 4, "virtual_pipeline": 5, "context": 1, "micro_batch_sequences": 1}
    machine = cluster(64, accelerator("b200-sxm-180"))
    none, selective, full = (
        result(workload("llama3-70b"), machine, **pinned, recompute=level) for level in ("none", "selective", "full")
    )
    held = [r.memory_breakdown_bytes["activations"] for r in (none, selective, full)]
    assert held == sorted(held, reverse=True)
    assert none.step_s.p50 < selective.step_s.p50 < full.step_s.p50 < 1.4 * none.step_s.p50


def test_an_offloaded_optimizer_frees_memory_and_takes_time() -> None:
    pinned = {"tensor": 1, "pipeline": 1, "context": 1, "micro_batch_sequences": 1, "sharding": "zero1"}
    machine = cluster(8, accelerator("b200-sxm-180"))
    kept = result(workload(), machine, **pinned)
    moved = result(workload(), machine, **pinned, cpu_offload=True)
    assert moved.memory_breakdown_bytes["optimizer"] == 0.0
    assert moved.step_s.p50 > kept.step_s.p50


def test_a_thin_network_shows_in_the_breakdown() -> None:
    job = workload("llama3-70b", global_batch_sequences=256)
    pinned = {"tensor": 8, "pipeline": 4, "context": 1, "micro_batch_sequences": 1}
    fast = cluster(256, fabric=Fabric(kind="infiniband", bytes_per_s_per_accelerator=5e10))
    thin = cluster(256, fabric=Fabric(kind="ethernet", bytes_per_s_per_accelerator=1.25e9))
    network = [
        sum(result(job, machine, **pinned).time_breakdown.get(k, 0.0) for k in ("data", "pipeline"))
        for machine in (fast, thin)
    ]
    assert network[1] > 4.0 * network[0]


def test_the_bubble_is_the_textbook_one() -> None:
    """Interleaved 1F1B: (p - 1) / (m v) of the work of a stage (Narayanan 2021, section 2.2)."""
    pinned = {"tensor": 4, "pipeline": 8, "virtual_pipeline": 5, "context": 1, "micro_batch_sequences": 1}
    found = result(workload("llama3-70b", global_batch_sequences=128), cluster(64), **pinned)
    shares = found.time_breakdown
    names = ("matmul", "attention", "elementwise", "head", "recompute", "tensor", "context", "expert", "host")
    work = sum(shares.get(name, 0.0) for name in names)
    assert shares["bubble"] / work == pytest.approx(7.0 / (64.0 * 5.0))


def test_evidence_and_bands_widen_with_distance() -> None:
    width = []
    for key in ("h100-sxm5-80", "gaudi3"):
        found = result(workload(global_batch_sequences=256), cluster(64, accelerator(key)))
        width.append((found.evidence_class, found.tokens_per_s.p90 / found.tokens_per_s.p10))
    assert [w[0] for w in width] == ["calibrated", "datasheet"]
    assert width[1][1] > width[0][1]
