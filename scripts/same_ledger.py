"""Compare two ledgers: `python scripts/same_ledger.py A.json B.json [B2.json …]`, as written by
`unlazy reproduce --json`.

Lists claims of A whose verdict, count of reproduced numbers or measured numbers differ in B, for
example after a run on another engine. The exit status is 1 if a verdict or a count differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

#: Differences below this, relative to the larger number or to 1, are rounding.
ROUNDING = 1e-4


def entries(paths: list[Path]) -> dict[str, dict[str, Any]]:
    """Return all claims that were run, by id."""
    found = [entry for path in paths for entry in json.loads(path.read_text(encoding="utf-8"))]
    return {entry["id"]: entry for entry in found if entry["verdict"] != "not run"}


def far(a: Any, b: Any) -> float:
    """Return the difference of two values, relative to their size or to 1."""
    if a is None or b is None:
        return 0.0 if a is b else float("inf")
    return abs(a - b) / max(abs(a), abs(b), 1.0)


def main() -> None:
    """Compare the files, and print the differences."""
    parser = argparse.ArgumentParser(description="Compare what two runs of the same claims found.")
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path, nargs="+")
    options = parser.parse_args()
    one, other = entries([options.one]), entries(options.other)
    different = rounded = numbers = 0
    for name in sorted(one.keys() & other.keys()):
        a, b = one[name], other[name]
        for what in ("verdict", "numbers", "seeds"):
            if a[what] != b[what]:
                different += 1
                print(f"{name}: {what} {a[what]} and {b[what]}")
        shared = a["measured"].keys() & b["measured"].keys()
        apart = {key: far(a["measured"][key], b["measured"][key]) for key in shared}
        numbers, rounded = (
            numbers + len(apart),
            rounded + sum(value <= ROUNDING for value in apart.values()),
        )
        worst = max(apart, key=lambda key: apart[key], default=None)
        if worst is not None and apart[worst] > ROUNDING:
            print(
                f"{name}: furthest apart is {worst}: {a['measured'][worst]:.6g} and "
                f"{b['measured'][worst]:.6g}"
            )
    for name in sorted(one.keys() ^ other.keys()):
        print(f"{name}: only in {'the first' if name in one else 'the others'}")
    both = len(one.keys() & other.keys())
    print(
        f"{both} claims in both, {different} with another verdict, count or seeds; {rounded} of "
        f"{numbers} means agree to {ROUNDING:g}"
    )
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
