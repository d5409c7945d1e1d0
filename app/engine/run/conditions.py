"""What surrounds a training step: data, storage, checkpoints, failures, power. All defaults carry their source."""

from dataclasses import dataclass, field

from app.engine.errors import EngineInputError
from app.engine.hardware import Storage
from app.engine.run.campaign import Campaign

# Tokenised text as stored by Megatron-LM and llm.c: 32-bit ids where the vocabulary passes 65,536, else 16-bit
# (Megatron-LM, megatron/core/datasets/indexed_dataset.py, DType.optimal_dtype).
BYTES_PER_TOKEN = 4.0

# CPU cores of a DGX H100 and a DGX B200 over their accelerators: 2 x 56 / 8 (NVIDIA user guides).
HOST_CORES_PER_ACCELERATOR = 14.0

# Unexpected interruptions per accelerator-day, low, typical, high: 504 B200 0.36, Llama 3 0.474 (419 in 54 days on
# 16,384), OPT-175B 2, each per 1,000 (reliability_facts.json: b200-504, llama3-rate, opt-machine-failures).
INTERRUPTIONS_PER_ACCELERATOR_DAY = (0.36e-3, 0.474e-3, 2.0e-3)

# From interruption to training again. Automatic: 10 minutes, median 11 (reliability_facts.json: suggested_defaults,
# b200-504). High: the geometric mean of 11 minutes and the 3.5 hours each that HLAT's hand-restarted job lost (22 % of
# 4,096 chips' time at Llama 3's rate, hlat-uptime): some interruptions need a person.
RESTART_S = (600.0, 660.0, 2880.0)

# Bytes a checkpoint holds per trained parameter: weights, master weights and two moments (reliability_facts.json:
# nemo-ckpt-sizes, 12.8 to 13.1).
CHECKPOINT_BYTES_PER_PARAMETER = 13.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLoading:
    """How training data reaches the accelerators.

    Parameters
    ----------
    bytes_per_token : float [byte/token]
        As trained on, after decompression.
    preprocessing_core_seconds_per_million_tokens : float [s]
        Host work on the fly: tokenising, decoding, augmenting; 0 = prepared beforehand.
    compressed : bool
        Stored compressed (zstd) and decompressed on the way.
    hardware_decompression : bool
        The accelerator has a decompression engine (Blackwell).
    host_cores_per_accelerator : float
    node_storage_bytes_per_s : float or None [byte/s]
        Storage network of one node; None = one network port of the accelerators' rate.
    """

    bytes_per_token: float = BYTES_PER_TOKEN
    preprocessing_core_seconds_per_million_tokens: float = 0.0
    compressed: bool = False
    hardware_decompression: bool = False
    host_cores_per_accelerator: float = HOST_CORES_PER_ACCELERATOR
    node_storage_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        _positive("data.bytes_per_token", self.bytes_per_token)
        _positive("data.host_cores_per_accelerator", self.host_cores_per_accelerator)
        _not_negative(
            "data.preprocessing_core_seconds_per_million_tokens", self.preprocessing_core_seconds_per_million_tokens
        )
        if self.node_storage_bytes_per_s is not None:
            _positive("data.node_storage_bytes_per_s", self.node_storage_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """When and how state is saved.

    Parameters
    ----------
    interval_s : float or None [s]
        Training time between checkpoints; None = the interval that loses least (Daly).
    asynchronous : bool
        Training goes on while the copy in host memory is written.
    bytes_per_parameter : float [byte]
    """

    interval_s: float | None = None
    asynchronous: bool = True
    bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER

    def __post_init__(self) -> None:
        if self.interval_s is not None:
            _positive("checkpointing.interval_s", self.interval_s)
        _positive("checkpointing.bytes_per_parameter", self.bytes_per_parameter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """How often a job is interrupted, and what an interruption costs.

    Parameters
    ----------
    interruptions_per_accelerator_day : (float, float, float) [1/day]
        Low, typical, high; interruptions grow with accelerators times days.
    restart_s : (float, float, float) [s]
        Low, typical, high: detection, replacement, restart and warm-up, without reading the checkpoint.
    spot_interruptions_per_node_hour : float [1/h]
        Reclaimed spot nodes; 0 for other purchases.
    spot_replacement_s : float [s]
        Until a reclaimed node is replaced.
    repair_days : float [day]
        A broken node's absence, for the number of spares.
    """

    interruptions_per_accelerator_day: tuple[float, float, float] = INTERRUPTIONS_PER_ACCELERATOR_DAY
    restart_s: tuple[float, float, float] = RESTART_S
    spot_interruptions_per_node_hour: float = 0.0
    spot_replacement_s: float = 0.0
    repair_days: float = 2.0

    def __post_init__(self) -> None:
        for name in ("interruptions_per_accelerator_day", "restart_s"):
            low, typical, high = getattr(self, name)
            if not 0.0 <= low <= typical <= high < float("inf"):
                raise EngineInputError(f"reliability.{name}", "needs 0 <= low <= typical <= high")
        for name in ("spot_interruptions_per_node_hour", "spot_replacement_s", "repair_days"):
            _not_negative(f"reliability.{name}", getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Power and its surroundings.

    Parameters
    ----------
    rated_w_per_accelerator : float or None [W]
        Nameplate of the server over its accelerators; None = from the accelerator's design power.
    power_usage_effectiveness : float
        Facility power over IT power.
    grid_kg_co2e_per_kwh : float or None [kg/kWh]
        None = no carbon figure.
    """

    rated_w_per_accelerator: float | None = None
    power_usage_effectiveness: float
    grid_kg_co2e_per_kwh: float | None = None

    def __post_init__(self) -> None:
        if not 1.0 <= self.power_usage_effectiveness < float("inf"):
            raise EngineInputError("power.power_usage_effectiveness", "is facility over IT power, so at least 1")
        if self.rated_w_per_accelerator is not None:
            _positive("power.rated_w_per_accelerator", self.rated_w_per_accelerator)
        if self.grid_kg_co2e_per_kwh is not None:
            _not_negative("power.grid_kg_co2e_per_kwh", self.grid_kg_co2e_per_kwh)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConditions:
    """Everything around the step.

    Parameters
    ----------
    storage : Storage or None
        None = adequate storage, sized by the job and reported as such.
    power : Power or None
        None = no energy figure.
    trained_parameters : float or None
        Parameters a checkpoint holds; None = from the method (all, or the adapter's).
    """

    data: DataLoading = field(default_factory=DataLoading)
    storage: Storage | None = None
    checkpointing: Checkpointing = field(default_factory=Checkpointing)
    reliability: Reliability = field(default_factory=Reliability)
    campaign: Campaign = field(default_factory=Campaign)
    power: Power | None = None
    trained_parameters: float | None = None


def _positive(name: str, value: float) -> None:
    if not 0.0 < value < float("inf"):
        raise EngineInputError(name, f"must be positive and finite, got {value}")


def _not_negative(name: str, value: float) -> None:
    if not 0.0 <= value < float("inf"):
        raise EngineInputError(name, f"must be zero or more and finite, got {value}")
