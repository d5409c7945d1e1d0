"""Hardware as the engine sees it: accelerators, fabrics, storage, clusters. Base units only (byte, second, FLOP)."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class DensePeaks:
    """Dense peak rates of one accelerator by number format [FLOP/s]; None where the part has no such unit.

    Never sparse figures: vendors print them twice as high (catalog rule, ``vendor_page_quotes_sparse``).

    References
    ----------
    1. Vendor datasheets, one source per catalog row.
    """

    fp32: float | None = None
    tf32: float | None = None
    bf16: float | None = None
    fp16: float | None = None
    fp8: float | None = None
    int8: float | None = None
    fp6: float | None = None
    fp4: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not 0.0 < value < float("inf"):
                raise ValueError(f"dense peak {field.name} must be positive and finite, got {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator as sold and counted in plans (a package: one GB200 GPU, one TPU chip, one MI300X).

    Parameters
    ----------
    id, vendor, architecture : str
        Catalog id; vendor; architecture name as the vendor uses it ("Hopper").
    memory_bytes : float [byte]
        What the driver reports, not the label.
    memory_bytes_basis : str
        ``reported`` (driver or cloud API), ``documented`` (vendor states binary units) or ``label`` (unit-ambiguous
        label read as decimal GB: a lower bound).
    memory_bandwidth_bytes_per_s : float [byte/s]
    dense_peaks : DensePeaks [FLOP/s]
    scale_up_bytes_per_s_per_accelerator : float or None [byte/s]
        Per direction, all links of one accelerator together; None where unknown.
    scale_up_domain : int
        Accelerators that reach each other over the scale-up link (8, 72, 256 ...); 1 when there is none.
    scale_up_topology : str
        ``nvswitch`` (any switched all-to-all), ``mesh`` (direct links to every peer), ``torus``, ``pcie``, ``bridge``
        or ``unknown``.
    pcie_bytes_per_s : float [byte/s]
        Host link, one direction.
    accelerators_per_node : int
    scale_out_bytes_per_s_per_accelerator : float or None [byte/s]
        Typical network rate of a server with this part, one direction; None where unknown.
    thermal_design_power_w : float or None [W]
    released_on_year : int or None

    References
    ----------
    1. Catalog rows, each with its sources.
    """

    id: str
    vendor: str
    name: str
    architecture: str
    form_factor: str
    memory_bytes: float
    memory_bytes_basis: str
    memory_bandwidth_bytes_per_s: float
    dense_peaks: DensePeaks
    scale_up_bytes_per_s_per_accelerator: float | None
    scale_up_domain: int
    scale_up_topology: str
    pcie_bytes_per_s: float
    accelerators_per_node: int
    scale_out_bytes_per_s_per_accelerator: float | None
    thermal_design_power_w: float | None
    released_on_year: int | None

    def __post_init__(self) -> None:
        for name in ("memory_bytes", "memory_bandwidth_bytes_per_s", "pcie_bytes_per_s"):
            value = getattr(self, name)
            if not 0.0 < value < float("inf"):
                raise ValueError(f"{self.id}: {name} must be positive and finite, got {value}")
        if self.scale_up_domain < 1 or self.accelerators_per_node < 1:
            raise ValueError(f"{self.id}: scale_up_domain and accelerators_per_node count from 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Scale-out network between nodes.

    Parameters
    ----------
    kind : str
        ``infiniband``, ``roce``, ``ethernet``, ``efa`` or ``ici``.
    bytes_per_s_per_accelerator : float [byte/s]
        One direction, of one accelerator's share of the NICs.
    oversubscription : float
        1.0 = full bisection; 2.0 = half of it above the leaf switches.
    rails : int
        Parallel planes; traffic between rails must pass the spine or the scale-up link.

    References
    ----------
    1. NVIDIA DGX SuperPOD reference architecture (rail-optimised fat tree).
    """

    kind: str
    bytes_per_s_per_accelerator: float
    oversubscription: float = 1.0
    rails: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.bytes_per_s_per_accelerator < float("inf"):
            raise ValueError("fabric bytes_per_s_per_accelerator must be positive and finite")
        if self.oversubscription < 1.0 or self.rails < 1:
            raise ValueError("oversubscription and rails count from 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Shared storage that feeds a training job.

    Parameters
    ----------
    id, kind : str
        Catalog id; ``parallel``, ``nfs``, ``object``, ``local``.
    read_bytes_per_s, write_bytes_per_s : float or None [byte/s]
        Of the whole system as provisioned for the job; None where unknown (then sized to be adequate, and said so).
    gpu_direct : bool
        Whether data goes to the accelerator without a copy in host memory.

    References
    ----------
    1. NVIDIA GPUDirect Storage documentation, release notes v1.18.
    """

    id: str
    kind: str
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    gpu_direct: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Accelerators of one type wired together.

    Parameters
    ----------
    accelerator : Accelerator
    accelerators : int
        How many; the plan's product must equal it.
    fabric : Fabric or None
        None when everything fits the scale-up domain or a single node.

    References
    ----------
    1. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021.
    """

    accelerator: Accelerator
    accelerators: int
    fabric: Fabric | None

    def __post_init__(self) -> None:
        if self.accelerators < 1:
            raise ValueError(f"a cluster needs at least one accelerator, got {self.accelerators}")
