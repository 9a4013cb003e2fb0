"""Export of all measurements as a long table: one row per trial, step and measure."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from unlazy.core.errors import BadInput
from unlazy.lab.store import Run
from unlazy.lab.trials import Record, computation_of
from unlazy.report.files import replacing

COLUMNS = (
    *("id", "key", "fingerprint", "claim", "scale", "arm", "family", "learner", "n", "seed"),
    *("status", "step", "measure", "value", "seconds", "unlazy", "source", "device"),
    *("family_json", "learner_json"),
)


def rows(records: Iterable[Record], runs: Iterable[Run]) -> Iterator[dict[str, Any]]:
    """Yield the rows. A trial shared by several runs is listed once, under the newest of them.

    `claim` is the claim or the task of the run, `scale` the scale of a claim or the kind of another
    run, `arm` the arm or learner.
    """
    used: dict[str, tuple[str, str, str]] = {}
    for run in runs:
        for arm, ids in run.arms.items():
            for each in ids:
                setting = run.setting if run.kind == "claim" else run.kind
                used.setdefault(each, (run.name, setting, arm))
    for record in records:
        claim, scale, arm = used.get(record.id, ("", "", ""))
        trial = record.trial
        common = {
            "id": record.id,
            "key": record.key,
            "fingerprint": record.fingerprint,
            "claim": claim,
            "scale": scale,
            "arm": arm,
            **_names(trial),
            "seed": trial["seed"],
            "status": record.status,
            "seconds": record.seconds,
            "unlazy": record.provenance.get("unlazy"),
            "source": record.provenance.get("source"),
            "device": record.provenance.get("device"),
        }
        for measure, series in record.measurements.items():
            for step, value in zip(record.steps, series, strict=True):
                yield common | {"step": step, "measure": measure, "value": value}


def _names(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return family, learner and n of a trial.

    An exact computation is listed as learner, without family and n.
    """
    family, learner = trial.get("family"), trial.get("learner") or computation_of(trial)
    return {
        "family": family["type"].partition("#")[0] if family else "",
        "learner": learner["type"].partition("#")[0],
        "n": trial.get("n"),
        "family_json": _compact(family) if family else "",
        "learner_json": _compact(learner),
    }


def write_export(
    table: Iterable[Mapping[str, Any]], kind: Literal["csv", "jsonl", "parquet"], out: Path | None
) -> int:
    """Write the table to a file, or to standard output; returns the number of rows."""
    if kind == "parquet":
        assert out is not None, "Parquet needs a file"
        return _write_parquet(table, out)
    with contextlib.ExitStack() as stack:
        file = (
            sys.stdout
            if out is None
            else stack.enter_context(
                stack.enter_context(replacing(out)).open("w", encoding="utf-8", newline="")
            )
        )
        writer = csv.DictWriter(file, COLUMNS)
        if kind == "csv":
            writer.writeheader()
        count = 0
        for row in table:
            count += 1
            if kind == "csv":
                writer.writerow(row)
            else:
                file.write(_compact({column: _plain(row[column]) for column in COLUMNS}) + "\n")
        return count


def _write_parquet(table: Iterable[Mapping[str, Any]], out: Path) -> int:
    try:
        import pyarrow as arrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput(
            "Parquet needs the optional extra: pip install 'unlazy[parquet]'. Or choose "
            "--format csv."
        ) from None
    listed = list(table)
    columns = {name: [row[name] for row in listed] for name in COLUMNS}
    with replacing(out) as draft:
        pyarrow.parquet.write_table(arrow.table(columns), draft)
    return len(listed)


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
