"""Energy of a run: node power by what the accelerators do, facility overhead, grid carbon."""

from dataclasses import dataclass

from app.engine.hardware import Accelerator
from app.engine.run.conditions import Power

WATTS_PER_KILOWATT = 1000.0

# Nameplate of a server over the design power of its accelerators: DGX H100 10.2 kW / 5.6, DGX B200 14.3 kW / 8.0
# (NVIDIA user guides; servers.json).
SERVER_OVER_ACCELERATORS = 1.8

# Node power while training over nameplate: 76 % (Newkirk et al., "Empirically-Calibrated H100 Node Power Models for
# Reducing Uncertainty in AI Training Energy Estimation", 2025); peak 82 % (Latif et al., IEEE Access 2025).
TRAINING_SHARE_OF_RATED = 0.76

# TPU v4 at rest over training: 90 W of 170 W mean (Google Cloud documentation, TPU v4); the node behind it is taken
# to scale alike. Waiting accelerators hold their memory and spin on collectives, so they do not reach deep idle.
WAITING_SHARE_OF_TRAINING = 90.0 / 170.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy and carbon of a campaign.

    Parameters
    ----------
    kwh : float [kWh]
        At the meter: IT energy times power usage effectiveness.
    it_kwh : float [kWh]
    training_w_per_accelerator : float [W]
        Node power over its accelerators while training.
    kg_co2e : float or None [kg]
        Only where a grid intensity was given.
    rated_basis : str
        ``server`` (stated nameplate) or ``design_power`` (from the accelerator's).
    """

    kwh: float
    it_kwh: float
    training_w_per_accelerator: float
    kg_co2e: float | None
    rated_basis: str


def node_power_w(rated_w: float, utilization: float) -> float:
    """Power of a node, or of one accelerator's share of it, at a utilisation.

    Parameters
    ----------
    rated_w : float [W]
        Nameplate.
    utilization : float [1]
        Share of time the accelerators compute, 0 to 1.

    Returns
    -------
    float [W]
        Linear between waiting and training.

    References
    ----------
    1. Newkirk et al. 2025; Latif et al. 2025; Google Cloud documentation, TPU v4 (measured min and mean power).
    """
    training = rated_w * TRAINING_SHARE_OF_RATED
    waiting = training * WAITING_SHARE_OF_TRAINING
    return waiting + (training - waiting) * min(1.0, max(0.0, utilization))


def energy(accelerator: Accelerator, busy_hours: float, waiting_hours: float, power: Power) -> Energy | None:
    """Energy of accelerator-hours spent training and waiting.

    Parameters
    ----------
    accelerator : Accelerator
    busy_hours, waiting_hours : float [h]
        Accelerator-hours computing, and waiting for data, saves, restarts or the end of other runs.
    power : Power

    Returns
    -------
    Energy or None
        None where neither a nameplate nor a design power is known.

    References
    ----------
    1. The functions and constants of this module.
    """
    rated, basis = power.rated_w_per_accelerator, "server"
    if rated is None:
        if accelerator.thermal_design_power_w is None:
            return None
        rated, basis = accelerator.thermal_design_power_w * SERVER_OVER_ACCELERATORS, "design_power"
    training = node_power_w(rated, 1.0)
    it_kwh = (busy_hours * training + waiting_hours * node_power_w(rated, 0.0)) / WATTS_PER_KILOWATT
    kwh = it_kwh * power.power_usage_effectiveness
    intensity = power.grid_kg_co2e_per_kwh
    return Energy(
        kwh=kwh,
        it_kwh=it_kwh,
        training_w_per_accelerator=training,
        kg_co2e=None if intensity is None else kwh * intensity,
        rated_basis=basis,
    )
