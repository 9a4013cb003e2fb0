"""Validate audits on tables with a known answer: `python scripts/audits.py [--seeds 20] [--out
results/tables/audits.json]`.

Tables: labels that are a parity of three columns (feature learning helps: a kernel needs about as
many rows as there are triples of columns); targets of a linear and of an RBF teacher (a kernel is
enough); parities with permuted labels (no signal). Seeds are held-out seeds. Folds are stored, so
an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import unlazy

Made = tuple[np.ndarray, np.ndarray]


def parity(draw: np.random.Generator, rows: int) -> Made:
    """Return the product of three of twenty signs."""
    x = draw.choice([-1.0, 1.0], (rows, 20))
    return x, x[:, :3].prod(axis=1) > 0


def permuted(draw: np.random.Generator, rows: int) -> Made:
    """Return the same with permuted labels."""
    x, y = parity(draw, rows)
    return x, draw.permutation(y)


def linear(draw: np.random.Generator, rows: int) -> Made:
    """Return a random linear function of ten columns, with noise of a fifth of its variance."""
    x = draw.standard_normal((rows, 10))
    y = x @ draw.standard_normal(10)
    return x, y + np.sqrt(0.2) * y.std() * draw.standard_normal(rows)


def rbf(draw: np.random.Generator, rows: int) -> Made:
    """Return a random function of the RKHS of an RBF kernel on five columns, with noise of a fifth
    of its variance.
    """
    x = draw.standard_normal((rows, 5))
    centers = draw.standard_normal((200, 5))
    squared = np.sum(np.square(x[:, None] - centers), axis=2)
    y = np.exp(-squared / 5) @ draw.standard_normal(200)
    return x, y + np.sqrt(0.2) * y.std() * draw.standard_normal(rows)


#: Generator of each table, and its correct decisions.
TABLES: dict[str, tuple[Callable[[np.random.Generator, int], Made], tuple[str, ...]]] = {
    "parity": (parity, ("learn features",)),
    "linear teacher": (linear, ("a kernel is enough",)),
    "RBF teacher": (rbf, ("a kernel is enough",)),
    "permuted labels": (permuted, ("nothing to learn", "not decided", "a kernel is enough")),
}


def audited(name: str, seed: int, rows: int, store: Path) -> dict[str, Any]:
    """Audit one table with all methods and without diagnostics."""
    x, y = TABLES[name][0](np.random.default_rng(seed), rows)
    outcome = unlazy.audit(x, y, explain=False, store=store, name=f"{name}, seed {seed}")
    found = outcome.to_json()
    return {
        "decision": found["decision"],
        "gap": found["gap"],
        "best with fixed features": found["best with fixed features"],
        "best with learned features": found["best with learned features"],
        "seconds": sum(method.seconds for method in outcome.methods),
    }


def main() -> None:
    """Audit all tables for all seeds, and count correct decisions."""
    parser = argparse.ArgumentParser(description="Audit tables with a known answer.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--tables", default=",".join(TABLES), help="comma-separated")
    parser.add_argument("--store", type=Path, default=Path("out/audits.sqlite"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.tables.split(","):
        right, found = TABLES[name][1], {}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            begin = time.monotonic()
            found[seed] = audited(name, seed, options.rows, options.store)
            gap = found[seed]["gap"]
            text = (
                f"{found[seed]['decision']} (gain {gap['mean']:+.1f}, {gap['low']:+.1f} to "
                f"{gap['high']:+.1f})"
            )
            print(f"{name}, seed {seed}: {text}, {time.monotonic() - begin:.0f} s", flush=True)
        count = sum(each["decision"] in right for each in found.values())
        print(f"{name}: {count} of {options.seeds} correct", flush=True)
        decisions = Counter(each["decision"] for each in found.values())
        results[name] = {
            "right": count,
            "of": options.seeds,
            "answers that are right": list(right),
            "decisions": dict(decisions),
            "seeds": found,
        }
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        asked = {
            "--tables": options.tables,
            "--rows": options.rows,
            "--seeds": options.seeds,
            "--first-seed": options.first_seed,
        }
        command = shlex.join(
            ["python", "scripts/audits.py", *(str(word) for pair in asked.items() for word in pair)]
        )
        options.out.write_text(
            json.dumps({"command": command, "rows": options.rows, "tables": results}, indent=1)
            + "\n"
        )


if __name__ == "__main__":
    main()
