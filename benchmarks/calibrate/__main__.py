"""Entry point: one module a kind. The same measurements give the same bytes."""

import argparse
import importlib
import sys
from pathlib import Path

KINDS = ("training", "inference")


def main(arguments: list[str]) -> int:
    """Fit the parameters of one kind of workload and write the catalog's calibration file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrate")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--out", type=Path, default=None, help="default: the file the catalog ships")
    options = parser.parse_args(arguments)
    module = importlib.import_module(f"benchmarks.calibrate.{options.kind}")
    return int(module.run(options.out))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
