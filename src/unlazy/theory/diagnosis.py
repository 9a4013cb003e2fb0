"""Local correlation as a diagnostic: does layerwise learning work on a binary dataset?

The tree behind the data is unknown and is estimated. Inputs uncorrelated with the label are
removed. Among the others, pairs are joined that behave like the two inputs of one gate: all their
information about the label and the other inputs passes through one bit. The gate is selected by its
correlation with the label. This is repeated per level until one node remains. Half of the examples
build the tree, the other half test it.

This goes beyond malach2019, which assumes that the order of the inputs is known.
"""

from __future__ import annotations

import csv
import dataclasses
import math
from pathlib import Path

import numpy as np

from unlazy.core.errors import BadInput, require, unknown
from unlazy.tasks.circuits.circuit import NAMES, TABLE

#: Maximum held-out error of a recovered tree.
MAX_ERROR = 0.05
#: Confidence of the simultaneous intervals.
CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Join:
    """Two nodes joined by a gate.

    Nodes below the number of inputs are inputs; the others are earlier joins, in order.
    """

    left: int
    right: int
    gate: int
    misfit: float


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Estimated tree and its held-out error.

    `correlations` are E[x·y] − E[x]·E[y], significant above `slack`. `error` is the error of the
    tree on held-out examples, `chance` that of the better constant.
    """

    inputs: tuple[str, ...]
    joins: tuple[Join, ...]
    set_aside: tuple[int, ...]
    correlations: np.ndarray
    mean_label: float
    slack: float
    error: float
    chance: float

    @property
    def works(self) -> bool:
        """Whether layerwise learning is predicted to work."""
        return bool(self.joins) and self.error <= min(MAX_ERROR, self.chance / 2)

    def formula(self, node: int | None = None) -> str:
        """Return the estimated tree as a nested expression."""
        if not self.joins:
            return "none"
        node = len(self.inputs) + len(self.joins) - 1 if node is None else node
        if node < len(self.inputs):
            return self.inputs[node]
        join = self.joins[node - len(self.inputs)]
        return f"{NAMES[join.gate]}({self.formula(join.left)}, {self.formula(join.right)})"


def diagnose(x: np.ndarray, y: np.ndarray, names: tuple[str, ...] | None = None) -> Diagnosis:
    """Estimate a tree from binary inputs `(examples, inputs)` and labels, ±1 or 0 and 1."""
    x, y = np.asarray(x), np.asarray(y)
    require(
        x.ndim == 2 and len(x) == len(y),
        f"x must have one row per label, got shape {x.shape} for {len(y)} labels.",
    )
    require(len(y) >= 20, f"At least 20 examples are needed, got {len(y)}.")
    for name, values in (
        *((f"input {names[j] if names else f'x{j + 1}'}", x[:, j]) for j in range(x.shape[1])),
        ("the label", y),
    ):
        distinct = np.unique(values)
        require(
            len(distinct) <= 2 and set(distinct.tolist()) <= {-1, 0, 1},
            f"{name} must take at most two of the values −1, 0 and 1, got {distinct[:4]}.",
        )
    bits, labels = x > 0, np.where(y > 0, 1.0, -1.0)
    half = len(y) // 2
    nodes, target = bits[:half].T.astype(np.int8), labels[:half]
    mean = float(target.mean())
    count = x.shape[1]
    slack = math.sqrt(2 * math.log(2 * count / (1 - CONFIDENCE)) / half)
    correlations = (2.0 * nodes - 1) @ (target - mean) / half
    kept = [j for j in range(count) if abs(correlations[j]) > slack]
    joins = _join(dict(zip(kept, nodes[kept], strict=True)), target - mean, count)
    tree = _run(bits[half:], joins) if joins else np.full(len(y) - half, mean >= 0)
    error = float(np.mean(tree != (labels[half:] > 0)))
    chance = float(min(np.mean(labels[half:] > 0), np.mean(labels[half:] < 0)))
    inputs = names or tuple(f"x{j + 1}" for j in range(count))
    aside = tuple(j for j in range(count) if j not in kept)
    return Diagnosis(inputs, joins, aside, correlations, mean, slack, error, chance)


def diagnose_file(path: Path, target: str) -> Diagnosis:
    """Diagnose a CSV file with a header; `target` names the label column."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = list(csv.reader(file)) or [[]]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as a CSV file: {error}.") from error
    if target not in header:
        raise unknown("column", target, header)
    column = header.index(target)
    for number, row in enumerate(rows, start=2):
        require(
            len(row) == len(header),
            f"Line {number} of {path} has {len(row)} values, but the header names {len(header)}.",
        )
    try:
        values = np.array(rows, float).reshape(len(rows), len(header))
    except ValueError as error:
        raise BadInput(f"{path} must contain only numbers below its header: {error}.") from error
    return diagnose(
        np.delete(values, column, axis=1),
        values[:, column],
        tuple(name for name in header if name != target),
    )


def _join(values: dict[int, np.ndarray], centered: np.ndarray, first: int) -> tuple[Join, ...]:
    """Join, level by level, the pairs that best fit the inputs of one gate.

    `centered` is the label minus its mean. An unpaired node moves up one level.
    """
    joins: list[Join] = []
    while len(values) > 1:
        alive = sorted(values)
        others = np.array([values[node] for node in alive] + [centered > 0], float)
        others -= others.mean(axis=1, keepdims=True)
        others /= np.maximum(others.std(axis=1, keepdims=True), 1e-12)
        scores = {
            (alive[i], alive[j]): _misfit(
                2 * values[alive[i]] + values[alive[j]], np.delete(others, (i, j), axis=0)
            )
            for i in range(len(alive))
            for j in range(i + 1, len(alive))
        }
        above: dict[int, np.ndarray] = {}
        for (one, two), misfit in sorted(scores.items(), key=lambda entry: entry[1]):
            if one in values and two in values:
                pattern = 2 * values.pop(one) + values.pop(two)
                gate = int(((np.bincount(pattern, centered, 4) > 0) << np.arange(4)).sum())
                above[first + len(joins)] = TABLE[gate][pattern].astype(np.int8)
                joins.append(Join(one, two, gate, misfit))
        values = above | values
    return tuple(joins)


def _misfit(pattern: np.ndarray, others: np.ndarray) -> float:
    """Return the dependence between two nodes and all others beyond one bit, relative to noise.

    Given the value of their gate, its two inputs are independent of the rest (Property 2). So the
    means of the others given the pattern take two values, one per value of the gate. The misfit is
    the remaining between-pattern variance for the best split into two, divided by that expected of
    noise.
    """
    counts = np.bincount(pattern, minlength=4)
    sums = np.stack([np.bincount(pattern, row, 4) for row in others], axis=1)  # pattern, other
    total = _spread(sums, counts)
    left = min(
        total - _spread(_grouped(sums, gate), _grouped(counts, gate)) for gate in range(1, 8)
    )
    return float(left / (2 * len(others)))


def _spread(sums: np.ndarray, counts: np.ndarray) -> float:
    """Return Σ n_p·mean_p² over the groups that occur."""
    return float(np.sum(sums**2 / np.maximum(counts, 1)[:, None]))


def _grouped(rows: np.ndarray, gate: int) -> np.ndarray:
    """Return sums over the patterns that a gate maps to 0 and to 1."""
    return np.stack([rows[TABLE[gate] == value].sum(axis=0) for value in (0, 1)])


def _run(bits: np.ndarray, joins: tuple[Join, ...]) -> np.ndarray:
    """Return the output of the tree."""
    values = {j: bits[:, j].astype(np.int8) for j in range(bits.shape[1])}
    node = bits.shape[1]
    for join in joins:
        values[node] = TABLE[join.gate][2 * values[join.left] + values[join.right]].astype(np.int8)
        node += 1
    return values[node - 1] > 0
