"""``python -m benchmarks.calibrate training|inference [--out FILE]``: fit the engine's parameters, to the byte."""
