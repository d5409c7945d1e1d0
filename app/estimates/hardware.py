"""The machine behind an offer: how its accelerators are wired, and where the figures of its network come from."""

from dataclasses import dataclass, replace

from app.catalog.offers import Offer
from app.catalog.snapshot import Snapshot
from app.engine.hardware import Accelerator, Cluster, Fabric
from app.estimates.schemas import Network

BITS_PER_BYTE = 8.0
GIGA = 1e9
# Providers do not say which network kind their instances use in a form the catalog holds; RoCE and InfiniBand of one
# rate behave alike in the engine's alpha-beta model, so the kind only labels the assumption.
UNSTATED_FABRIC = "ethernet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One kind of machine the engine is asked about.

    Parameters
    ----------
    key : str
        Identity for caching and for finding the run of an offer again.
    accelerator : Accelerator
        As wired in this machine: a one-accelerator instance has no scale-up neighbours.
    fabric : Fabric or None
        None = one node only.
    """

    key: str
    accelerator: Accelerator
    fabric: Fabric | None

    def cluster(self, accelerators: int) -> Cluster:
        """So many of them, wired together."""
        return Cluster(accelerator=self.accelerator, accelerators=accelerators, fabric=self.fabric)

    @property
    def largest_count(self) -> int | None:
        """Most accelerators it can be quoted for; None = no limit of its own."""
        if self.fabric is not None:
            return None
        return max(self.accelerator.accelerators_per_node, self.accelerator.scale_up_domain)


def hardware_of(snapshot: Snapshot, offer: Offer, network: Network | None) -> tuple[Hardware, str]:
    """The machine behind an offer whose accelerator is quotable, and where its network's figures come from."""
    spec = snapshot.accelerators[offer.accelerator_id or ""].spec
    assert spec is not None
    shape = snapshot.node_shapes.get(offer.node_shape_id) if offer.node_shape_id else None
    gbps = shape.network_gbps_per_accelerator if shape is not None else None
    if offer.sold_unit != "node":
        # One accelerator (or superchip) of a whole server, not a machine of its own.
        return wired_hardware(spec, gbps, network)
    is_part = offer.accelerator_count < spec.accelerators_per_node
    return wired_hardware(_wired(spec, offer.accelerator_count), gbps, network, is_part_of_server=is_part)


def _wired(spec: Accelerator, per_node: int) -> Accelerator:
    """The accelerator in a machine that holds ``per_node`` of them."""
    if per_node == spec.accelerators_per_node:
        return spec
    # a domain that spans nodes (NVL72, TPU slices) stays; one inside the server shrinks with it
    inside = spec.scale_up_domain <= spec.accelerators_per_node
    domain = min(spec.scale_up_domain, per_node) if inside else spec.scale_up_domain
    return replace(spec, accelerators_per_node=per_node, scale_up_domain=domain)


def wired_hardware(
    spec: Accelerator, gbps: float | None, network: Network | None, *, is_part_of_server: bool = False
) -> tuple[Hardware, str]:
    # the usual network is that of a whole server; what a virtual machine with a part of one gets, nobody states
    typical = None if is_part_of_server else spec.scale_out_bytes_per_s_per_accelerator
    if network is not None:
        fabric, basis = _stated_fabric(network), "caller"
    elif gbps is not None:
        fabric, basis = _plain_fabric(gbps / BITS_PER_BYTE * GIGA), "offer"
    elif typical is not None:
        fabric, basis = _plain_fabric(typical), "typical"
    else:
        key = f"{spec.id}/{spec.accelerators_per_node}/none"
        return Hardware(key=key, accelerator=spec, fabric=None), "unknown"
    rate = f"{fabric.kind}:{fabric.bytes_per_s_per_accelerator:.6g}:{fabric.oversubscription:g}:{fabric.rails}"
    key = f"{spec.id}/{spec.accelerators_per_node}/{rate}"
    return Hardware(key=key, accelerator=spec, fabric=fabric), basis


def _stated_fabric(network: Network) -> Fabric:
    return Fabric(
        kind=network.kind,
        bytes_per_s_per_accelerator=network.bytes_per_s_per_accelerator,
        oversubscription=network.oversubscription,
        rails=network.rails,
    )


def _plain_fabric(bytes_per_s: float) -> Fabric:
    return Fabric(kind=UNSTATED_FABRIC, bytes_per_s_per_accelerator=bytes_per_s)
