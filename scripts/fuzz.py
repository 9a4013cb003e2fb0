"""The full fuzzing run: `make fuzz`, or `python scripts/fuzz.py [--inputs 100000]`.

Inputs are distributed over all targets, and the counts are printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import fuzzing


def main() -> None:
    """Run all targets."""
    parser = argparse.ArgumentParser(
        description="Give everything that is read damaged and hostile inputs."
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--targets", default=",".join(fuzzing.TARGETS), help="with commas between")
    options = parser.parse_args()
    total = 0
    for name in options.targets.split(","):
        count = round(options.inputs * fuzzing.TARGETS[name][2])
        begin = time.monotonic()
        fuzzing.fuzz(name, count, seeded=False)
        total += count
        print(f"{name:16} {count:7} inputs, no crash, {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{total} inputs, no crash, no code run")


if __name__ == "__main__":
    main()
