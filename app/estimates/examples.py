"""Requests that the API document shows; a test sends every one of them."""

from typing import Any

SMALLEST: dict[str, Any] = {
    "items": [{"id": "pretrain", "job": {"kind": "training", "model": {"ref": "llama3-8b"}, "tokens": 100_000_000_000}}]
}
TRAINING: dict[str, Any] = {
    "title": "Risk-control model 2027",
    "customer": {"external_ref": "acme", "name": "ACME"},
    "items": [
        {
            "id": "pretrain",
            "job": {"kind": "training", "model": {"ref": "llama3-70b"}, "tokens": 100_000_000_000},
            "supply": {
                "accelerators": ["h100-sxm5-80", "b200-sxm-180"],
                "accelerator_count": 256,
                "regions": ["us-east-1"],
                "purchase_models": ["on_demand", "reserved_1y"],
            },
            "objective": "cost_time",
            "constraints": {"deadline_hours": 720, "budget": {"amount": "2500000.00", "currency": "USD"}},
        }
    ],
    "terms": {"currency": "CNY", "markup": "0.15", "discount": "0.05", "tax_region": "CN", "contingency": "0.10"},
}
INFERENCE: dict[str, Any] = {
    "items": [
        {
            "id": "chat",
            "job": {
                "kind": "inference",
                "model": {"ref": "llama3-70b"},
                "traffic": {"requests_per_second": 10, "input_tokens": 1000, "output_tokens": 300},
                "slo": {"ttft_ms": {"p95": 1000}, "tpot_ms": {"p95": 50}},
            },
            "supply": {"accelerators": ["h100-sxm5-80", "h200-sxm-141"]},
        }
    ]
}
REQUESTS: dict[str, Any] = {
    "smallest": {"summary": "A model and an amount of work", "value": SMALLEST},
    "training": {"summary": "A training run with supply, constraints and terms", "value": TRAINING},
    "inference": {"summary": "Serving a model under latency objectives", "value": INFERENCE},
}
