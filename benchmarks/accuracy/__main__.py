"""Entry point: one module a kind, so that each can grow without the other."""

import argparse
import importlib
import sys
from pathlib import Path

KINDS = ("training", "inference", "whole_runs")


def main(arguments: list[str]) -> int:
    """Predict every row of a measurement file and print how far off the predictions are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", type=Path, default=None, help="write one element per row and metric")
    options = parser.parse_args(arguments)
    # whole runs come as YAML, whatever kind they are asked for as
    kind = "whole_runs" if options.file.suffix in (".yaml", ".yml") else options.kind
    module = importlib.import_module(f"benchmarks.accuracy.{kind}")
    return int(module.run(options.file, options.json))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
