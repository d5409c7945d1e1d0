"""``python -m benchmarks.accuracy training|inference FILE.jsonl [--json OUT]``: predictions against measurements."""
