"""Rows of ``models.json`` as transformers: null fields come from published sources or are reported, never guessed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.engine.accounting import count_parameters
from app.engine.transformer import (
    DenseMlp,
    FeedForward,
    LatentAttention,
    LayerGroup,
    LinearAttention,
    Mixer,
    MoeMlp,
    SoftmaxAttention,
    StateSpace,
    Transformer,
    group_layers,
)

Row = Mapping[str, Any]

# Families whose published structure goes beyond the columns of models.json.
NOT_DESCRIBED = {
    "gemma4-e2b": "per-layer embeddings and KV-shared layers are not described by the row",
    "gemma4-e4b": "per-layer embeddings and KV-shared layers are not described by the row",
}

# Families whose own config.json ships in data/model_configs, because the row cannot hold their structure.
CONFIG_FILES = {
    "deepseek-v4-flash": "deepseek-ai--DeepSeek-V4-Flash.json",
    "gemma4-26b-a4b": "google--gemma-4-26B-A4B.json",
    "qwen3.5-397b-a17b": "Qwen--Qwen3.5-397B-A17B.json",
}


class UnusableModelError(ValueError):
    """A row that lacks what the engine needs; its text says what."""


def with_context(family: str, transformer: Transformer, contexts: Row) -> Transformer:
    """The transformer with the context length its published configuration states; unchanged where none was seen."""
    stated = contexts.get(family)
    return transformer if stated is None else replace(transformer, context=stated["context"])


def transformer_of(family: str, row: Row, completion: Row) -> Transformer:
    """Transformer of one row.

    Parameters
    ----------
    family : str
    row : mapping
        Row of ``models.json``.
    completion : mapping
        Fields from published sources where the row has null.

    Returns
    -------
    Transformer

    Raises
    ------
    UnusableModelError
        When a needed dimension is null in both.

    References
    ----------
    1. The row's ``source``; the completion's ``source``.
    """
    if family in NOT_DESCRIBED:
        raise UnusableModelError(NOT_DESCRIBED[family])
    row = {**row, **{k: v for k, v in completion.items() if k not in ("source", "full_attention")}}
    needed = ["layers", "hidden", "vocab", "gated_mlp"]
    needed += [] if row["mla"] else ["heads"]
    if row["moe"] is None or row["moe"]["first_dense_layers"]:
        needed.append("ffn")
    missing = [key for key in needed if row[key] is None]
    if missing:
        raise UnusableModelError(f"not published: {', '.join(missing)}")
    layers = _hybrid_layers(row) if row["hybrid"] else _layers(row, completion)
    tied = row["tied_embeddings"]
    transformer = Transformer(
        name=row["name"] or family,
        hidden=row["hidden"],
        vocab=row["vocab"],
        tied_embeddings=bool(tied),
        groups=group_layers(layers),
        mtp_layers=row.get("mtp_layers") or 0,
        parameters_stated=row["total_params"],
    )
    return _with_tying(transformer) if tied is None else transformer


def _with_tying(transformer: Transformer) -> Transformer:
    """Where tying is not stated, the choice that reproduces the stated total; untied when there is none."""
    stated = transformer.parameters_stated
    if stated is None:
        return transformer
    tied = replace(transformer, tied_embeddings=True)
    errors = {t: abs(count_parameters(t).total / stated - 1.0) for t in (tied, transformer)}
    return min(errors, key=lambda t: errors[t])


def _layers(row: Row, completion: Row) -> list[LayerGroup]:
    near, full = _mixers(row, completion)
    every = _full_every(row)
    moe = row["moe"]
    layers = []
    for index in range(row["layers"]):
        mixer = near if every and (index + 1) % every else full
        experts = moe is not None and _is_moe(moe, index)
        part: FeedForward = _moe(row) if experts else DenseMlp(ffn=row["ffn"], gated=row["gated_mlp"])
        layers.append(LayerGroup(count=1, mixer=mixer, feed_forward=part))
    return layers


def _is_moe(moe: Row, index: int) -> bool:
    interval = moe.get("moe_layer_interval") or 1
    return bool(index >= moe["first_dense_layers"] and (index + 1) % interval == 0)


def _full_every(row: Row) -> int | None:
    """How often a layer attends fully; None when every layer does."""
    window = row["sliding_window"]
    if not window or not window.get("window") or row.get("ignore_window"):
        return None
    if window.get("full_layers"):
        return int(row["layers"] // window["full_layers"])
    if row.get("full_every"):
        return int(row["full_every"])
    raise UnusableModelError("not published: which layers slide")


def _mixers(row: Row, completion: Row) -> tuple[Mixer, Mixer]:
    """Sliding and full attention of a row (the same where nothing slides)."""
    if row["mla"]:
        mla, sparse = row["mla"], row.get("sparse_attention") or {}
        latent = LatentAttention(
            heads=row["heads"],
            selected_tokens=sparse.get("index_topk"),
            index_heads=sparse.get("index_n_heads") or 0,
            index_head_dim=sparse.get("index_head_dim") or 0,
            **{
                k: mla[k] for k in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
            },
        )
        return latent, latent
    heads = row["heads"]
    head_dim = row["head_dim"] or row["hidden"] // heads
    full = SoftmaxAttention(heads=heads, kv_heads=row["kv_heads"] or heads, head_dim=head_dim, value_head_dim=head_dim)
    window = (row["sliding_window"] or {}).get("window")
    near = replace(full, window=window)
    special = completion.get("full_attention")
    if special:
        full = replace(full, value_head_dim=special["head_dim"], **special)
    return near, full


def _moe(row: Row) -> MoeMlp:
    moe = row["moe"]
    shared = moe.get("shared_expert_ffn")
    if shared is None:
        shared = (moe["shared_experts"] or 0) * moe["moe_ffn"]
    return MoeMlp(
        experts=moe["experts"],
        active_experts=moe["active_experts"],
        expert_ffn=moe["moe_ffn"],
        shared_ffn=shared,
        gated=row["gated_mlp"],
        latent=moe.get("latent_size"),
    )


def _hybrid_layers(row: Row) -> list[LayerGroup]:
    hybrid = row["hybrid"]
    _, full = _mixers(row, {})
    if hybrid.get("full_attention_interval"):
        linear = LinearAttention(
            key_heads=hybrid["linear_num_key_heads"],
            value_heads=hybrid["linear_num_value_heads"],
            key_head_dim=hybrid["linear_key_head_dim"],
            value_head_dim=hybrid["linear_value_head_dim"],
            convolution=4,
        )
        every = hybrid["full_attention_interval"]
        assert isinstance(full, SoftmaxAttention)
        gated = replace(full, gated=True, qk_norm="head")
        moe = replace(_moe(row), shared_gate=True)
        return [
            LayerGroup(count=1, mixer=linear if (i + 1) % every else gated, feed_forward=moe)
            for i in range(row["layers"])
        ]
    state = StateSpace(
        heads=hybrid["mamba_num_heads"],
        head_dim=hybrid["mamba_head_dim"],
        state=hybrid["ssm_state_size"],
        groups=hybrid["n_groups"],
        convolution=hybrid["conv_kernel"],
    )
    counts = {
        "mamba": LayerGroup(count=hybrid["mamba_layers"], mixer=state, feed_forward=None, norms=1),
        "attention": LayerGroup(count=hybrid["attention_layers"], mixer=full, feed_forward=None, norms=1),
    }
    if hybrid["mlp_layers"]:
        dense = DenseMlp(ffn=row["ffn"], gated=row["gated_mlp"])
        counts["mlp"] = LayerGroup(count=hybrid["mlp_layers"], mixer=None, feed_forward=dense, norms=1)
    if hybrid["moe_layers"]:
        counts["moe"] = LayerGroup(count=hybrid["moe_layers"], mixer=None, feed_forward=_moe(row), norms=1)
    return list(counts.values())
