"""Table rows as a task, named `table.csv:target`.

A fifth of the rows, the same for all seeds, is held out for testing. The seed selects the training
rows among the others. Columns are encoded as in an audit, fitted on the training rows only.
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
    """Encoded rows, training rows first, and labels of type `outputs`.

    The arrays are NumPy's and shared by all trials of a program.
    """

    x: np.ndarray  # N d
    y: np.ndarray  # N, or N o
    train_count: int = eqx.field(static=True)
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
            n <= self.rows.train_count,
            f"There are {self.rows.train_count:,} training rows, but {n:,} were requested.",
        )
        return self._batch(shuffled(key, self.rows.train_count)[:n])

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        held = len(self.rows.y) - self.rows.train_count
        return self._batch(self.rows.train_count + shuffled(key, held)[: min(n, held)])

    def _batch(self, indices: Int[Array, " n"]) -> Batch:
        number = jnp.result_type(float)
        x: Float[Array, "N d"] = jnp.asarray(self.rows.x)
        return Batch(x[indices].astype(number), jnp.asarray(self.rows.y)[indices].astype(number))


class TableRows(Family, ContentHashed):
    """Prediction of a table's target from its other columns.

    Two classes are signs, more are one-hot classes; numbers are standardized. `path` is a CSV,
    Parquet or .npz file, and `target` is a column name (of an .npz file with X and y it is y).
    """

    path: str = eqx.field(static=True)
    target: str = eqx.field(static=True)

    def __check_init__(self) -> None:
        _ = self._encoded  # report errors on construction, not in a run

    @property
    def digest(self) -> str:
        facts = Path(self.path).stat()  # ctime, since tools may restore the modification time
        return _digest(self.path, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size)

    @property
    def problem(self) -> Problem:
        """The table as read, with the decisions made."""
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
        return self._encoded.train_count

    def task(self, *, key: PRNGKeyArray) -> RowsOfTable:
        return RowsOfTable(self._encoded)


def table_rows(name: str) -> TableRows:
    """Return the family named `table.csv:y`."""
    path, _, target = name.rpartition(":")
    require(Path(path).is_file(), f"There is no file {path}.")
    return TableRows(str(Path(path).resolve()), target)


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
    train = np.setdiff1d(np.arange(len(problem)), held)
    encoder = problem.encoder().fit(problem.X[train], problem.y[train])
    order = np.concatenate([train, held])
    x, y = encoder.transform(problem.X[order]), problem.y[order]
    if problem.kind == "regression":
        mean, spread = np.mean(y[: len(train)]), np.std(y[: len(train)])
        return _EncodedRows(
            x.astype(np.float32),
            ((y - mean) / (spread or 1.0)).astype(np.float32),
            len(train),
            Outputs("reals"),
        )
    count = len(problem.classes)
    if count == 2:
        return _EncodedRows(x.astype(np.float32), (2 * y - 1).astype(np.float32), len(train), SIGNS)
    return _EncodedRows(
        x.astype(np.float32),
        np.eye(count, dtype=np.float32)[y],
        len(train),
        Outputs("classes", count),
    )
