"""Accounting laws: windows, causal conventions, caches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.accounting import adapter_parameters, count_parameters
from app.engine.cache import cache_bytes_per_sequence, cache_bytes_per_token, cached_entries
from app.engine.flops import attended_tokens, attention_core_flops, forward_flops, sequence_core_flops
from app.engine.transformer import DenseMlp, LayerGroup, SoftmaxAttention, Transformer, group_layers


def dense(layers: int, hidden: int, heads: int, ffn: int, vocab: int, **attention: object) -> Transformer:
    head_dim = hidden // heads
    mixer = SoftmaxAttention(heads=heads, kv_heads=heads, head_dim=head_dim, value_head_dim=head_dim, **attention)
    mlp = DenseMlp(ffn=ffn, gated=False)
    groups = (LayerGroup(count=layers, mixer=mixer, feed_forward=mlp),)
    return Transformer(name="test", hidden=hidden, vocab=vocab, tied_embeddings=True, groups=groups)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_half_never_exceeds_full_and_window_caps(window: int, sequence: int) -> None:
    half = attended_tokens(window, sequence)
    full = attended_tokens(window, sequence, 1.0)
    assert 0.0 < half <= full == min(window, sequence)
    assert half >= full / 2 * (1 - 1e-12)


@given(st.integers(1, 500), st.integers(1, 2000))
def test_window_mean_is_the_exact_mean_within_half_a_token(window: int, sequence: int) -> None:
    exact = sum(min(i, window) for i in range(1, sequence + 1)) / sequence
    assert attended_tokens(window, sequence) == pytest.approx(exact, abs=0.5)


def test_megatron_formula() -> None:
    """Narayanan 2021 eq. 3: 96 B s l h^2 (1 + s/6h + V/16lh) with recomputation is four forwards; full scores."""
    layers, hidden, vocab, sequence = 96, 12288, 51200, 2048
    expected = 96 * layers * hidden**2 * (1 + sequence / (6 * hidden) + vocab / (16 * layers * hidden))
    flops = forward_flops(dense(layers, hidden, 96, 4 * hidden, vocab), sequence, causal_fraction=1.0)
    # the paper counts the head three times, not four: logits are not recomputed
    assert 4 * (flops.total - flops.head) + 3 * flops.head == pytest.approx(expected, rel=1e-9)


def test_window_cache_stops_growing() -> None:
    mixer = SoftmaxAttention(heads=8, kv_heads=8, head_dim=64, value_head_dim=64, window=128)
    assert cached_entries(mixer, 100) == 100
    assert cached_entries(mixer, 10_000) == 128


@given(st.integers(1, 10**6), st.integers(0, 10**5))
def test_cache_is_monotone_in_context(context: int, more: int) -> None:
    model = dense(4, 512, 8, 2048, 1000, window=777)
    assert cache_bytes_per_sequence(model, context, 2) <= cache_bytes_per_sequence(model, context + more, 2)


def test_cache_slope_of_full_attention() -> None:
    model = dense(4, 512, 8, 2048, 1000)
    assert cache_bytes_per_token(model, 2) == 4 * 2 * 512 * 2


def test_attention_core_counts_scores_and_values() -> None:
    mixer = SoftmaxAttention(heads=8, kv_heads=2, head_dim=64, value_head_dim=32)
    assert attention_core_flops(mixer, 100.0) == 2 * 8 * (64 + 32) * 100


def test_group_layers_merges_equal_layers_in_order() -> None:
    one = LayerGroup(count=1, mixer=None, feed_forward=DenseMlp(ffn=8))
    other = LayerGroup(count=1, mixer=None, feed_forward=DenseMlp(ffn=16))
    assert [g.count for g in group_layers([other, one, other, one, one])] == [2, 3]
    assert group_layers([other, one])[0].feed_forward == DenseMlp(ffn=16)


def test_tied_table_counts_once_but_costs() -> None:
    model = dense(2, 64, 4, 256, 1000)
    assert count_parameters(model).head == 0
    assert forward_flops(model, 10).head == 2 * 64 * 1000


def test_adapters_as_counted_by_hand() -> None:
    """Llama-like 512 wide, 4 layers: qkv 512 x 1536, output 512 x 512, up 512 x 2048, down 2048 x 512."""
    model = dense(4, 512, 8, 2048, 1000)
    assert adapter_parameters(model, 16, ["attention"]) == 4 * 16 * (512 + 1536 + 512 + 512)
    assert adapter_parameters(model, 16) == 4 * 16 * (512 + 1536 + 512 + 512 + 2 * (512 + 2048))


@given(st.integers(1, 300), st.integers(1, 600))
def test_the_mean_query_of_a_sparse_layer(selected: int, sequence: int) -> None:
    """Sum of single queries over a sequence, selection included, within the half token of the causal convention."""
    mixer = SoftmaxAttention(heads=4, kv_heads=4, head_dim=8, value_head_dim=8, selected_tokens=selected)
    exact = sum(attention_core_flops(mixer, float(i)) for i in range(1, sequence + 1)) / sequence
    assert sequence_core_flops(mixer, float(sequence)) == pytest.approx(exact, abs=0.5 * 2 * 4 * 16)


def test_an_indexer_reads_everything_and_attention_what_it_keeps() -> None:
    mixer = SoftmaxAttention(
        heads=4, kv_heads=4, head_dim=8, value_head_dim=8, selected_tokens=100, index_heads=2, index_head_dim=4
    )
    assert attention_core_flops(mixer, 1000.0) == 2 * 4 * 16 * 100 + 2 * 2 * 4 * 1000
