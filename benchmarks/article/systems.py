"""Where each system the article names lives in the catalog or the engine."""

from collections.abc import Callable, Iterator, Mapping

from app.catalog.snapshot import Snapshot

Find = Callable[[Snapshot], str | None]


def _server(part: str) -> Find:
    def find(snapshot: Snapshot) -> str | None:
        found = sorted(s.name for s in snapshot.servers.values() if s.accelerator_id == part)
        return f"servers: {', '.join(found)}" if found else None

    return find


def _accelerator(part: str) -> Find:
    def find(snapshot: Snapshot) -> str | None:
        return f"accelerator `{part}`" if part in snapshot.accelerators else None

    return find


def _formats(snapshot: Snapshot) -> str | None:
    spec = snapshot.accelerators["b200-sxm-180"].spec
    if spec is None:
        return None
    peaks = spec.dense_peaks
    names = [name for name in ("fp8", "fp16", "bf16", "int8", "fp4") if getattr(peaks, name) is not None]
    return f"dense peaks of `b200-sxm-180`: {', '.join(names)}" if len(names) == 5 else None


def _memory(snapshot: Snapshot) -> str | None:
    entry = snapshot.accelerators["b200-sxm-180"]
    return f"memory_type of `{entry.id}`: {entry.memory_type}" if entry.memory_type else None


def _scale_up(snapshot: Snapshot) -> str | None:
    spec = snapshot.accelerators["b200-sxm-180"].spec
    if spec is None or spec.scale_up_bytes_per_s_per_accelerator is None:
        return None
    rate = spec.scale_up_bytes_per_s_per_accelerator / 1e9
    return f"scale-up link: {rate:g} GB/s per direction, {spec.scale_up_topology}, domain {spec.scale_up_domain}"


def _chip_to_chip(snapshot: Snapshot) -> str | None:
    found = [
        e.id
        for e in snapshot.accelerators.values()
        for c in e.marketing_checks
        if "C2C" in c.claim or "C2C" in c.official
    ]
    return f"checked statement at `{found[0]}`; Grace parts: `gb200-186`, `gb300-288`" if found else None


def _host_link(snapshot: Snapshot) -> str | None:
    spec = snapshot.accelerators["b200-sxm-180"].spec
    return None if spec is None else f"host link of `b200-sxm-180`: {spec.pcie_bytes_per_s / 1e9:g} GB/s one direction"


def _storage(key: str) -> Find:
    def find(snapshot: Snapshot) -> str | None:
        system = snapshot.storages.get(key)
        return None if system is None else f"storage `{key}` ({system.name})"

    return find


def _direct(snapshot: Snapshot) -> str | None:
    able = sorted(s.id for s in snapshot.storages.values() if s.gpu_direct is True)
    return f"storage field gpu_direct: {', '.join(able)}" if able else None


def _decompression(snapshot: Snapshot) -> str | None:
    able = sorted(e.id for e in snapshot.accelerators.values() if e.features.get("decompression_engine") is True)
    return f"feature decompression_engine of {', '.join(able[:4])}" if able else None


def _switch(word: str) -> Find:
    def find(snapshot: Snapshot) -> str | None:
        found = [s.name for s in snapshot.switches if word.lower() in f"{s.name} {s.technology}".lower()]
        return f"switches: {', '.join(found)}" if found else None

    return find


def _software(component: str) -> Find:
    def find(snapshot: Snapshot) -> str | None:
        found = [
            s for s in snapshot.software if s.component == component and s.architecture == "Blackwell" and s.version
        ]
        return f"minimum for Blackwell: {found[0].version}" if found else None

    return find


def _containers(snapshot: Snapshot) -> str | None:
    rows = snapshot.evidence.get("training", ())
    found = next((str(r["version"]) for r in rows if "NeMo container" in str(r.get("version", ""))), None)
    return f"measured rows carry their container: {found.split(';')[0]}" if found else None


WHERE: Mapping[str, Find] = {
    "B200 server": _server("b200-sxm-180"),
    "H100": _accelerator("h100-sxm5-80"),
    "FP8/FP16/BF16/INT8/FP4 tensor cores": _formats,
    "HBM3e": _memory,
    "NVLink": _scale_up,
    "NVSwitch": _scale_up,
    "NVLink-C2C": _chip_to_chip,
    "all-reduce": lambda _: "`engine/collectives.py`",
    "PCIe 5.0": _host_link,
    "NVMe": _storage("local-nvme"),
    "GPUDirect Storage": _direct,
    "decompression engine": _decompression,
    "WEKA": _storage("weka"),
    "GPFS (IBM Storage Scale)": _storage("ibm-storage-scale"),
    "InfiniBand": _switch("infiniband"),
    "RoCE": _switch("roce"),
    "CUDA": _software("cuda"),
    "cuDNN": _software("cudnn"),
    "TensorRT": _software("tensorrt"),
    "NVIDIA containers": _containers,
}


def place_of(snapshot: Snapshot, system: str) -> str | None:
    """Where a system is, or None."""
    find = WHERE.get(system)
    return None if find is None else find(snapshot)


def systems_table(snapshot: Snapshot, systems: tuple[str, ...]) -> Iterator[str]:
    """One line per system the article names."""
    yield "## Systems the article names"
    yield ""
    yield "| system | where it is |"
    yield "|---|---|"
    for system in systems:
        yield f"| {system} | {place_of(snapshot, system) or '**missing**'} |"
