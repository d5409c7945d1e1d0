"""What surrounds a training step in this job: data path, checkpoints, failures, power, in the engine's words."""

from app.catalog.snapshot import Snapshot, StorageSystem
from app.engine.hardware import Accelerator, Storage
from app.engine.run import Campaign, Checkpointing, DataLoading, Power, Reliability, RunConditions
from app.engine.run.campaign import accelerators_per_run
from app.estimates.errors import unknown_name
from app.estimates.job_schemas import CampaignField, TrainingJob
from app.estimates.schemas import Item

SECONDS_PER_MINUTE = 60.0
WATTS_PER_KILOWATT = 1000.0
# Highest bucket of the AWS Spot Instance Advisor, ">20 % a month", over 730 h: a floor, since no provider publishes the
# rate of its accelerator instances (unverified: no page of the advisor could be read, 2026-12-01). A reclaimed node
# takes about as long to come back as a broken one.
SPOT_INTERRUPTIONS_PER_NODE_HOUR = 0.20 / 730.0
SPOT_REPLACEMENT_S = 660.0
# Uptime Institute survey 2025, global weighted average; used only when the catalog holds none.
FALLBACK_PUE = 1.54
# Names people use for storage products the catalog keeps under a vendor's id.
STORAGE_ALIASES = {
    "nfs": "nfs-tcp",
    "gpfs": "ibm-storage-scale",
    "storage-scale": "ibm-storage-scale",
    "lustre": "ddn-exascaler",
    "wekafs": "weka",
    "object": "s3-standard",
    "s3": "s3-standard",
    "nvme": "local-nvme",
}


def storage_of(snapshot: Snapshot, item: Item, at: str) -> StorageSystem | None:
    """The storage the caller named; None = adequate storage."""
    job = item.job
    named = job.data.storage if isinstance(job, TrainingJob) else None
    where = f"{at}/job/data/storage"
    if named is None:
        named, where = item.supply.storage, f"{at}/supply/storage"
    if named is None:
        return None
    system = snapshot.storages.get(STORAGE_ALIASES.get(named.lower(), named))
    if system is None:
        raise unknown_name(where, "storage", named, {*snapshot.storages, *STORAGE_ALIASES})
    return system


def conditions_of(
    snapshot: Snapshot, item: Item, accelerator: Accelerator, storage: StorageSystem | None, *, spot: bool
) -> RunConditions:
    """Everything around the step; what the job leaves out takes the engine's cited defaults."""
    job = item.job
    assert isinstance(job, TrainingJob)
    entry = snapshot.accelerators[accelerator.id]
    interval = job.checkpointing.interval_minutes
    return RunConditions(
        data=DataLoading(
            bytes_per_token=job.data.bytes_per_token,
            preprocessing_core_seconds_per_million_tokens=job.data.preprocessing_core_seconds_per_million_tokens,
            compressed=job.data.compressed,
            hardware_decompression=entry.features.get("decompression_engine") is True,
        ),
        storage=None if storage is None else _engine_storage(storage, job.data.gpu_direct_storage),
        checkpointing=Checkpointing(
            interval_s=None if interval == "auto" else interval * SECONDS_PER_MINUTE,
            asynchronous=job.checkpointing.asynchronous,
        ),
        reliability=Reliability(
            spot_interruptions_per_node_hour=SPOT_INTERRUPTIONS_PER_NODE_HOUR if spot else 0.0,
            spot_replacement_s=SPOT_REPLACEMENT_S if spot else 0.0,
        ),
        campaign=campaign_of(job.campaign, job.campaign.concurrent_runs),
        power=power_of(snapshot, item, accelerator),
    )


def campaign_of(field: CampaignField, concurrent_runs: int) -> Campaign:
    """The campaign with so many runs at a time."""
    return Campaign(
        full_runs=field.full_runs,
        partial_runs=field.partial_runs,
        fraction=field.fraction,
        concurrent_runs=concurrent_runs,
        reruns_expected=field.reruns_expected,
        evaluation_fraction=field.evaluation_fraction,
    )


def concurrency_choices(field: CampaignField, fleet: int) -> list[tuple[int, int]]:
    """Runs at a time and accelerators of each, from what was asked down to one run on the whole fleet."""
    most = min(field.concurrent_runs, fleet, field.full_runs + field.partial_runs)
    choices: list[tuple[int, int]] = []
    seen: set[int] = set()
    for runs in range(most, 0, -1):
        share = accelerators_per_run(fleet, campaign_of(field, runs))
        # plans need counts that divide; keep the largest power of two below a node, whole counts above
        usable = share if share >= fleet else 1 << (share.bit_length() - 1)
        if usable not in seen:
            seen.add(usable)
            choices.append((runs, usable))
    return choices


def power_of(snapshot: Snapshot, item: Item, accelerator: Accelerator) -> Power:
    """Nameplate, facility overhead and grid intensity, where they are known."""
    servers = [s for s in snapshot.servers.values() if s.accelerator_id == accelerator.id and s.power_kw is not None]
    rated = None
    if servers:
        server = min(servers, key=lambda s: (s.vendor != "NVIDIA", s.id))
        rated = float(server.power_kw or 0) * WATTS_PER_KILOWATT / server.accelerator_count
    return Power(
        rated_w_per_accelerator=rated,
        power_usage_effectiveness=pue_of(snapshot, item),
        grid_kg_co2e_per_kwh=item.supply.grid_kg_co2e_per_kwh,
    )


def pue_of(snapshot: Snapshot, item: Item) -> float:
    """The caller's own PUE, else the newest survey figure."""
    asked = item.supply.ownership.pue if item.supply.ownership else None
    if asked is not None:
        return float(asked)
    return float(max(snapshot.pue, key=lambda p: p.year).value) if snapshot.pue else FALLBACK_PUE


def _engine_storage(system: StorageSystem, gpu_direct: bool | None) -> Storage:
    direct = system.gpu_direct is True if gpu_direct is None else gpu_direct
    return Storage(id=system.id, kind=system.kind, read_bytes_per_s=None, write_bytes_per_s=None, gpu_direct=direct)
