"""Frozen values of the physical side of the catalog: accelerators, models, node shapes, servers, networks, storage."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from app.catalog.rates import PriceRange
from app.engine.hardware import Accelerator
from app.engine.transformer import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketingCheck:
    """A claim seen in marketing, our verdict, and the official figures behind it."""

    claim: str
    verdict: str
    official: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorEntry:
    """An accelerator with its provenance.

    Parameters
    ----------
    spec : Accelerator or None
        What the engine computes with; None where a source lacks a figure the engine cannot do without (B100).
    not_quotable_reason : str or None
        Why performance is not quoted for this part (no dense BF16 peak, no spec); None when it is.
    """

    id: str
    name: str
    vendor: str
    architecture: str
    price_unit: str
    spec: Accelerator | None
    memory_gb_label: float | None
    memory_mib_reported: int | None
    memory_type: str | None
    vendor_page_quotes_sparse: str
    compute_capability: str | None
    min_cuda_toolkit: str | None
    features: Mapping[str, object]
    confidence: str
    notes: str | None
    conflicts: tuple[str, ...]
    sources: tuple[str, ...]
    marketing_checks: tuple[MarketingCheck, ...]
    not_quotable_reason: str | None

    @property
    def quotable(self) -> bool:
        """Whether performance on this part may be quoted."""
        return self.not_quotable_reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model architecture with its provenance."""

    id: str
    name: str
    transformer: Transformer
    total_params: float | None
    active_params: float | None
    source: str
    notes: str | None
    # number format the authors publish the weights in; None = 16 bit, or not seen
    published_weights: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """A cloud instance type: what comes together when one is rented; None = not stated by the source."""

    id: str
    provider: str
    instance_type: str
    accelerator_id: str
    accelerator_count: int
    vcpus: int | None
    memory_gib: float | None
    network_gbps_per_accelerator: float | None
    local_nvme_gb: float | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server, rack or supernode one can buy, with price estimates (never list prices)."""

    id: str
    kind: str
    vendor: str
    name: str
    accelerator_id: str
    accelerator_count: int
    nodes: int | None
    cpu: str | None
    host_ram_gb: float | None
    local_nvme_tb: float | None
    scale_out_gbps_per_accelerator: float | None
    power_kw: Decimal | None
    power_kind: str | None
    cooling: str | None
    rack_units: int | None
    prices: tuple[PriceRange, ...]
    confidence: str
    notes: str | None
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSwitch:
    """A switch, with its price range where one was derived."""

    name: str
    technology: str
    ports: int
    port_gbps: float
    price: PriceRange | None
    source: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSystem:
    """A shared storage product: throughput per capacity and price as stated; None = not stated.

    Parameters
    ----------
    read_mb_s_per_tib : float or None [MB/(s TiB)]
    price_bytes : int or None [byte]
        What the "GB" of the price means: 10**9 or 2**30; never mixed.
    """

    id: str
    name: str
    kind: str
    read_mb_s_per_tib: float | None
    price_amount: Decimal | None
    price_currency: str | None
    price_bytes: int | None
    gpu_direct: bool | None
    source: str
    notes: str | None
    confidence: str
