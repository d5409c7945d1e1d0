"""Storage path of a training job: reading data, writing and reading checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.engine.hardware import Cluster
from app.engine.run.conditions import DataLoading, RunConditions

TOKENS_PER_MILLION = 1e6

# Without a direct path a byte enters host memory over the host link and leaves over it again; measured: "compat mode
# costs nearly 2x bandwidth" (farmgpu GPUDirect Storage benchmark report, theory page, 2025).
BOUNCE_CROSSINGS = 2.0

# zstd -1 on text: ratio and decompression rate of one core (facebook/zstd README benchmark, 1.5.6, Core i7-9700K).
ZSTD_RATIO = 2.887
ZSTD_BYTES_PER_S_PER_CORE = 1580e6

# Blackwell's decompression engine, bytes a second of output (NVIDIA, "Blackwell Architecture Technical Brief", 2024).
DECOMPRESSION_ENGINE_BYTES_PER_S = 800e9

# Share of a node's storage link that NFS reached on a 504-accelerator B200 cluster: reads 21.5 %, writes 16.0 %
# (reliability_facts.json: b200-ckpt-bw).
NFS_READ_SHARE = 0.215
NFS_WRITE_SHARE = 0.160

# One request to an object store, bytes a second (Amazon S3 user guide, "Performance design patterns": 85 to 90 MB/s
# per concurrent request); one request in flight per loader core.
OBJECT_REQUEST_BYTES_PER_S = 85e6

# Cores of an accelerator that its own training process keeps (one process per accelerator: torchrun, MPI).
TRAINING_CORES_PER_ACCELERATOR = 1.0

# Storage link of a node where neither the data nor the accelerator states one: 100 Gb/s, the front-end network of
# cloud accelerator nodes (servers.json: g5, g6 100 Gb/s).
FRONT_END_BYTES_PER_S = 12.5e9

# Write rate of one node to a parallel file system where none is stated: 2.3 TB in 40 s from 48 nodes
# (reliability_facts.json: bloom-ckpt, bloom-spares).
NODE_CHECKPOINT_BYTES_PER_S = 2.3e12 / 40.0 / 48.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataStall:
    """Whether data keeps up with the accelerators.

    Parameters
    ----------
    share : float
        Share of wall time the accelerators wait for data; loading overlaps training, so 0 when everything keeps up.
    limited_by : str
        The slowest stage: ``storage``, ``network``, ``host_link``, ``preprocessing``, ``decompression`` or ``none``.
    required_read_bytes_per_s : float [byte/s]
        What storage must deliver to the whole job.
    required_cores : float
        Host cores that preprocessing and decompression need for the whole job.
    stored_bytes_per_token : float [byte/token]
        As kept on storage, compressed where it is.
    available_tokens_per_s : mapping of str to float [token/s]
        What each stage could feed.
    """

    share: float
    limited_by: str
    required_read_bytes_per_s: float
    required_cores: float
    stored_bytes_per_token: float
    available_tokens_per_s: Mapping[str, float]


def nodes_of(cluster: Cluster) -> int:
    """Nodes of a cluster, the last one perhaps partly used.

    Parameters
    ----------
    cluster : Cluster

    Returns
    -------
    int

    References
    ----------
    1. None needed: bookkeeping.
    """
    return -(-cluster.accelerators // cluster.accelerator.accelerators_per_node)


def data_stall(tokens_per_s: float, cluster: Cluster, conditions: RunConditions) -> DataStall:
    """Compare what training consumes with what every stage of the data path can deliver.

    Parameters
    ----------
    tokens_per_s : float [token/s]
        Of the whole cluster, when never short of data.
    cluster : Cluster
    conditions : RunConditions

    Returns
    -------
    DataStall

    Notes
    -----
    Loaders prefetch, so only the slowest stage counts and stages do not add. Bursts, small files and metadata are not
    modelled: a stated storage rate should be one measured with the job's own file sizes.

    References
    ----------
    1. NVIDIA, GPUDirect Storage design guide and release notes v1.18.
    2. The constants of this module.
    """
    data = conditions.data
    stored = data.bytes_per_token / (ZSTD_RATIO if data.compressed else 1.0)
    core_s = _core_seconds_per_token(data)
    stages = {name: rate / stored for name, rate in _read_limits(cluster, conditions).items()}
    cores = cluster.accelerators * max(0.0, data.host_cores_per_accelerator - TRAINING_CORES_PER_ACCELERATOR)
    if data.preprocessing_core_seconds_per_million_tokens > 0.0:
        stages["preprocessing"] = cores / core_s
    elif core_s > 0.0:
        stages["decompression"] = cores / core_s
    if data.compressed and data.hardware_decompression:
        stages["decompression"] = DECOMPRESSION_ENGINE_BYTES_PER_S * cluster.accelerators / data.bytes_per_token
    slowest = min(stages, key=lambda name: stages[name])
    ratio = stages[slowest] / tokens_per_s
    return DataStall(
        share=max(0.0, 1.0 - ratio),
        limited_by=slowest if ratio < 1.0 else "none",
        required_read_bytes_per_s=tokens_per_s * stored,
        required_cores=tokens_per_s * core_s,
        stored_bytes_per_token=stored,
        available_tokens_per_s=stages,
    )


def breakdown_with_stall(time_breakdown: Mapping[str, float], stall: DataStall) -> dict[str, float]:
    """Shares of the step with the wait for data among them.

    Parameters
    ----------
    time_breakdown : mapping of str to float
        Shares of a step that never waits for data; they add to 1.
    stall : DataStall

    Returns
    -------
    dict of str to float
        The same shares of a longer step, and ``data_stall``; they add to 1.

    References
    ----------
    1. None needed: bookkeeping.
    """
    shares = {name: share * (1.0 - stall.share) for name, share in time_breakdown.items()}
    shares["data_stall"] = shares.get("data_stall", 0.0) + stall.share
    return shares


def _core_seconds_per_token(data: DataLoading) -> float:
    work = data.preprocessing_core_seconds_per_million_tokens / TOKENS_PER_MILLION
    if data.compressed and not data.hardware_decompression:
        work += data.bytes_per_token / ZSTD_BYTES_PER_S_PER_CORE
    return work


def _node_link_bytes_per_s(cluster: Cluster, data: DataLoading) -> float:
    if data.node_storage_bytes_per_s is not None:
        return data.node_storage_bytes_per_s
    return cluster.accelerator.scale_out_bytes_per_s_per_accelerator or FRONT_END_BYTES_PER_S


def _read_limits(cluster: Cluster, conditions: RunConditions) -> dict[str, float]:
    """Bytes a second of the whole job that storage, network and host link let through."""
    storage, data = conditions.storage, conditions.data
    nodes = nodes_of(cluster)
    link = _node_link_bytes_per_s(cluster, data)
    direct = storage is not None and storage.gpu_direct
    limits = {
        "host_link": cluster.accelerators * cluster.accelerator.pcie_bytes_per_s / (1.0 if direct else BOUNCE_CROSSINGS)
    }
    kind = storage.kind if storage is not None else "parallel"
    if kind == "nfs" and not direct:
        link *= NFS_READ_SHARE
    if kind == "object":
        requests = data.host_cores_per_accelerator * cluster.accelerator.accelerators_per_node
        link = min(link, requests * OBJECT_REQUEST_BYTES_PER_S)
    if kind != "local":
        limits["network"] = nodes * link
    if storage is not None and storage.read_bytes_per_s is not None:
        limits["storage"] = storage.read_bytes_per_s * (nodes if kind == "local" else 1)
    return limits


def checkpoint_write_s(checkpoint_bytes: float, cluster: Cluster, conditions: RunConditions) -> float:
    """Time to write one checkpoint from all nodes at once.

    Parameters
    ----------
    checkpoint_bytes : float [byte]
    cluster : Cluster
    conditions : RunConditions

    Returns
    -------
    float [s]

    References
    ----------
    1. reliability_facts.json: bloom-ckpt (40 s for 2.3 TB), b200-ckpt-bw (NFS).
    """
    storage = conditions.storage
    nodes = nodes_of(cluster)
    rate = nodes * _node_link_bytes_per_s(cluster, conditions.data)
    if storage is None or storage.write_bytes_per_s is None:
        rate = min(rate, nodes * NODE_CHECKPOINT_BYTES_PER_S)
    else:
        rate = min(rate, storage.write_bytes_per_s * (nodes if storage.kind == "local" else 1))
    if storage is not None and storage.kind == "nfs" and not storage.gpu_direct:
        rate = min(rate, nodes * _node_link_bytes_per_s(cluster, conditions.data) * NFS_WRITE_SHARE)
    return checkpoint_bytes / rate


def checkpoint_read_s(checkpoint_bytes: float, cluster: Cluster, conditions: RunConditions) -> float:
    """Time to read one checkpoint into all nodes at a restart.

    Parameters
    ----------
    checkpoint_bytes : float [byte]
        Read once in all: every node reads its own shards.
    cluster : Cluster
    conditions : RunConditions

    Returns
    -------
    float [s]

    References
    ----------
    1. reliability_facts.json: b200-ckpt-bw (restart loading).
    """
    limits = _read_limits(cluster, conditions)
    if conditions.storage is None or conditions.storage.read_bytes_per_s is None:
        limits["storage"] = nodes_of(cluster) * NODE_CHECKPOINT_BYTES_PER_S
    return checkpoint_bytes / min(limits.values())
