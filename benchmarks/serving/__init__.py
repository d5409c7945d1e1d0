"""Serving rows as workloads, the fit of the serving engine, and its cross-validation."""
