"""Engine strings of measurement rows: which stack, and when it was released."""

import re

# release dates as decimal years, from each project's release page (GitHub releases, read 2026)
RELEASES: dict[str, tuple[tuple[tuple[int, ...], float], ...]] = {
    "vllm": (
        ((0, 2), 2023.75), ((0, 3), 2024.1), ((0, 4), 2024.3), ((0, 5), 2024.5), ((0, 6), 2024.7), ((0, 7), 2025.1),
        ((0, 8), 2025.25), ((0, 9), 2025.4), ((0, 10), 2025.6), ((0, 11), 2025.75), ((0, 12), 2025.92),
        ((0, 13), 2025.97), ((0, 14), 2026.05), ((0, 15), 2026.1), ((0, 16), 2026.15), ((0, 17), 2026.2),
        ((0, 18), 2026.25), ((0, 19), 2026.3), ((0, 22), 2026.5), ((1, 0), 2026.9),
    ),
    "sglang": (
        ((0, 2), 2024.55), ((0, 3), 2024.7), ((0, 4), 2024.95), ((0, 4, 4), 2025.2), ((0, 4, 6), 2025.3),
        ((0, 4, 9), 2025.5), ((0, 5), 2025.62), ((0, 5, 3), 2025.75), ((0, 5, 6), 2025.92), ((0, 5, 7), 2026.0),
        ((0, 5, 8), 2026.07), ((0, 5, 9), 2026.15), ((0, 5, 10), 2026.3), ((0, 5, 12), 2026.45), ((0, 6), 2026.6),
    ),
    "tensorrt-llm": (
        ((0, 5), 2023.8), ((0, 6), 2023.95), ((0, 7), 2024.05), ((0, 9), 2024.3), ((0, 10), 2024.45),
        ((0, 12), 2024.65), ((0, 16), 2024.98), ((0, 17), 2025.1), ((0, 20), 2025.45), ((1, 0), 2025.7),
        ((1, 1), 2025.9), ((1, 2), 2026.05), ((1, 3), 2026.25),
    ),
}  # fmt: skip

# NVIDIA's MLPerf submissions name the TensorRT runtime; its releases 9 and 10 accompany TensorRT-LLM of these years
TENSORRT_RELEASES = ((9, 2024.2), (10, 2024.6))
TENSORRT_MINOR_YEARS = {2: 2024.6, 8: 2025.2, 10: 2025.4, 11: 2025.5}

_NAMES = (
    ("tensorrt-llm", ("tensorrt-llm", "tensorrt_llm", "trtllm", "trt-llm")),
    ("sglang", ("sglang", "sgl")),
    ("vllm", ("vllm",)),
    ("deepspeed", ("deepspeed",)),
    ("optimum-habana", ("habana", "gaudi")),
    ("tensorrt-llm", ("tensorrt", "cuda")),
    ("jetstream", ("jetstream", "maxtext")),
    ("llama.cpp", ("llama.cpp", "llamacpp", "ollama")),
    ("tgi", ("tgi", "text-generation-inference")),
    ("lmdeploy", ("lmdeploy",)),
)


def stack_of(engine: str | None) -> str | None:
    """Stack name of an engine string, None when it names no stack we know."""
    text = (engine or "").lower()
    for stack, words in _NAMES:
        if any(word in text for word in words):
            return stack
    return None


def released_year(engine: str | None, stack: str | None, published: str | None) -> float | None:
    """Release year of an engine string, else the year its source was published, else None."""
    text = (engine or "").lower()
    match = re.search(r"(?:v|\b)(\d+)\.(\d+)(?:\.(\d+))?", text)
    if stack in RELEASES and match:
        version = tuple(int(part) for part in match.groups() if part is not None)
        if stack == "tensorrt-llm" and version[0] >= 9:
            return TENSORRT_MINOR_YEARS.get(version[1], 2024.2 if version[0] == 9 else 2024.8)
        return _closest(RELEASES[stack], version)
    date = re.search(r"(20\d\d)(?:-(\d\d))?", published or "")
    if date:
        return int(date.group(1)) + ((int(date.group(2)) - 0.5) / 12.0 if date.group(2) else 0.5)
    return None


def _closest(releases: tuple[tuple[tuple[int, ...], float], ...], version: tuple[int, ...]) -> float:
    """Year of the newest listed release not after ``version``."""
    year = releases[0][1]
    for known, at in releases:
        if known <= version:
            year = at
    return year
