"""Accelerators and models as they ship in the package, before any database: calibration and benchmarks read these."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from app.catalog.shipped_models import CONFIG_FILES, UnusableModelError, transformer_of, with_context
from app.engine.hardware import Accelerator, DensePeaks
from app.engine.huggingface import read_config
from app.engine.transformer import Transformer

GIGA = 1e9
TERA = 1e12
BITS_PER_BYTE = 8.0
BYTES_PER_MIB = 2.0**20

# PCI Express x16 payload rate of one direction by generation, GB/s (PCI-SIG base specifications 3.0 to 6.0; the
# catalog's own scale_up column uses the same rounding).
PCIE_X16_GB_S = {3: 16.0, 4: 32.0, 5: 64.0, 6: 128.0}

# Host link of parts whose source states none (cloud TPUs and Trainium): PCI Express 4 x16, an assumption.
ASSUMED_PCIE_GENERATION = 4

# Accelerators of a server where the source states none: eight, the usual count of PCIe and OAM servers.
ASSUMED_ACCELERATORS_PER_NODE = 8

TOPOLOGY_WORDS = (
    ("switched all-to-all", "nvswitch"),
    ("optical all-to-all", "nvswitch"),
    ("torus", "torus"),
    ("all-to-all", "mesh"),
    ("mesh", "mesh"),
)


def read_data(name: str) -> Any:
    """Parsed JSON file of the package's ``data`` folder."""
    return json.loads(files("app.catalog").joinpath("data", name).read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def shipped_accelerators() -> Mapping[str, Accelerator]:
    """Accelerators by catalog id, without the unusable ones (see :func:`unusable_accelerators`)."""
    return MappingProxyType({key: value for key, value in _accelerators().items() if isinstance(value, Accelerator)})


@lru_cache(maxsize=1)
def unusable_accelerators() -> Mapping[str, str]:
    """Why an accelerator of the data cannot be computed with, by id."""
    return MappingProxyType({key: value for key, value in _accelerators().items() if isinstance(value, str)})


@lru_cache(maxsize=1)
def shipped_models() -> Mapping[str, Transformer]:
    """All usable models by family key, benchmark-only shapes included (see :func:`is_benchmark_only`)."""
    return MappingProxyType({key: value for key, value in _models().items() if isinstance(value, Transformer)})


@lru_cache(maxsize=1)
def unusable_models() -> Mapping[str, str]:
    """Why a model of the data cannot be computed with, by family key."""
    return MappingProxyType({key: value for key, value in _models().items() if isinstance(value, str)})


def is_benchmark_only(family: str) -> bool:
    """Whether a family exists only in benchmarks (layer-cut or synthetic) and is not offered to users."""
    return bool(read_models()[family]["benchmark_only"])


@lru_cache(maxsize=1)
def read_models() -> Mapping[str, Mapping[str, Any]]:
    """Rows of ``models.json`` by family key, as they are."""
    return MappingProxyType(read_data("models.json")["models"])


@lru_cache(maxsize=1)
def _gpu_map() -> Mapping[str, str]:
    return MappingProxyType(read_data("accelerator_map.json")["map"])


def accelerator_id_of(gpu: str) -> str:
    """Catalog id of the ``gpu`` string of a measurement row.

    Raises
    ------
    KeyError
        For names the map does not hold: refuse them loudly, never guess.
    """
    try:
        return _gpu_map()[gpu]
    except KeyError:
        raise KeyError(f"{gpu!r} is not in accelerator_map.json; the catalog does not hold that hardware") from None


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Transformer | str]:
    completions = read_data("model_completions.json")["families"]
    contexts = read_data("model_contexts.json")["contexts"]
    out: dict[str, Transformer | str] = {}
    for family, row in read_models().items():
        if family in CONFIG_FILES:
            config = read_data(f"model_configs/{CONFIG_FILES[family]}")
            published = read_config(config, name=row["name"] or family).transformer
            out[family] = replace(published, parameters_stated=row["total_params"])
            continue
        try:
            out[family] = with_context(family, transformer_of(family, row, completions.get(family, {})), contexts)
        except UnusableModelError as error:
            out[family] = str(error)
    return out


@lru_cache(maxsize=1)
def _accelerators() -> Mapping[str, Accelerator | str]:
    memory = read_data("accelerator_memory.json")["rows"]
    links = read_data("accelerator_links.json")["rows"]
    out: dict[str, Accelerator | str] = {}
    for row in read_data("accelerators.json")["accelerators"]:
        key = row["id"]
        if row["memory_gb_label"] is None and row["memory_mib_reported"] is None and key not in memory:
            out[key] = "no memory size in any source read"
        elif all(value is None for value in row["tflops_dense"].values()):
            out[key] = "no dense peak in any source read"
        else:
            out[key] = _accelerator(row, memory.get(key), links.get(key, {}))
    return out


def _accelerator(row: Mapping[str, Any], memory: Mapping[str, Any] | None, link: Mapping[str, Any]) -> Accelerator:
    size, basis = _memory(row, memory)
    scale_up = row["scale_up"]
    rate = link.get("scale_up_gb_s", scale_up["per_direction_gb_s"])
    per_node = row["max_accelerators_per_node"] or link.get("accelerators_per_node", ASSUMED_ACCELERATORS_PER_NODE)
    domain = link.get("scale_up_domain", scale_up["domain_size"])
    scale_out = row["typical_scale_out_gbps_per_accelerator"]
    return Accelerator(
        id=row["id"],
        vendor=row["vendor"],
        name=row["name"],
        architecture=row["architecture"],
        form_factor=row["form_factor"],
        memory_bytes=size,
        memory_bytes_basis=basis,
        memory_bandwidth_bytes_per_s=row["memory_bandwidth_gb_s"] * GIGA,
        dense_peaks=DensePeaks(**{k: None if v is None else v * TERA for k, v in row["tflops_dense"].items()}),
        scale_up_bytes_per_s_per_accelerator=None if rate is None else rate * GIGA,
        scale_up_domain=domain or 1,
        scale_up_topology=link.get("topology") or _topology(scale_up["topology"]),
        pcie_bytes_per_s=_pcie_bytes_per_s(row),
        accelerators_per_node=per_node,
        scale_out_bytes_per_s_per_accelerator=None if scale_out is None else scale_out / BITS_PER_BYTE * GIGA,
        thermal_design_power_w=row["tdp_w"],
        released_on_year=row["release_year"],
    )


def _memory(row: Mapping[str, Any], memory: Mapping[str, Any] | None) -> tuple[float, str]:
    if row["memory_mib_reported"] is not None:
        return row["memory_mib_reported"] * BYTES_PER_MIB, "reported"
    if memory is not None:
        return memory["memory_mib"] * BYTES_PER_MIB, memory["basis"]
    return row["memory_gb_label"] * GIGA, "label"


def _topology(text: str | None) -> str:
    if text in ("nvswitch", "pcie", "bridge"):
        return text
    for word, topology in TOPOLOGY_WORDS:
        if text and word in text:
            return topology
    return "unknown"


def _pcie_bytes_per_s(row: Mapping[str, Any]) -> float:
    """Host link; where the scale-up link is the host link its rate counts (some rows state a generation denying it)."""
    scale_up = row["scale_up"]
    if scale_up["topology"] == "pcie":
        return float(scale_up["per_direction_gb_s"]) * GIGA
    generation = row["pcie_gen"] or ASSUMED_PCIE_GENERATION
    return PCIE_X16_GB_S[generation] * GIGA
