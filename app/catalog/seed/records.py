"""The shipped facts as records: a kind, a key and a canonical JSON payload, so that a revision keeps what it knew."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from app.catalog import shipped
from app.catalog.codec import encode
from app.catalog.entries import AcceleratorEntry, MarketingCheck, ModelEntry, NodeShape
from app.catalog.record import Record
from app.catalog.seed.infrastructure import infrastructure_records
from app.catalog.seed.price_files import data_bytes


def read_exact(name: str) -> Any:
    """Read a shipped JSON file with its decimals kept as decimals."""
    return json.loads(data_bytes(name), parse_float=Decimal)


@lru_cache(maxsize=1)
def seed_records() -> tuple[Record, ...]:
    """Give every shipped record that is not a price."""
    servers = read_exact("servers.json")
    return (
        *_providers(),
        *_accelerators(),
        *_aliases(),
        *_models(),
        *_node_shapes(servers),
        *infrastructure_records(servers, read_exact("reliability_facts.json")),
        *_taxes(),
        *_software(),
        *_documents(),
    )


def _providers() -> Iterator[Record]:
    for row in read_exact("providers.json")["providers"]:
        yield Record(kind="provider", key=row["id"], payload=row)


def _accelerators() -> Iterator[Record]:
    data = shipped.read_data("accelerators.json")
    checks = [
        MarketingCheck(claim=c["claim"], verdict=c["verdict"], official=c["official"], sources=tuple(c["sources"]))
        for c in data["marketing_claim_checks"]
    ]
    specs, unusable = shipped.shipped_accelerators(), shipped.unusable_accelerators()
    for row in data["accelerators"]:
        spec = specs.get(row["id"])
        reason = unusable.get(row["id"])
        if spec is not None and spec.dense_peaks.bf16 is None:
            reason = "no dense BF16 peak in any source read"
        entry = AcceleratorEntry(
            id=row["id"],
            name=row["name"],
            vendor=row["vendor"],
            architecture=row["architecture"],
            price_unit=row["price_unit"],
            spec=spec,
            memory_gb_label=row["memory_gb_label"],
            memory_mib_reported=row["memory_mib_reported"],
            memory_type=row["memory_type"],
            vendor_page_quotes_sparse=str(row["vendor_page_quotes_sparse"]).lower(),
            compute_capability=row["compute_capability"],
            min_cuda_toolkit=row["min_cuda_toolkit"],
            features=row["features"],
            confidence=row["confidence"],
            notes=row["notes"],
            conflicts=tuple(row["conflicts"]),
            sources=tuple(row["sources"]),
            marketing_checks=tuple(check for check in checks if _names(check, row["id"])),
            not_quotable_reason=reason,
        )
        yield Record(kind="accelerator", key=entry.id, payload=encode(entry))


def _names(check: MarketingCheck, accelerator_id: str) -> bool:
    """Whether a checked claim is about this part: its name up to the first dash stands in the claim."""
    return accelerator_id.partition("-")[0].upper() in check.claim.upper()


def _aliases() -> Iterator[Record]:
    data = shipped.read_data("accelerators.json")
    found: dict[str, str | None] = {row["id"]: row["id"] for row in data["accelerators"]}
    found.update({label.lower(): target for label, target in data["price_csv_labels"].items()})
    found.update({f"gcp:{label}".lower(): target for label, target in data["gcp_component_labels"].items()})
    extra = read_exact("accelerator_aliases.json")["aliases"]
    found.update({label.lower(): target for label, target in extra.items()})
    for label in sorted(found):
        yield Record(kind="accelerator_alias", key=label, payload={"accelerator_id": found[label]})


def _models() -> Iterator[Record]:
    rows, formats = shipped.read_models(), shipped.read_data("model_formats.json")["formats"]
    for family, transformer in shipped.shipped_models().items():
        row = rows[family]
        if row["benchmark_only"]:
            continue
        entry = ModelEntry(
            id=family,
            name=row.get("name") or family,
            transformer=transformer,
            total_params=row.get("total_params"),
            active_params=row.get("active_params"),
            source=row.get("source") or "not stated",
            notes=row.get("notes"),
            published_weights=formats[family]["weights"] if family in formats else None,
        )
        yield Record(kind="model", key=family, payload=encode(entry))


def _node_shapes(servers: Mapping[str, Any]) -> Iterator[Record]:
    for row in servers["cloud_node_shapes"]:
        shape = NodeShape(
            id=f"{row['provider']}/{row['instance_type']}",
            provider=row["provider"],
            instance_type=row["instance_type"],
            accelerator_id=row["accelerator_id"],
            accelerator_count=row["accelerator_count"],
            vcpus=row["vcpus"],
            memory_gib=_number(row["memory_gib"]),
            network_gbps_per_accelerator=_number(row["network_gbps_per_accelerator"]),
            local_nvme_gb=_number(row["local_nvme_gb"]),
            source=row["source"],
        )
        yield Record(kind="node_shape", key=shape.id, payload=encode(shape))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _taxes() -> Iterator[Record]:
    for row in read_exact("tax_rules.json")["rules"]:
        key = f"{row['jurisdiction']}/{row['category']}/{row['valid_from']}"
        yield Record(kind="tax_rule", key=key, payload=row)


def _software() -> Iterator[Record]:
    for row in read_exact("software_minima.json")["minima"]:
        yield Record(kind="software", key=f"{row['architecture']}/{row['component']}", payload=row)


@dataclass(frozen=True, slots=True)
class _Document:
    key: str
    file: str


# Calibration of the engine and the measurements behind it; a file may not have been fitted yet.
DOCUMENTS = (
    _Document("calibration/training", "calibration/training.json"),
    _Document("calibration/serving", "calibration/serving.json"),
    _Document("evidence/training", "calibration/training_evidence.jsonl"),
    _Document("evidence/serving", "calibration/serving_evidence.jsonl"),
)


def _documents() -> Iterator[Record]:
    for document in DOCUMENTS:
        try:
            content = data_bytes(document.file)
        except FileNotFoundError:
            continue
        if document.file.endswith(".jsonl"):
            payload: Any = [json.loads(line) for line in content.splitlines() if line.strip()]
        else:
            payload = json.loads(content)
        yield Record(kind="document", key=document.key, payload=payload)
