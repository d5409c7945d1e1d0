"""A cluster as the numbers the time of a step needs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.hardware import Accelerator, Cluster
from app.engine.precision import FORMATS

Real = float | NDArray[np.float64]

# one NIC port of a typical cloud server, shared by its accelerators, where the catalog knows no network [byte/s]:
# 100 Gbit/s per accelerator (HPC cloud instances, catalog: networks)
DEFAULT_SCALE_OUT_BYTES_PER_S = 12.5e9
# step of a collective inside the scale-up domain and between nodes (NCCL 2.29 small-message latencies, kernels table)
SCALE_UP_LATENCY_S, SCALE_OUT_LATENCY_S = 8.0e-6, 2.0e-5
# driver, context, communicator buffers and allocator slack that a framework keeps for itself [byte]
FRAMEWORK_RESERVE_BYTES = 3.0e9
# the same where a compiler plans memory ahead of time (XLA: no caching allocator, no communicator buffers)
COMPILED_RESERVE_BYTES = 1.0e9
# a compiler lays memory out ahead of time: nothing is lost to fragments
COMPILED_ALLOCATABLE_SHARE = 1.0
COMPILED_VENDORS = ("Google", "AWS")
# share of memory an allocator can hand out before fragmentation (PyTorch expandable segments)
ALLOCATABLE_SHARE = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Numbers of one cluster, or arrays of them, one per job.

    Parameters
    ----------
    flops_per_s, wide_flops_per_s : float or array [FLOP/s]
        Dense peak of the matmul format and of 16-bit.
    memory_bytes, memory_bytes_per_s : float or array
    reserve_bytes : float or array [byte]
        What driver and framework keep for themselves.
    allocatable_share : float or array
        Share of memory that can be handed out before fragments fill the rest.
    scale_up_bytes_per_s, scale_out_bytes_per_s : float or array [byte/s]
        Of one accelerator, one direction, before protocol losses.
    domain : float or array
        Accelerators in one scale-up domain (the node where there is no scale-up link but PCIe).
    mesh, torus : float or array
        1 where links are point to point, or form a torus.
    accelerators, node : float or array

    References
    ----------
    1. Catalog rows, each with its sources.
    """

    flops_per_s: Real
    wide_flops_per_s: Real
    memory_bytes: Real
    memory_bytes_per_s: Real
    reserve_bytes: Real
    allocatable_share: Real
    scale_up_bytes_per_s: Real
    scale_out_bytes_per_s: Real
    domain: Real
    mesh: Real
    torus: Real
    accelerators: Real
    node: Real


def dense_peak(accelerator: Accelerator, precision: str) -> float | None:
    """Dense peak of an accelerator for a training precision, None where it has none.

    Parameters
    ----------
    accelerator : Accelerator
    precision : str

    Returns
    -------
    float or None [FLOP/s]

    References
    ----------
    1. Vendor datasheets, dense figures only.
    """
    peaks = accelerator.dense_peaks
    found: float | None = getattr(peaks, FORMATS[precision].peak)
    if found is None and precision == "fp16":
        found = peaks.bf16
    return found


def hardware_of(cluster: Cluster, precision: str) -> Hardware | None:
    """Numbers of a cluster at a precision, None where the accelerator lacks the format.

    Parameters
    ----------
    cluster : Cluster
    precision : str

    Returns
    -------
    Hardware or None

    References
    ----------
    1. Catalog rows; Narayanan et al. 2021 (two-level network).
    """
    part = cluster.accelerator
    peak = dense_peak(part, precision)
    if peak is None:
        return None
    domain, scale_up = float(part.scale_up_domain), part.scale_up_bytes_per_s_per_accelerator
    if scale_up is None or domain <= 1.0:
        domain, scale_up = float(max(part.accelerators_per_node, 1)), part.pcie_bytes_per_s
    fabric = cluster.fabric
    if fabric is not None:
        scale_out = fabric.bytes_per_s_per_accelerator / fabric.oversubscription
    else:
        scale_out = part.scale_out_bytes_per_s_per_accelerator or DEFAULT_SCALE_OUT_BYTES_PER_S
    compiled = part.vendor in COMPILED_VENDORS
    topology = part.scale_up_topology.lower()
    return Hardware(
        flops_per_s=peak,
        wide_flops_per_s=part.dense_peaks.bf16 or part.dense_peaks.fp16 or peak,
        memory_bytes=part.memory_bytes,
        memory_bytes_per_s=part.memory_bandwidth_bytes_per_s,
        reserve_bytes=COMPILED_RESERVE_BYTES if compiled else FRAMEWORK_RESERVE_BYTES,
        allocatable_share=COMPILED_ALLOCATABLE_SHARE if compiled else ALLOCATABLE_SHARE,
        scale_up_bytes_per_s=scale_up,
        scale_out_bytes_per_s=min(scale_out, scale_up),
        domain=domain,
        mesh=float("mesh" in topology),
        torus=float("torus" in topology),
        accelerators=float(cluster.accelerators),
        node=float(part.accelerators_per_node),
    )
