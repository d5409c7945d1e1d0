"""gpuquote: quotes for LLM training and inference that can be recomputed to the byte."""

__version__ = "0.1.0"
