"""The architecture of a job: from the catalog, a published configuration, its dimensions, or a bare size."""

from dataclasses import dataclass

from app.catalog.snapshot import Snapshot
from app.engine.errors import EngineInputError
from app.engine.huggingface import read_config
from app.engine.transformer import DenseMlp, FeedForward, LayerGroup, MoeMlp, SoftmaxAttention, Transformer
from app.engine.typical import typical_transformer
from app.estimates.architecture_schemas import layered_transformer
from app.estimates.assumptions import HOURS, Assumption
from app.estimates.errors import engine_refused, refused_field, unknown_name
from app.estimates.model_schemas import ExplicitTransformer, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """The architecture and the name it goes by."""

    transformer: Transformer
    name: str
    stated_format: str | None
    assumptions: tuple[Assumption, ...]


def choose_model(snapshot: Snapshot, model: Model, at: str) -> ChosenModel:
    """The architecture of a model, however it was described."""
    if model.ref is not None:
        entry = snapshot.models.get(model.ref)
        if entry is None:
            raise unknown_name(f"{at}/ref", "model", model.ref, snapshot.models)
        return ChosenModel(
            transformer=entry.transformer, name=entry.name, stated_format=entry.published_weights, assumptions=()
        )
    if model.huggingface_config is not None:
        try:
            published = read_config(model.huggingface_config)
        except EngineInputError as error:
            raise engine_refused(f"{at}/huggingface_config", error) from None
        _check_context(published.transformer.context, f"{at}/huggingface_config")
        stated = getattr(published.quantization, "weights", None)
        name = published.transformer.name or published.model_type
        return ChosenModel(transformer=published.transformer, name=name, stated_format=stated, assumptions=())
    if model.transformer is not None:
        given = model.transformer
        explicit = explicit_transformer(given) if isinstance(given, ExplicitTransformer) else layered_transformer(given)
        return ChosenModel(transformer=explicit, name=explicit.name, stated_format=None, assumptions=())
    parameters = model.parameters or 0.0
    try:
        typical = typical_transformer(parameters)
    except EngineInputError as error:
        raise refused_field(f"{at}/parameters", "engine_input", str(error), dict(error.nearest)) from None
    assumed = Assumption(
        id="architecture",
        value=f"{typical.layers} layers, width {typical.hidden}",
        unit="text",
        source="typical dense architecture for the parameter count",
        moves=HOURS,
    )
    return ChosenModel(transformer=typical, name=typical.name, stated_format=None, assumptions=(assumed,))


def _check_context(context: object, at: str) -> None:
    """Refuse a longest context that is no count: the reader takes it over as the file states it."""
    if context is None or (isinstance(context, int) and not isinstance(context, bool) and context >= 1):
        return
    reason = f"max_position_embeddings is a whole number of tokens, got {str(context)[:40]}; correct it or leave it out"
    raise refused_field(at, "engine_input", reason)


def explicit_transformer(given: ExplicitTransformer) -> Transformer:
    """An architecture written out by its dimensions."""
    head_dim = given.head_dim or given.hidden // given.heads
    mixer = SoftmaxAttention(
        heads=given.heads,
        kv_heads=given.kv_heads or given.heads,
        head_dim=head_dim,
        value_head_dim=head_dim,
        window=given.window,
    )
    dense = DenseMlp(ffn=given.ffn, gated=given.gated)
    layers: list[tuple[int, FeedForward]] = [(given.layers, dense)]
    if given.experts is not None and given.active_experts is not None and given.expert_ffn is not None:
        experts = MoeMlp(
            experts=given.experts,
            active_experts=given.active_experts,
            expert_ffn=given.expert_ffn,
            shared_ffn=given.shared_ffn,
            gated=given.gated,
        )
        first = min(given.dense_layers, given.layers - 1)
        layers = [(first, dense), (given.layers - first, experts)]
    return Transformer(
        name="explicit",
        hidden=given.hidden,
        vocab=given.vocab,
        tied_embeddings=given.tied_embeddings,
        groups=tuple(LayerGroup(count=n, mixer=mixer, feed_forward=mlp) for n, mlp in layers if n),
        context=given.context,
    )
