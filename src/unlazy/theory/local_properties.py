"""Checks of the assumptions behind layerwise learning, for a circuit and an input distribution.

The checks are exact for product and generative distributions and their mixtures. From a sample,
each property holds, fails or stays open at a given confidence. A node that violates the property is
reported.

Reference: malach2019, Assumption 1 (LCA), Properties 1–3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from unlazy.core.errors import BadInput, require
from unlazy.tasks.circuits.circuit import NAMES, TABLE, Circuit
from unlazy.tasks.circuits.correlation import correlations, tables
from unlazy.tasks.circuits.distributions import InputDistribution, WeightedSample

#: Differences below this are rounding errors.
ROUNDING = 1e-10
Answer = Literal["holds", "fails", "open"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """Result of one check, with its constant (Δ or ε, if defined) and a node that violates it."""

    name: str
    answer: Answer
    constant: float | None = None
    breaker: str = ""

    def __str__(self) -> str:
        constant = "" if self.constant is None else f" (constant {self.constant:.4g})"
        return f"{self.name}: {self.answer}{constant}" + (
            f"; {self.breaker}" if self.breaker else ""
        )


def node_name(circuit: Circuit, level: int, index: int) -> str:
    """Return the name of a node, numbered as in the paper: inputs and gates of a level from 1."""
    if level == circuit.depth:
        return f"input x{index + 1}"
    return f"gate ({level}, {index + 1}) {NAMES[circuit.levels[level][index]]}"


def check_properties(
    circuit: Circuit,
    distribution: InputDistribution | WeightedSample,
    *,
    confidence: float | None = None,
) -> dict[str, Finding]:
    """Return the findings for "LCA", "Property 1", "Property 2" and "Property 3".

    With `confidence`, the examples of a sample are independent draws. A property stays open if
    simultaneous Hoeffding intervals at this level do not decide it. Without it, the distribution or
    weighted sample is treated as exact.
    """
    slack = ROUNDING
    if confidence is not None:
        if not isinstance(distribution, WeightedSample):
            raise BadInput("confidence needs a sample; an input distribution is exact.")
        require(0 < confidence < 1, f"confidence must lie in (0, 1), got {confidence}.")
        effective = 1 / float(np.sum(distribution.weights**2))
        # Each node has at most ten bounded means; a union bound over all of them.
        slack = math.sqrt(2 * math.log(2 * 10 * 2 * circuit.n / (1 - confidence)) / effective)
    joint, known = tables(circuit, distribution), correlations(circuit, distribution)
    minima = [
        (float(np.nanmin(g)), i, int(np.nanargmin(g)))
        for i, g in enumerate(known.gaps)
        if i > 0 and not np.all(np.isnan(g))
    ]
    # A constant function has no node with influence.
    margin, level, index = min(minima, default=(math.inf, 0, 0))
    uncertainty = slack if confidence is None else 2 * slack  # a gap is a difference of two means
    weak = f"{node_name(circuit, level, index)} has |c| − |E y| = {margin:.4g}"
    lca = _answer(margin, uncertainty, exact=confidence is None)
    first = [Finding("LCA", lca, margin, "" if lca == "holds" else weak)]
    first.append(
        _property1(circuit, joint, known.influence, first[0], slack, exact=confidence is None)
    )
    second = _property2(circuit, joint, slack, exact=confidence is None)
    rarest = min(
        (float(level.min()), i, int(level.argmin())) for i, level in enumerate(known.min_pattern)
    )
    third = Finding(
        "Property 3", "holds", rarest[0], f"rarest pattern at {node_name(circuit, *rarest[1:])}"
    )
    return {finding.name: finding for finding in (*first, second, third)}


def _answer(value: float, uncertainty: float, *, exact: bool) -> Answer:
    """Return whether a number is positive, up to its uncertainty."""
    if value > uncertainty:
        return "holds"
    return "fails" if exact or value < -uncertainty else "open"


def _property1(
    circuit: Circuit,
    probabilities: Sequence[np.ndarray],
    influence: Sequence[np.ndarray],
    lca: Finding,
    slack: float,
    *,
    exact: bool,
) -> Finding:
    """Check LCA, and that gates without influence are independent of the label."""
    worst, where = 0.0, ""
    positive = float(probabilities[0][:, :, 1].sum())
    for i, (table, gates) in enumerate(zip(probabilities, circuit.levels, strict=True)):
        joint = np.stack(
            [(table[:, :, 1] * (TABLE[gates] == v)).sum(axis=1) for v in (0, 1)], axis=1
        )
        total = np.stack(
            [(table.sum(axis=2) * (TABLE[gates] == v)).sum(axis=1) for v in (0, 1)], axis=1
        )
        gap = np.where(influence[i] == 0, np.abs(joint - total * positive).max(axis=1), 0.0)
        if gap.max() > worst:
            worst, where = float(gap.max()), node_name(circuit, i, int(gap.argmax()))
    if worst > 3 * slack:
        return Finding(
            "Property 1",
            "fails",
            lca.constant,
            f"{where} has no influence but is not independent of the label",
        )
    if lca.answer == "holds" and not exact and worst > 0:
        return Finding(
            "Property 1",
            "open",
            lca.constant,
            f"{where} has no influence; its independence of the label is undecided",
        )
    return Finding("Property 1", lca.answer, lca.constant, lca.breaker)


def _property2(
    circuit: Circuit, probabilities: Sequence[np.ndarray], slack: float, *, exact: bool
) -> Finding:
    """Check that a gate's pattern is independent of the label given the gate's value."""
    worst, where = 0.0, ""
    for i, (table, gates) in enumerate(zip(probabilities, circuit.levels, strict=True)):
        for value in (0, 1):
            inside = np.where((TABLE[gates] == value)[:, :, None], table, 0.0)
            total, label, pattern = inside.sum(axis=(1, 2)), inside.sum(axis=1), inside.sum(axis=2)
            gap = np.abs(
                inside * total[:, None, None] - pattern[:, :, None] * label[:, None, :]
            ).max(axis=(1, 2))
            if gap.max() > worst:
                worst, where = float(gap.max()), node_name(circuit, i, int(gap.argmax()))
    if worst > 4 * slack:
        return Finding(
            "Property 2",
            "fails",
            None,
            f"the pattern at {where} depends on the label given the gate's value",
        )
    return Finding(
        "Property 2",
        "holds" if exact else "open",
        None,
        "" if exact else f"no gate violates it by more than {4 * slack:.2g}",
    )
