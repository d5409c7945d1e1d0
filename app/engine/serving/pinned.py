"""One pinned plan on a given fleet in a closed loop: nothing to search, so one evaluation answers it."""

import numpy as np

from app.engine.serving.loadcurve import LoadCurve
from app.engine.serving.regimes import Steady, steady_state
from app.engine.serving.replica import Replicas
from app.engine.serving.selection import Choice
from app.engine.workload import ServingWorkload

# shares of the cap at which the highest rate is looked for
CAP_SHARES = (1.0, 0.5, 0.25)


def is_pinned(workload: ServingWorkload, replicas: Replicas, accelerators: int | None) -> bool:
    """Whether a single plan, a given fleet and a closed loop without objectives leave nothing to choose.

    Parameters
    ----------
    workload : ServingWorkload
    replicas : Replicas
    accelerators : int or None

    Returns
    -------
    bool

    References
    ----------
    1. :func:`app.engine.serving.selection.choose`, which answers every other case.
    """
    closed = workload.concurrency is not None and workload.requests_per_s is None and not workload.offline
    return closed and accelerators is not None and len(replicas.plans) == 1 and not workload.objectives


def pinned_load(
    workload: ServingWorkload, replicas: Replicas, accelerators: int
) -> tuple[Choice, tuple[LoadCurve, Steady]]:
    """The load of each replica, and its steady state.

    Parameters
    ----------
    workload : ServingWorkload
    replicas : Replicas
    accelerators : int

    Returns
    -------
    tuple of (Choice, (LoadCurve, Steady))
        The first point of the steady state is the load.

    References
    ----------
    1. Little 1961.
    """
    count = max(accelerators // int(replicas.size[0, 0]), 1)
    cap = float(replicas.cap[0, 0])
    asked = float(workload.concurrency or 0.0) / count
    running = min(asked, cap)
    points = np.maximum(np.array([running, 1.0, *(cap * share for share in CAP_SHARES)]), 1.0)[:, None]
    steady = steady_state(replicas.costs, replicas.requests, points)
    idle = steady.decode_s[1:2]
    curve = LoadCurve(
        running=points[:1], rate=steady.requests_per_s[:1], iteration_s=steady.iteration_s[:1],
        first_token_s=steady.first_token_s[:1], work_s=steady.prefill_s[:1], step_s=steady.decode_s[:1],
        idle_step_s=idle,
    )  # fmt: skip
    choice = Choice(
        row=0, replicas=count, running=running, asked_running=asked,
        rate=float(curve.rate[0, 0]) * min(running, 1.0),
        highest_rate=float(steady.requests_per_s.max()), idle_step_s=float(idle[0, 0]), objectives_met=True,
    )  # fmt: skip
    return choice, (curve, steady)
