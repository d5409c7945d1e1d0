"""What training counts is what the accounting counts."""

import numpy as np
import pytest

from app.catalog.shipped import shipped_models
from app.engine.accounting import adapter_parameters
from app.engine.flops import forward_flops
from app.engine.kernels import attended_tokens
from app.engine.training.architecture import architecture_of, trained_parameters
from app.engine.training.job import formats_of
from app.engine.workload import Adapter
from tests.engine.training.builders import workload

SPARSE = [
    name
    for name, model in shipped_models().items()
    if any(getattr(g.mixer, "selected_tokens", None) or getattr(g.mixer, "compression", None) for g in model.groups)
]


@pytest.mark.parametrize("sequence", [4096.0, 131072.0])
@pytest.mark.parametrize("family", [*SPARSE, "llama3-8b", "deepseek-v3", "gpt-oss-120b"])
def test_attention_is_counted_once(family: str, sequence: float) -> None:
    model = shipped_models()[family]
    a = architecture_of(model)
    keys = attended_tokens(sequence, a.attention_window)
    core = float(np.sum(2.0 * a.attention_layers * a.attention_heads * a.attention_dims * keys))
    assert SPARSE
    assert core == pytest.approx(forward_flops(model, sequence).attention_core, rel=1e-9)


def test_adapters_count_their_targets() -> None:
    shares = []
    for targets in (("attention",), ("attention", "mlp")):
        job = workload("llama2-70b", method="lora", adapter=Adapter(rank=32, targets=targets))
        a = architecture_of(job.transformer)
        shares.append(formats_of(job, a).trained_share)
        expected = adapter_parameters(job.transformer, 32, targets) / float(trained_parameters(a))
        assert shares[-1] == pytest.approx(expected)
    assert shares[0] < 0.6 * shares[1]
