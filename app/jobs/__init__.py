"""Requests that are answered later: jobs as rows their clients see, and the worker that runs them."""
