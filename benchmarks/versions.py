"""Compare commands of this version with those of another checkout, in one run:
`python -m benchmarks.versions OTHER_CHECKOUT [--rounds 5] [--out FILE]`.

Both versions run in the present environment, in turns, each with a store and caches of its own that
a first round fills. The table shows the medians, and the median over rounds of the ratio of this
version to the other one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parents[1]
#: Claims whose trials take less than a second, so that what is timed is everything else.
CLAIMS = ("malach2019/lemma8", "daniely2020/lemma5", "shi2022/lemma9")
COMMANDS = {
    "--help": ("--help",),
    "list tasks": ("list", "tasks"),
    "rules of a claim": ("rules", "shi2022/lemma9"),
    "reproduce, all records stored": ("reproduce", *CLAIMS, "--store", "{store}"),
    "compare, all records stored": (
        *("compare", "parity", "--learner", "linear", "--learner", "rbf", "--n", "50,100"),
        *("--seeds", "5", "--budget", "2", "--test", "100", "--store", "{store}"),
    ),
}


def seconds(checkout: Path, words: tuple[str, ...], folder: Path) -> float:
    """Return the wall time of a command of a checkout."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_DATA_HOME": str(folder / "data"),
    }
    command = [word.format(store=folder / "store.sqlite") for word in words]
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "unlazy", *command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    elapsed = time.perf_counter() - begin
    if done.returncode not in (0, 1):
        raise SystemExit(f"{checkout}: {' '.join(command)} failed.\n{done.stderr}")
    return elapsed


def main() -> None:
    """Time all commands in turns, and print one line for each."""
    parser = argparse.ArgumentParser(description="Compare commands with another checkout.")
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folders = {HERE: Path(name) / "here", options.other.resolve(): Path(name) / "other"}
        for folder in folders.values():
            folder.mkdir()
        for title, words in COMMANDS.items():
            times: list[list[float]] = [
                [seconds(checkout, words, folder) for checkout, folder in folders.items()]
                for _ in range(options.rounds + 1)
            ][1:]  # the first round fills stores and caches
            ratio = statistics.median(here / other for here, other in times)
            here, other = (statistics.median(each) for each in zip(*times, strict=True))
            results[title] = {"here": here, "other": other, "ratio": ratio}
            print(f"{title}: {here:.2f} s here, {other:.2f} s there, ratio {ratio:.2f}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
