"""Time of collectives on two levels: the scale-up domain (NVLink, ICI, XGMI) and the network between domains.

Alpha-beta model; every function takes floats or NumPy arrays alike and broadcasts them.
"""

import numpy as np
from numpy.typing import NDArray

Real = float | NDArray[np.float64]


def members_in_domain(group: Real, stride: Real, domain: Real) -> Real:
    """How many members of a group share one scale-up domain.

    Parameters
    ----------
    group : float or array
        Members of the communicator.
    stride : float or array
        Distance between neighbours in rank order (1 for the innermost parallel dimension).
    domain : float or array
        Accelerators in one scale-up domain.

    Returns
    -------
    float or array
        At least one, at most ``group``.

    References
    ----------
    1. Narayanan et al. 2021, section 3 (tensor parallelism inside the node, the others outside).
    """
    return np.clip(np.floor(domain / stride), 1.0, group)


def gather_time(
    total_bytes: Real,
    group: Real,
    inside: Real,
    *,
    scale_up_bytes_per_s: Real,
    scale_out_bytes_per_s: Real,
    scale_up_latency_s: Real,
    scale_out_latency_s: Real,
) -> Real:
    """Time of an all-gather or a reduce-scatter whose gathered buffer holds ``total_bytes``.

    Parameters
    ----------
    total_bytes : float or array [byte]
        The gathered (or to be scattered) buffer of one rank.
    group, inside : float or array
        Members, and how many of them share a scale-up domain.
    scale_up_bytes_per_s, scale_out_bytes_per_s : float or array [byte/s]
        Of one accelerator, one direction.
    scale_up_latency_s, scale_out_latency_s : float or array [s]
        Of one step.

    Returns
    -------
    float or array [s]

    Notes
    -----
    Hierarchical: every rank moves ``1/inside`` of the buffer over its own rail, then spreads it inside the domain.
    Both levels are pipelined, so the slower one counts. An all-reduce is twice this.

    References
    ----------
    1. Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.
    2. Rabenseifner, "Optimization of Collective Reduction Operations", 2004.
    """
    outside = group / inside
    inner = total_bytes * (inside - 1.0) / (inside * scale_up_bytes_per_s) + (inside > 1.0) * scale_up_latency_s
    outer = total_bytes * (outside - 1.0) / (outside * inside * scale_out_bytes_per_s)
    outer = outer + np.ceil(np.log2(outside)) * scale_out_latency_s
    return np.maximum(inner, outer) + np.minimum(inner, outer) * (outside > 1.0) * PIPELINE_REMAINDER


# of two pipelined levels the faster one still shows a part: NCCL fills and drains one chunk of typically four
PIPELINE_REMAINDER = 0.25


def all_to_all_time(
    rank_bytes: Real,
    group: Real,
    inside: Real,
    *,
    scale_up_bytes_per_s: Real,
    scale_out_bytes_per_s: Real,
    scale_up_latency_s: Real,
    scale_out_latency_s: Real,
    copies: Real = 0.0,
) -> Real:
    """Time of an all-to-all in which every rank sends ``rank_bytes`` evenly to the group.

    Parameters
    ----------
    rank_bytes : float or array [byte]
    group, inside : float or array
    scale_up_bytes_per_s, scale_out_bytes_per_s : float or array [byte/s]
    scale_up_latency_s, scale_out_latency_s : float or array [s]
    copies : float or array
        Destinations of each token, where the dispatcher sends it once to each domain and spreads it there; 0 where
        every copy goes its own way.

    Returns
    -------
    float or array [s]

    Notes
    -----
    Of ``k`` copies to ``d`` domains, ``d (1 - (1 - 1/d)^k)`` domains get at least one under uniform routing.

    References
    ----------
    1. Thakur et al. 2005; DeepSeek-AI, DeepEP (dispatch and combine over NVLink and RDMA).
    """
    domains = group / inside
    # a single domain is told from several in single precision too
    sent = np.where(copies > 0.0, domains * -np.expm1(copies * np.log1p(-1.0 / np.maximum(domains, 1.0 + 1e-6))), 1.0)
    crossing = np.where((copies > 0.0) & (domains > 1.0), sent / np.maximum(copies, 1.0), 1.0)
    spread = np.where(copies > 0.0, inside, group)
    inner = rank_bytes * (inside - 1.0) / (spread * scale_up_bytes_per_s) + (group > 1.0) * scale_up_latency_s
    outer = crossing * rank_bytes * (group - inside) / (group * scale_out_bytes_per_s)
    outer = outer + (group > inside) * scale_out_latency_s
    return np.maximum(inner, outer)


def point_to_point_time(
    sent_bytes: Real, inside: NDArray[np.bool_] | bool, *, scale_up_bytes_per_s: Real, scale_out_bytes_per_s: Real
) -> Real:
    """Time to send ``sent_bytes`` to one neighbour, inside the scale-up domain or over the network.

    Parameters
    ----------
    sent_bytes : float or array [byte]
    inside : bool or array
        Whether sender and receiver share a domain.
    scale_up_bytes_per_s, scale_out_bytes_per_s : float or array [byte/s]

    Returns
    -------
    float or array [s]

    References
    ----------
    1. Narayanan et al. 2021, section 2.2 (pipeline point-to-point).
    """
    return sent_bytes / np.where(inside, scale_up_bytes_per_s, scale_out_bytes_per_s)


def group_link_bytes_per_s(link_bytes_per_s: Real, inside: Real, domain: Real, mesh: Real) -> Real:
    """Scale-up rate one accelerator can use within a group of ``inside`` members.

    Parameters
    ----------
    link_bytes_per_s : float or array [byte/s]
        All links of one accelerator together, one direction.
    inside, domain : float or array
    mesh : float or array
        1 where links are point to point (each peer owns a fixed share), 0 behind a switch.

    Returns
    -------
    float or array [byte/s]

    References
    ----------
    1. AMD, "MI300X platform data sheet", 2023: seven links of 64 GB/s a direction, one to each peer.
    """
    share = np.where(domain > 1.0, (inside - 1.0) / np.maximum(domain - 1.0, 1.0), 1.0)
    return link_bytes_per_s * np.where((mesh > 0.0) & (inside > 1.0), share, 1.0)
