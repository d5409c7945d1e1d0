"""gpuquote: quotes for LLM training and inference that can be recomputed to the byte."""
