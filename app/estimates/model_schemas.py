"""How a client names or describes a model."""

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from app.engine.typical import LARGEST as MOST_PARAMETERS
from app.engine.typical import SMALLEST as LEAST_PARAMETERS
from app.estimates.architecture_schemas import LayeredTransformer
from app.estimates.fields import Name, Schema
from app.foundation.numbers import Count, Flag, Number

# Bounds exist to answer a typing error instead of computing it; each is far beyond anything built so far.
LONGEST_SEQUENCE = 16_777_216


class ExplicitTransformer(Schema):
    """A decoder-only architecture by its dimensions; mixture-of-experts fields together or not at all."""

    hidden: Annotated[Count, Field(ge=1, le=1_000_000)]
    layers: Annotated[Count, Field(ge=1, le=10_000)]
    heads: Annotated[Count, Field(ge=1, le=100_000)]
    kv_heads: Annotated[Count, Field(ge=1, le=100_000)] | None = None
    head_dim: Annotated[Count, Field(ge=1, le=100_000)] | None = None
    ffn: Annotated[Count, Field(ge=1, le=10_000_000)]
    vocab: Annotated[Count, Field(ge=1, le=100_000_000)]
    gated: Flag = True
    tied_embeddings: Flag = False
    window: Annotated[Count, Field(ge=1, le=LONGEST_SEQUENCE)] | None = None
    context: Annotated[Count, Field(ge=1, le=LONGEST_SEQUENCE)] | None = None
    experts: Annotated[Count, Field(ge=1, le=100_000)] | None = None
    active_experts: Annotated[Count, Field(ge=1, le=100_000)] | None = None
    expert_ffn: Annotated[Count, Field(ge=1, le=10_000_000)] | None = None
    shared_ffn: Annotated[Count, Field(ge=0, le=10_000_000)] = 0
    dense_layers: Annotated[Count, Field(ge=0, le=10_000)] = 0

    @model_validator(mode="after")
    def _consistent(self) -> "ExplicitTransformer":
        expert = (self.experts, self.active_experts, self.expert_ffn)
        if any(v is not None for v in expert) and any(v is None for v in expert):
            raise PydanticCustomError("experts", "give experts, active_experts and expert_ffn together", {})
        if self.experts is not None and (self.active_experts or 0) > self.experts:
            raise PydanticCustomError("experts", "active_experts is at most experts: {most}", {"most": self.experts})
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise PydanticCustomError("kv_heads", "kv_heads divides heads ({heads})", {"heads": self.heads})
        if self.head_dim is None and self.hidden % self.heads:
            raise PydanticCustomError("heads", "heads divides hidden, or head_dim is given", {})
        return self


def _shape(given: Any) -> str:
    """Whether an architecture is given by its dimensions or layer by layer, as the catalog shows it."""
    if isinstance(given, LayeredTransformer):
        return "layers"
    # What is neither is refused as dimensions, which are the shorter way to write it.
    return "layers" if isinstance(given, dict) and "groups" in given else "dimensions"


TransformerField = Annotated[
    Annotated[ExplicitTransformer, Tag("dimensions")] | Annotated[LayeredTransformer, Tag("layers")],
    Discriminator(_shape),
]


class Model(Schema):
    """A model, described in exactly one way.

    ``transformer`` takes plain dimensions, or ``groups`` of equal layers: what ``GET /v1/catalog/models/{id}`` shows
    as ``transformer`` can be sent here as it is.
    """

    ref: Name | None = None
    huggingface_config: dict[str, Any] | None = None
    transformer: TransformerField | None = None
    parameters: Annotated[Number, Field(ge=LEAST_PARAMETERS, le=MOST_PARAMETERS)] | None = None

    @model_validator(mode="after")
    def _one(self) -> "Model":
        if sum(v is not None for v in (self.ref, self.huggingface_config, self.transformer, self.parameters)) != 1:
            raise PydanticCustomError(
                "one_of", "give exactly one of ref, huggingface_config, transformer and parameters", {}
            )
        return self
