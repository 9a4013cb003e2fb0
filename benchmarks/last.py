"""Comparison with the last run: ratios that became worse."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.timing import Comparison

#: Relative change from which a ratio counts as worse.
FALL = 0.2


def measured(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Return results of earlier runs by name, from the newest file that has them."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(paths, key=lambda each: each.stat().st_mtime):
        found |= {one["what"]: one for one in json.loads(path.read_text())["comparisons"]}
    return found


def fallen(comparisons: Iterable[Comparison], before: dict[str, dict[str, Any]]) -> list[str]:
    """Return a sentence for each ratio that became worse by more than a fifth."""
    said = []
    for one in comparisons:
        old = before.get(one.what)
        if old is None or old["ratio"] == 0 or one.ratio == 0:
            continue
        change = one.ratio / old["ratio"] if one.better == "higher" else old["ratio"] / one.ratio
        if change < 1 - FALL:
            said.append(
                f"{one.what}: {old['ratio']:.2f} before, {one.ratio:.2f} now "
                f"({100 * (1 - change):.0f} % worse)"
            )
    return said


def joined(
    comparisons: Iterable[Comparison], before: dict[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the new measurements, and the last ones of other benchmarks."""
    now = {one.what: one.summary() for one in comparisons}
    return [*now.values(), *(one for what, one in before.items() if what not in now)]
