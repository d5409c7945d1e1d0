"""Servers, networks, storage, power, egress and cited facts as records."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from app.catalog.codec import encode
from app.catalog.entries import NetworkSwitch, Server, StorageSystem
from app.catalog.rates import (
    ColocationRate,
    EgressTier,
    ElectricityTariff,
    OwnCostReference,
    PriceRange,
    PueFact,
    ReferenceFact,
)
from app.catalog.record import Record

# What one "GB" of a storage price is [byte]; the source writes GiB where it means 2**30.
PRICE_BYTES = {"USD/GB-month": 10**9, "USD/GiB-month": 2**30}

STORAGE_KINDS = {
    "s3-standard": "object",
    "gcs-standard": "object",
    "coreweave-object-hot": "object",
    "nebius-object-std": "object",
    "nfs-tcp": "nfs",
    "netapp-ontap-nfs": "nfs",
    "vast": "nfs",
    "local-nvme": "local",
}


def infrastructure_records(servers: Mapping[str, Any], reliability: Mapping[str, Any]) -> Iterator[Record]:
    """Give the records of ``servers.json`` and ``reliability_facts.json``."""
    yield from _servers(servers["servers"])
    yield from _networks(servers["networks"])
    yield from _storage(servers["storage"])
    yield from _power(servers["power"])
    yield from _egress(servers["egress_usd_per_gb"])
    yield from _own_cost(servers["tco_reference"], servers["accelerator_street_prices"])
    for position, row in enumerate(servers["datacenter_capex_reference"]):
        fact = ReferenceFact(id=f"capex/{position}", kind="datacenter_capex", fields=_plain(row), source=row["source"])
        yield Record(kind="reference", key=fact.id, payload=encode(fact))
    yield from _reliability(reliability)


def _plain(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: float(value) if isinstance(value, Decimal) else _deep(value) for key, value in row.items()}


def _deep(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, list):
        return [float(item) if isinstance(item, Decimal) else _deep(item) for item in value]
    return value


def _decimal(value: Any) -> Decimal | None:
    return None if value is None else Decimal(value)


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def believable_price(server: Mapping[str, Any], price: Mapping[str, Any]) -> tuple[str, str] | None:
    """Say why a server price is not to be used: a part sold as the whole, or a row without any source."""
    if price["kind"].startswith("bom_"):
        return "part_not_whole", f"{price['kind']} is the price of a part of {server['name']}, not of the rack"
    if not server["sources"]:
        return "no_source", f"{server['name']} has no source for its specification; the price is a press estimate"
    return None


def server_price(server_id: str, price: Mapping[str, Any]) -> PriceRange:
    """Read one estimate of what a server costs."""
    return PriceRange(
        subject_id=server_id,
        kind=price["kind"],
        amount_low=Decimal(price["amount_low"]),
        amount_high=Decimal(price["amount_high"]),
        currency=price["currency"],
        as_of=price.get("as_of"),
        source=price["source"],
        confidence=price["confidence"],
        note=price.get("note"),
    )


def _servers(rows: list[Mapping[str, Any]]) -> Iterator[Record]:
    for row in rows:
        server = Server(
            id=row["id"],
            kind=row["kind"],
            vendor=row["vendor"],
            name=row["name"],
            accelerator_id=row["accelerator_id"],
            accelerator_count=row["accelerator_count"],
            nodes=row["nodes"],
            cpu=row["cpu"],
            host_ram_gb=_float(row["host_ram_gb"]),
            local_nvme_tb=_float(row["local_nvme_tb"]),
            scale_out_gbps_per_accelerator=_float(row["scale_out_gbps_per_accelerator"]),
            power_kw=_decimal(row["power_kw"]),
            power_kind=row["power_kind"],
            cooling=row["cooling"],
            rack_units=row["rack_units"],
            prices=tuple(server_price(row["id"], p) for p in row["prices"] if believable_price(row, p) is None),
            confidence=row["confidence"],
            notes=row["notes"],
            sources=tuple(row["sources"]),
        )
        yield Record(kind="server", key=server.id, payload=encode(server))


def _networks(networks: Mapping[str, Any]) -> Iterator[Record]:
    for row in networks["switches"]:
        price = None
        if row["price_usd_low"] is not None:
            price = PriceRange(
                subject_id=row["name"],
                kind=row["price_kind"],
                amount_low=Decimal(row["price_usd_low"]),
                amount_high=Decimal(row["price_usd_high"]),
                currency="USD",
                as_of=None,
                source=row["source"],
                confidence=row["confidence"],
            )
        switch = NetworkSwitch(
            name=row["name"],
            technology=row["technology"],
            ports=row["ports"],
            port_gbps=float(row["port_gbps"]),
            price=price,
            source=row["source"],
            confidence=row["confidence"],
        )
        yield Record(kind="switch", key=switch.name, payload=encode(switch))
    for position, row in enumerate(networks["fabric_cost_rules"]):
        fact = ReferenceFact(id=f"fabric/{position}", kind="fabric_cost", fields=_plain(row), source=row["source"])
        yield Record(kind="reference", key=fact.id, payload=encode(fact))
    for row in networks["node_nics"]:
        fact = ReferenceFact(id=f"nics/{row['node']}", kind="node_nics", fields=_plain(row), source=row["source"])
        yield Record(kind="reference", key=fact.id, payload=encode(fact))
    for row in networks["cloud_network_charges"]:
        fact = ReferenceFact(
            id=f"network/{row['provider']}/{row['item']}",
            kind="network_charge",
            fields=_plain(row),
            source=networks["cloud_network_source"],
        )
        yield Record(kind="reference", key=fact.id, payload=encode(fact))


def _storage(rows: list[Mapping[str, Any]]) -> Iterator[Record]:
    for row in rows:
        priced = row["price"] is not None
        system = StorageSystem(
            id=row["id"],
            name=row["name"],
            kind=STORAGE_KINDS.get(row["id"], "parallel"),
            read_mb_s_per_tib=_float((row["throughput"] or {}).get("mb_s_per_tib")),
            price_amount=_decimal(row["price"]),
            price_currency="USD" if priced else None,
            price_bytes=PRICE_BYTES[row["price_unit"]] if priced else None,
            gpu_direct=row["gpudirect_storage"],
            source=row["source"],
            notes=row["notes"],
            confidence=row["confidence"],
        )
        yield Record(kind="storage", key=system.id, payload=encode(system))


def _power(power: Mapping[str, Any]) -> Iterator[Record]:
    for row in power["electricity"]:
        euro = row.get("eur_per_kwh")
        tariff = ElectricityTariff(
            region=row["region"],
            country=row["country"],
            sector=row["sector"],
            amount=_decimal(row["usd_per_kwh"] if euro is None else euro),
            currency="USD" if euro is None else "EUR",
            as_of=row["as_of"],
            source=row["source"],
            confidence=row["confidence"],
        )
        yield Record(kind="tariff", key=f"{tariff.country}/{tariff.region}/{tariff.sector}", payload=encode(tariff))
    for row in power["pue"]:
        pue = PueFact(scope=row["scope"], value=Decimal(row["value"]), year=row["year"], source=row["source"])
        yield Record(kind="pue", key=f"{pue.scope}/{pue.year}", payload=encode(pue))
    for row in power["colocation_usd_per_kw_month"]:
        rate = ColocationRate(
            scope=row["scope"],
            amount=Decimal(row["value"]),
            currency="USD",
            as_of=row["as_of"],
            source=row["source"],
        )
        yield Record(kind="colocation", key=f"{rate.scope}/{rate.as_of}", payload=encode(rate))


def _egress(rows: list[Mapping[str, Any]]) -> Iterator[Record]:
    for row in rows:
        for position, (tier, amount) in enumerate(row["tiers"]):
            step = EgressTier(
                provider=row["provider"], tier=tier, amount=Decimal(amount), currency="USD", source=row["source"]
            )
            yield Record(kind="egress", key=f"{row['provider']}/{position}", payload=encode(step))


def _own_cost(references: list[Mapping[str, Any]], street: list[Mapping[str, Any]]) -> Iterator[Record]:
    for row in references:
        reference = OwnCostReference(
            accelerator_id=row["accelerator_id"],
            all_in_kw_per_accelerator=Decimal(row["all_in_kw_per_accelerator"]),
            usd_per_accelerator_hour_own_hyperscaler=Decimal(row["usd_per_accel_hour_own_hyperscaler"]),
            usd_per_accelerator_hour_own_neocloud=Decimal(row["usd_per_accel_hour_own_neocloud"]),
            usd_per_accelerator_hour_rental_3y=Decimal(row["usd_per_accel_hour_rental_3y"]),
            placeholder=row["placeholder"],
            source=row["source"],
            note=row["note"],
        )
        yield Record(kind="own_cost", key=reference.accelerator_id, payload=encode(reference))
    for row in street:
        price = server_price(row["accelerator_id"], row)
        yield Record(kind="street_price", key=f"{price.subject_id}/{price.kind}", payload=encode(price))


def _reliability(data: Mapping[str, Any]) -> Iterator[Record]:
    """Give the facts, with "same" in a source opened into the row above it, as the loader notes say."""
    source = address = ""
    for row in data["facts"]:
        source = source if row["source"] == "same" else row["source"]
        address = address if row["address"].startswith("same") else row["address"]
        fields = {**_plain(row), "source": source, "address": address}
        fact = ReferenceFact(id=row["id"], kind="reliability", fields=fields, source=source)
        yield Record(kind="reliability", key=fact.id, payload=encode(fact))
    defaults = ReferenceFact(
        id="suggested_defaults",
        kind="reliability_defaults",
        fields=_plain(data["suggested_defaults"]),
        source=data["suggested_defaults"]["basis"],
    )
    yield Record(kind="reliability", key=defaults.id, payload=encode(defaults))
