"""The space of serving plans of one replica, as arrays."""

from collections.abc import Iterable

import numpy as np

from app.engine.hardware import Accelerator
from app.engine.serving.operators import PlanArrays
from app.engine.transformer import LatentAttention, MoeMlp, SoftmaxAttention, Transformer
from app.engine.workload import ServingPlanRequest

# powers of two up to one NVL72 rack's use by one replica; wider replicas are not in any calibration row
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
# pipeline stages that serving engines are run with
STAGES = (1, 2, 4)


def attention_heads(t: Transformer) -> int:
    """Query heads of the attention layers (1 for a model without any).

    Parameters
    ----------
    t : Transformer

    Returns
    -------
    int

    References
    ----------
    1. Narayanan et al. 2021 (tensor parallelism splits heads).
    """
    for group in t.groups:
        if isinstance(group.mixer, SoftmaxAttention | LatentAttention):
            return group.mixer.heads
    return 1


def routed_experts(t: Transformer) -> int:
    """Routed experts of the MoE layers, 0 for a dense model.

    Parameters
    ----------
    t : Transformer

    Returns
    -------
    int

    References
    ----------
    1. DeepSeek-AI, "DeepSeekMoE", 2024.
    """
    return max((g.feed_forward.experts for g in t.groups if isinstance(g.feed_forward, MoeMlp)), default=0)


def _choices(pinned: int | None, options: Iterable[int]) -> tuple[int, ...]:
    return (pinned,) if pinned is not None else tuple(options)


def enumerate_plans(
    t: Transformer, accelerator: Accelerator, request: ServingPlanRequest, most_accelerators: int | None
) -> list[tuple[int, int, int, int]]:
    """Legal (tensor, pipeline, expert, data) widths with the pinned ones held.

    Parameters
    ----------
    t : Transformer
    accelerator : Accelerator
    request : ServingPlanRequest
    most_accelerators : int or None
        A replica may not need more than this.

    Returns
    -------
    list of tuple of int

    Notes
    -----
    Tensor width divides the heads and stays in the scale-up domain (or in a node); attention-data parallelism is
    searched for MoE models only, where it spreads the experts, and without pipeline stages; experts are whole-group or
    tensor-sharded. Pinned
    values are taken as they are when they divide.

    References
    ----------
    1. Pope et al. 2022. 2. DeepSeek-AI 2024 (attention DP with expert parallelism).
    """
    heads, experts, layers = attention_heads(t), routed_experts(t), t.layers
    reach = max(accelerator.scale_up_domain, accelerator.accelerators_per_node)
    limit = min(most_accelerators or WIDTHS[-1], WIDTHS[-1])
    plans = []
    for tensor in _choices(request.tensor, (w for w in WIDTHS if w <= reach)):
        if heads % tensor and heads >= tensor:
            continue
        for pipeline in _choices(request.pipeline, STAGES):
            if pipeline > layers:
                continue
            for data in _choices(request.data, WIDTHS if experts else (1,)):
                group = tensor * data
                if group * pipeline > (most_accelerators or (limit if request.tensor is None else group * pipeline)):
                    continue
                if data > 1 and request.data is None and (group > reach or (pipeline > 1 and request.pipeline is None)):
                    continue
                for expert in _choices(request.expert, sorted({1, group}) if experts else (1,)):
                    if expert > group or group % expert or (experts and experts % expert):
                        continue
                    if data > 1 and expert != group and request.expert is None:
                        continue
                    plans.append((tensor, pipeline, expert, data))
    return plans


def plan_arrays(plans: list[tuple[int, int, int, int]]) -> PlanArrays:
    """Plans as arrays.

    Parameters
    ----------
    plans : list[tuple[int, int, int, int]]

    Returns
    -------
    PlanArrays

    References
    ----------
    1. Pope et al. 2022.
    """
    table = np.array(plans, dtype=np.float64).reshape(-1, 4)
    return PlanArrays(tensor=table[:, 0], pipeline=table[:, 1], expert=table[:, 2], data=table[:, 3])
