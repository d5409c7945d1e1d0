"""Which effects are fitted, and how strongly each is shrunk: tight where kernels were measured, loose where not."""

from benchmarks.serving.fit import Term

ENGINES = ("stack=vllm", "stack=sglang", "stack=tensorrt-llm")
OTHER_STACKS = ("stack=deepspeed", "stack=optimum-habana")
# vendors without kernel tables
UNMEASURED = ("vendor=AMD", "vendor=Intel")
FAMILIES = ("family=Ampere", "family=Ada", "family=Hopper", "family=Blackwell")
FAMILY_STACKS = tuple(f"{family},{stack}" for family in FAMILIES for stack in ENGINES)
FORMATS = ("format=fp8", "format=nvfp4", "format=mxfp4", "format=bf16")
PORTABLE_INTEGER_EXPERTS = ("format=int4,stack=sglang,marlin=False",)
OLD_VLLM = "stack=vllm,modern=False"
# a stack of its own in every respect: loose, so that its rows say nothing about what came after it
# no kernel of AMD's was timed: what its experts cost comes from served rows alone
AMD_STACKS = ("stack=sglang,vendor=AMD",)
EARLY_AMD = "early=True,vendor=AMD,format=bf16"
EARLY_AMD_SPREAD = 2.0
EARLY_AMD_QUANTITIES = (
    "matmul_peak", "matmul_bandwidth", "decode_attention", "launch", "layer_s", "step_s", "eager_s", "sequence_s",
    "reduce", "link_share", "experts_launch", "experts_peak", "experts_bandwidth",
)  # fmt: skip

# quantity, standard deviation of the log effect, keys
_TABLE: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("matmul_peak", 0.07, ("",)),
    ("matmul_peak", 0.05, (*ENGINES, "year", *FAMILIES)),
    ("matmul_peak", 0.30, UNMEASURED),
    ("matmul_peak", 0.40, OTHER_STACKS),
    ("matmul_bandwidth", 0.04, ("",)),
    ("matmul_bandwidth", 0.03, (*ENGINES, "year", *FAMILIES)),
    ("matmul_bandwidth", 0.30, (*UNMEASURED, *OTHER_STACKS)),
    ("decode_attention", 0.07, ("", *FAMILIES, *ENGINES)),
    ("decode_attention", 0.30, (*UNMEASURED, *OTHER_STACKS)),
    ("prefill_attention", 0.10, ("", *ENGINES)),
    ("prefill_attention", 0.30, UNMEASURED),
    ("launch", 0.20, ("", *ENGINES, *FORMATS, "format=int4")),
    ("launch", 0.20, FAMILY_STACKS),
    ("launch", 0.50, (*OTHER_STACKS, *UNMEASURED)),
    ("layer_s", 0.30, ("", *ENGINES, "experts=fine", "experts=coarse", "experts=fine,format=fp8")),
    ("layer_s", 0.50, (*OTHER_STACKS, *UNMEASURED)),
    ("step_s", 0.50, ("", "year", *ENGINES, *FAMILIES)),
    ("eager_s", 0.50, ("", "year", *ENGINES, "experts=fine", "experts=fine,format=fp8", *UNMEASURED)),
    ("step_s", 0.70, (*OTHER_STACKS, OLD_VLLM)),
    ("sequence_s", 0.60, ("", "year", *ENGINES)),
    ("sequence_s", 0.80, OTHER_STACKS),
    ("sequence_s", 1.50, (OLD_VLLM,)),
    ("prefill_token_s", 0.60, ("", *ENGINES)),
    ("reread", 0.70, ("vendor=AMD",)),
    ("reread", 0.40, ("stack=tensorrt-llm",)),
    ("reduce", 0.25, ("", "year", *ENGINES, *FAMILIES)),
    ("reduce", 0.30, FAMILY_STACKS),
    ("reduce", 0.50, (*UNMEASURED, *OTHER_STACKS)),
    ("link_share", 0.15, ("",)),
    ("link_share", 0.20, ("link=nvswitch",)),
    ("link_share", 0.40, ("link=pcie",)),
    ("reduce", 0.40, ("link=pcie",)),
    ("link_share", 0.40, UNMEASURED),
    (
        "experts_launch", 0.30,
        ("", *ENGINES, "vendor=NVIDIA", "vendor=AMD", "experts=coarse", "experts=fine,format=fp8",
         "experts=fine,stack=tensorrt-llm", *FORMATS),
    ),
    ("experts_launch", 1.00, PORTABLE_INTEGER_EXPERTS),
    ("experts_peak", 1.00, PORTABLE_INTEGER_EXPERTS),
    ("experts_bandwidth", 1.00, PORTABLE_INTEGER_EXPERTS),
    ("experts_peak", 0.25, ("", "vendor=NVIDIA", "vendor=AMD", "experts=coarse")),
    ("experts_peak", 0.20, (*ENGINES, *FORMATS)),
    ("experts_launch", 0.60, AMD_STACKS),
    ("experts_peak", 0.40, AMD_STACKS),
    ("experts_bandwidth", 0.40, AMD_STACKS),
    ("experts_peak", 0.30, FAMILIES),
    ("experts_launch", 0.30, ("year",)),
    ("layer_s", 0.30, ("year",)),
    ("experts_bandwidth", 0.25, ("", "vendor=NVIDIA", "vendor=AMD", "experts=coarse")),
    ("experts_bandwidth", 0.20, (*ENGINES, *FORMATS)),
    ("frontend_s", 0.70, ("", "year", *ENGINES)),
    ("overlap", 0.50, ("", *ENGINES)),
    ("burst", 1.00, ("", "fixed=True", "fixed=False")),
)  # fmt: skip

TERMS: tuple[Term, ...] = (
    *(Term(quantity=quantity, key=key, spread=spread) for quantity, spread, keys in _TABLE for key in keys),
    *(Term(quantity=quantity, key=EARLY_AMD, spread=EARLY_AMD_SPREAD) for quantity in EARLY_AMD_QUANTITIES),
)

# values before any effect: shares of the kernel curves start at 1; the overheads at what profiles of these engines show
# (a scheduler step of about a millisecond, microseconds a sequence and a layer; vLLM and SGLang release notes)
BASE: dict[str, float] = {
    "matmul_peak": 0.95, "matmul_bandwidth": 1.0, "launch": 0.7, "experts_launch": 1.0, "experts_peak": 1.0,
    "experts_bandwidth": 1.0, "prefill_attention": 1.0, "decode_attention": 1.0, "layer_s": 6e-6, "step_s": 1e-3,
    "eager_s": 8e-4, "sequence_s": 2e-6, "prefill_token_s": 1e-9, "reduce": 1.7, "reread": 0.5, "link_share": 0.6,
    "overlap": 0.7, "frontend_s": 0.015, "burst": 0.3,
}  # fmt: skip

# engine conventions from their documentation (defaults of memory fraction, batch and chunk; eviction policy)
ENGINE_CONVENTIONS: dict[str, dict[str, float | int | bool]] = {
    "vllm": {
        "memory_fraction": 0.90, "reserve_bytes": 2e9, "admitted_output_share": 0.5, "max_sequences": 1024,
        "chunk_tokens": 8192, "frees_windows": True, "mixes_prefill_since": 2025.2, "overlaps_since": 2026.05,
    },
    "sglang": {
        "memory_fraction": 0.88, "reserve_bytes": 2e9, "admitted_output_share": 0.5, "max_sequences": 1024,
        "chunk_tokens": 8192, "frees_windows": True, "mixes_prefill_since": 9999.0, "overlaps_since": 2024.9,
    },
    "tensorrt-llm": {
        "memory_fraction": 0.93, "reserve_bytes": 2e9, "admitted_output_share": 1.0, "max_sequences": 2048,
        "chunk_tokens": 8192, "frees_windows": False, "mixes_prefill_since": 2023.0, "overlaps_since": 2025.4,
    },
}  # fmt: skip
