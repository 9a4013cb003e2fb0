"""Records as logs of runs, for TensorBoard and for Weights & Biases: one run a trial, one curve a
measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unlazy.core.errors import BadInput
from unlazy.lab.store import Run
from unlazy.lab.trials import Record
from unlazy.report.exporting import rows
from unlazy.report.view import slug

#: How a value of a measure is written down.
Write = Callable[[str, float, int], None]


@contextmanager
def _tensorboard(folder: Path, name: str, about: Mapping[str, Any]) -> Iterator[Write]:
    try:
        from tensorboard.summary import Writer
    except ImportError:
        raise BadInput(
            "TensorBoard's format needs the optional extra: pip install 'unlazy[tensorboard]'. "
            "Or choose --format csv."
        ) from None
    writer = Writer(str(folder / name))
    try:
        yield writer.add_scalar
    finally:
        writer.close()


@contextmanager
def _wandb(folder: Path, name: str, about: Mapping[str, Any]) -> Iterator[Write]:
    try:
        import wandb
    except ImportError:
        raise BadInput(
            "Weights & Biases need the optional extra: pip install 'unlazy[wandb]'. Or choose "
            "--format csv."
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    # Offline unless the user's settings say otherwise: `wandb sync` sends it.
    run = wandb.init(
        project="unlazy",
        name=name,
        group=str(about["claim"]),
        config=dict(about),
        dir=str(folder),
        mode="offline",
    )
    try:
        yield lambda measure, value, step: run.log({measure: value, "step": step})
    finally:
        run.finish()


def log_records(records: Iterable[Record], runs: Iterable[Run], kind: str, folder: Path) -> int:
    """Write a log of each record; returns how many there are.

    A value that is not finite is left out: neither tool has a place for it.
    """
    of = {"tensorboard": _tensorboard, "wandb": _wandb}[kind]
    known, count = list(runs), 0
    for record in records:
        table = list(rows([record], known))
        if not table:
            continue
        about = {
            name: table[0][name]
            for name in (
                "claim",
                "scale",
                "arm",
                "family",
                "learner",
                "n",
                "seed",
                "status",
                "family_json",
            )
        }
        name = (
            "/".join(slug(str(about[part])) or "none" for part in ("claim", "arm"))
            + f"/{record.key[:8]}-seed-{record.seed}"
        )
        with of(folder, name, about) as write:
            for row in table:
                if math.isfinite(row["value"]):
                    write(row["measure"], row["value"], row["step"])
        count += 1
    return count
