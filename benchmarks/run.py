"""Run all benchmarks and print one table of ratios: `python -m benchmarks.run [--out
results/benchmarks.json]` in the project's folder.

A missed target is shown, but the exit status is 0.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shlex
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import (
    circuits,
    engine,
    growth,
    hierarchy,
    kernels,
    peers,
    pytorch,
    resnet,
    storing,
    tables,
    walsh,
    workers,
    xor,
)
from benchmarks.last import fallen, joined, measured
from benchmarks.page import page
from benchmarks.timing import Comparison

BENCHMARKS: dict[str, Callable[[], list[Comparison]]] = {
    "engine": engine.run,
    "pytorch": pytorch.run,
    "storing": storing.run,
    "circuits": circuits.run,
    "xor": xor.run,
    "walsh": walsh.run,
    "hierarchy": hierarchy.run,
    "resnet": resnet.run,
    "kernels": kernels.run,
    "kernels-large": kernels.run_large,
    "peers": peers.run,
    "growth": growth.run,
    "workers": workers.run,
    "tables": tables.run,
}
PACKAGES = ("unlazy", "jax", "jaxlib", "numpy", "torch", "xrfm")


def duration(seconds: float) -> str:
    """Format a time with a suitable unit."""
    units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
    unit, size = next((entry for entry in units if seconds >= entry[1]), units[-1])
    return f"{seconds / size:.3g} {unit}"


def table(comparisons: list[Comparison]) -> Table:
    """Return one row per comparison."""
    result = Table(title="Ours against a peer, medians over interleaved rounds")
    for name in ("what", "per", "ours", "peer", "ratio", "by round", "target", "met"):
        result.add_column(name, justify="left" if name in ("what", "per", "met") else "right")
    for one in comparisons:
        rounds = one.by_round
        result.add_row(
            one.what,
            one.unit,
            duration(statistics.median(one.ours)),
            duration(statistics.median(one.peer)),
            f"{one.ratio:.2f}",
            f"{rounds[0]:.2f} … {rounds[-1]:.2f}",
            f"{'≥' if one.better == 'higher' else '≤'} {one.target:g}",
            "[green]yes[/green]" if one.met else "[red]no[/red]",
        )
    return result


def version(package: str) -> str | None:
    """Return the installed version, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def report(comparisons: list[dict[str, Any]], arguments: list[str]) -> dict[str, Any]:
    """Return all results as JSON data."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "command": shlex.join(["python", "-m", "benchmarks.run", *arguments]),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": processor(),
            "cores": os.cpu_count(),
            "load_at_end": load,
        },
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
        "comparisons": comparisons,
    }


def main(arguments: list[str]) -> None:
    """Run the selected benchmarks."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Measure this package against its peers."
    )
    which = f"which: {', '.join(BENCHMARKS)}. By default all."
    parser.add_argument("names", nargs="*", metavar="NAME", help=which)
    parser.add_argument(
        "--out",
        type=Path,
        help="also write the ratios to this JSON file and a page next to it; results of benchmarks "
        "that were not run are kept",
    )
    parser.add_argument(
        "--since",
        type=Path,
        nargs="*",
        default=[],
        help="earlier results: what fell by more than a fifth is named",
    )
    options = parser.parse_args(arguments)
    known = BENCHMARKS
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}: choose from {', '.join(known)}")

    console = Console() if sys.stdout.isatty() else Console(width=160)
    earlier = [
        path
        for path in dict.fromkeys([*options.since, *([options.out] if options.out else [])])
        if path.exists()
    ]
    before = measured(earlier)
    kept = measured([options.out] if options.out is not None and options.out.exists() else [])
    comparisons: list[Comparison] = []
    for name in options.names or BENCHMARKS:
        comparisons += known[name]()
        if options.out is not None:  # after each benchmark, in case a later one fails
            options.out.parent.mkdir(parents=True, exist_ok=True)
            found = report(joined(comparisons, kept), arguments)
            options.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
            options.out.with_suffix(".html").write_text(page(found), encoding="utf-8")
    if comparisons:
        console.print(table(comparisons))
    for one in comparisons:
        if one.notes:
            console.print(
                f"{one.what}: {', '.join(f'{name} {value}' for name, value in one.notes.items())}",
                highlight=False,
            )
    worse = fallen(comparisons, before)
    for sentence in worse:
        console.print(f"[red]Fallen:[/red] {sentence}", highlight=False)
    if before and not worse:
        console.print(
            "Nothing has fallen by more than a fifth since the last run.", highlight=False
        )
    if options.out is not None:
        console.print(
            f"Written to {options.out} and {options.out.with_suffix('.html')}.", highlight=False
        )


if __name__ == "__main__":
    main(sys.argv[1:])
