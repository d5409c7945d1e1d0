"""Number formats: bytes per element, and which dense peak of an accelerator a format computes at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """One number format as stored in memory.

    Parameters
    ----------
    name : str
        Name used in the API and in the measurement files.
    bytes_per_element : float [byte]
        Storage per element, block scales included.
    peak : str
        Field of :class:`app.engine.hardware.DensePeaks` that a matmul in this format can reach.

    References
    ----------
    1. Open Compute Project, "OCP Microscaling Formats (MX) Specification v1.0", 2023 (32 elements share one byte).
    2. NVIDIA, "Introducing NVFP4", 2025 (16 elements share one FP8 scale).
    """

    name: str
    bytes_per_element: float
    peak: str


FORMATS: dict[str, NumberFormat] = {
    f.name: f
    for f in (
        NumberFormat(name="fp32", bytes_per_element=4.0, peak="fp32"),
        NumberFormat(name="tf32", bytes_per_element=4.0, peak="tf32"),
        NumberFormat(name="bf16", bytes_per_element=2.0, peak="bf16"),
        NumberFormat(name="fp16", bytes_per_element=2.0, peak="fp16"),
        NumberFormat(name="fp8", bytes_per_element=1.0, peak="fp8"),
        # 1 byte and one shared 8-bit scale for every 32 elements [1]
        NumberFormat(name="mxfp8", bytes_per_element=1.0 + 1.0 / 32.0, peak="fp8"),
        NumberFormat(name="int8", bytes_per_element=1.0, peak="int8"),
        # weight-only: computed in the activations' format; group of 128 shares a 16-bit scale (AWQ, GPTQ)
        NumberFormat(name="int4", bytes_per_element=0.5 + 2.0 / 128.0, peak="bf16"),
        # half a byte and one FP8 scale for every 16 elements [2]
        NumberFormat(name="nvfp4", bytes_per_element=0.5 + 1.0 / 16.0, peak="fp4"),
        # half a byte and one 8-bit scale for every 32 elements [1]
        NumberFormat(name="mxfp4", bytes_per_element=0.5 + 1.0 / 32.0, peak="fp4"),
    )
}
