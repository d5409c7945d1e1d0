"""Inference: memory, iteration times, regimes of load, fleets and the search over serving plans."""
