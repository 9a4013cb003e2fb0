"""A family whose examples are the rows of a table: `table.csv:target` wherever a task is named.

A fifth of the rows, the same for all seeds, is held back to be judged by; the seed draws which of
the others a learner meets. Columns are encoded as in an audit, by what the rows to learn from say
alone.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import SIGNS, Outputs
from unlazy.core.naming import ContentHashed
from unlazy.core.random import shuffled
from unlazy.tasks.base import Batch, Data, Family
from unlazy.tasks.tables.files import read_table
from unlazy.tasks.tables.problems import Problem, problem_of


class _EncodedRows(eqx.Module):
    """Encoded rows, first those to learn from; labels as the outputs say.

    NumPy's arrays: the same for all trials of a program.
    """

    x: np.ndarray  # N d
    y: np.ndarray  # N, or N o
    learned: int = eqx.field(static=True)
    outputs: Outputs = eqx.field(static=True)


class RowsOfTable(Data):
    """Rows of a table with their targets."""

    rows: _EncodedRows

    @property
    def dimension(self) -> int:
        return int(self.rows.x.shape[1])

    @property
    def outputs(self) -> Outputs:
        return self.rows.outputs

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        require(
            n <= self.rows.learned,
            f"There are {self.rows.learned:,} rows to learn from, but {n:,} were asked for.",
        )
        return self._batch(shuffled(key, self.rows.learned)[:n])

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        held = len(self.rows.y) - self.rows.learned
        return self._batch(self.rows.learned + shuffled(key, held)[: min(n, held)])

    def _batch(self, places: Int[Array, " n"]) -> Batch:
        number = jnp.result_type(float)
        x: Float[Array, "N d"] = jnp.asarray(self.rows.x)
        return Batch(x[places].astype(number), jnp.asarray(self.rows.y)[places].astype(number))


class TableRows(Family, ContentHashed):
    """What a table's target is, from its other columns: two classes as signs, more as classes,
    numbers in units of their spread.

    `path` leads to a CSV, Parquet or .npz file, and `target` names a column (of an .npz file with X
    and y it is y).
    """

    path: str = eqx.field(static=True)
    target: str = eqx.field(static=True)

    def __check_init__(self) -> None:
        _ = self._encoded  # what cannot be used is said when it is named, not when it is run

    @property
    def digest(self) -> str:
        facts = Path(self.path).stat()  # ctime: a tool may set the time of the last write back
        return _digest(self.path, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size)

    @property
    def problem(self) -> Problem:
        """The table as read, with what was decided on the way."""
        return _problem(self.path, self.target, self.digest)

    @property
    def _encoded(self) -> _EncodedRows:
        return _encoded(self.path, self.target, self.digest)

    @property
    def dimension(self) -> int:
        return int(self._encoded.x.shape[1])

    @property
    def outputs(self) -> Outputs:
        return self._encoded.outputs

    @property
    def most_examples(self) -> int | None:
        return self._encoded.learned

    def task(self, *, key: PRNGKeyArray) -> RowsOfTable:
        return RowsOfTable(self._encoded)


def table_rows(place: str) -> TableRows:
    """The family that `table.csv:y` names."""
    where, _, target = place.rpartition(":")
    require(Path(where).is_file(), f"There is no file {where}.")
    return TableRows(str(Path(where).resolve()), target)


@functools.lru_cache(maxsize=16)
def _digest(path: str, written: int, changed: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]


@functools.lru_cache(maxsize=4)
def _problem(path: str, target: str, digest: str) -> Problem:
    return problem_of(read_table(Path(path), target), name=Path(path).stem)


@functools.lru_cache(maxsize=4)
def _encoded(path: str, target: str, digest: str) -> _EncodedRows:
    problem = _problem(path, target, digest)
    held = problem.folds(0)[0]
    learned = np.setdiff1d(np.arange(len(problem)), held)
    encoder = problem.encoder().fit(problem.X[learned], problem.y[learned])
    order = np.concatenate([learned, held])
    x, y = encoder.transform(problem.X[order]), problem.y[order]
    if problem.kind == "regression":
        mean, spread = np.mean(y[: len(learned)]), np.std(y[: len(learned)])
        return _EncodedRows(
            x.astype(np.float32),
            ((y - mean) / (spread or 1.0)).astype(np.float32),
            len(learned),
            Outputs("reals"),
        )
    count = len(problem.classes)
    if count == 2:
        return _EncodedRows(
            x.astype(np.float32), (2 * y - 1).astype(np.float32), len(learned), SIGNS
        )
    return _EncodedRows(
        x.astype(np.float32),
        np.eye(count, dtype=np.float32)[y],
        len(learned),
        Outputs("classes", count),
    )
