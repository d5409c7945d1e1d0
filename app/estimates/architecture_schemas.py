"""A model's architecture layer by layer, in the very shape in which the catalog shows it.

The fields are those of the engine's frozen values, read from them, so that what ``GET /v1/catalog/models/{id}`` shows
as ``transformer`` can be sent back as ``model.transformer``, unchanged or with another number in it.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import Discriminator, create_model, model_validator
from pydantic import Field as Bound
from pydantic_core import PydanticCustomError

from app.engine.transformer import FeedForward, LayerGroup, Mixer, Transformer
from app.estimates.fields import Name, Schema
from app.foundation.numbers import Count, Flag, Number

# Far beyond anything built so far: they answer a typing error instead of computing it.
MOST = 10**12
MOST_LAYERS = 10_000
PARTS: Mapping[str, type] = {part.__name__: part for part in (*get_args(Mixer), *get_args(FeedForward))}


class _Part(Schema):
    """Checks that hold between the fields of one part."""

    @model_validator(mode="after")
    def _consistent(self) -> "_Part":
        facts = self.model_dump()
        if facts.get("heads", 1) % facts.get("kv_heads", 1):
            raise PydanticCustomError("kv_heads", "kv_heads divides heads ({heads})", {"heads": facts["heads"]})
        if facts.get("active_experts", 0) > facts.get("experts", MOST):
            most = {"most": facts["experts"]}
            raise PydanticCustomError("experts", "active_experts is at most experts: {most}", most)
        return self


def _count(least: int) -> Any:
    return Annotated[Count, Bound(ge=least, le=MOST)]


def _kind(field: "Field[Any]", hint: Any) -> Any:
    """The request's type for one field of a frozen value."""
    if field.name == "qk_norm":
        return Literal["head", "full"] | None
    if hint is bool:
        return Flag
    if hint is str:
        return Name
    if hint is int:
        return _count(0 if field.default == 0 else 1)
    if hint == int | None:
        return _count(1) | None
    if hint == float | None:
        return Annotated[Number, Bound(ge=1, le=1e18)] | None
    raise TypeError(f"no request type for {field.name}: {hint}")


def _fields(frozen: type, **given: Any) -> dict[str, Any]:
    hints = get_type_hints(frozen)
    return {
        field.name: (
            given.get(field.name) or _kind(field, hints[field.name]),
            ... if field.default is MISSING else field.default,
        )
        for field in fields(frozen)
    }


def _named(kind: type) -> Any:
    return Literal[kind.__name__]


def _union(kinds: tuple[type, ...]) -> Any:
    """One schema for each kind of part; ``type`` says which."""
    made = tuple(
        create_model(f"{kind.__name__}Part", __base__=_Part, **{"type": (_named(kind), ...), **_fields(kind)})
        for kind in kinds
    )
    union: Any = made[0]
    for schema in made[1:]:
        union |= schema
    return Annotated[union, Discriminator("type")] | None


LayerGroupPart = create_model(
    "LayerGroupPart",
    __base__=Schema,
    **_fields(LayerGroup, mixer=_union(get_args(Mixer)), feed_forward=_union(get_args(FeedForward))),
)


class _Layers(Schema):
    """What must hold of all layers together."""

    @model_validator(mode="after")
    def _bounded(self) -> "_Layers":
        layers = sum(group.count for group in self.groups)  # type: ignore[attr-defined]
        if not 1 <= layers <= MOST_LAYERS:
            # Not a bound of the field: a group that is wrong in itself would count as missing besides.
            raise PydanticCustomError("layers", "from 1 to {most} layers", {"most": MOST_LAYERS, "path": ("groups",)})
        return self


LayeredTransformer: Any = create_model(
    "LayeredTransformer",
    __base__=_Layers,
    __doc__="A decoder-only architecture as groups of equal layers: what GET /v1/catalog/models/{id} shows.",
    **_fields(Transformer, groups=Annotated[tuple[LayerGroupPart, ...], Bound(max_length=1_000)]),
)


def layered_transformer(given: Schema) -> Transformer:
    """The engine's value of an architecture that was sent layer by layer."""
    facts = given.model_dump()
    groups = tuple(
        LayerGroup(**{**group, "mixer": _part(group["mixer"]), "feed_forward": _part(group["feed_forward"])})
        for group in facts["groups"]
    )
    return Transformer(**{**facts, "groups": groups})


def _part(facts: Mapping[str, Any] | None) -> Any:
    if facts is None:
        return None
    return PARTS[facts["type"]](**{name: value for name, value in facts.items() if name != "type"})
