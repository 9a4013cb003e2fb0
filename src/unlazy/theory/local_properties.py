"""Which of the assumptions behind layerwise learning hold for a circuit and a law, and which gate
breaks them.

Exact for product and generative laws and their mixtures; from a sample, each statement holds, fails
or stays open with confidence.

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

#: Differences below this are rounding of exact numbers.
ROUNDING = 1e-10
Answer = Literal["holds", "fails", "open"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """Whether an assumption holds, with its constant (Δ or ε, where it has one) and a node that
    breaks it.
    """

    name: str
    answer: Answer
    constant: float | None = None
    breaker: str = ""

    def __str__(self) -> str:
        constant = "" if self.constant is None else f" (constant {self.constant:.4g})"
        return f"{self.name}: {self.answer}{constant}" + (
            f"; {self.breaker}" if self.breaker else ""
        )


def node_name(circuit: Circuit, level: int, place: int) -> str:
    """A node in words, counted as the paper does: inputs from 1, gates as (level, place)."""
    if level == circuit.depth:
        return f"input x{place + 1}"
    return f"gate ({level}, {place + 1}) {NAMES[circuit.levels[level][place]]}"


def check_properties(
    circuit: Circuit,
    distribution: InputDistribution | WeightedSample,
    *,
    confidence: float | None = None,
) -> dict[str, Finding]:
    """Answers for "LCA", "Property 1", "Property 2", "Property 3".

    `confidence` takes the examples of a sample for independent draws and leaves a statement open
    where simultaneous Hoeffding intervals at this level do not decide it; without it the law or
    weighted sample is taken for the distribution itself.
    """
    slack = ROUNDING
    if confidence is not None:
        if not isinstance(distribution, WeightedSample):
            raise BadInput("Intervals belong to a sample; a law is exact.")
        require(0 < confidence < 1, f"confidence lies in (0, 1), but is {confidence}.")
        effective = 1 / float(np.sum(distribution.weights**2))
        # Each node has at most ten bounded means; a union bound over all of them.
        slack = math.sqrt(2 * math.log(2 * 10 * 2 * circuit.n / (1 - confidence)) / effective)
    found, known = tables(circuit, distribution), correlations(circuit, distribution)
    gaps = known.gaps
    least = [
        (float(np.nanmin(g)), i, int(np.nanargmin(g)))
        for i, g in enumerate(gaps)
        if i > 0 and not np.all(np.isnan(g))
    ]
    margin, level, place = min(
        least, default=(math.inf, 0, 0)
    )  # a constant function has no influencing node
    doubt = slack if confidence is None else 2 * slack  # a gap is a difference of two means
    weak = f"{node_name(circuit, level, place)} has |c| − |E y| = {margin:.4g}"
    lca = _answer(margin, doubt, exact=confidence is None)
    first = [Finding("LCA", lca, margin, "" if lca == "holds" else weak)]
    first.append(
        _property1(circuit, found, known.influence, first[0], slack, exact=confidence is None)
    )
    second = _property2(circuit, found, slack, exact=confidence is None)
    rarest = min(
        (float(level.min()), i, int(level.argmin())) for i, level in enumerate(known.min_pattern)
    )
    third = Finding(
        "Property 3", "holds", rarest[0], f"rarest pattern at {node_name(circuit, *rarest[1:])}"
    )
    return {finding.name: finding for finding in (*first, second, third)}


def _answer(value: float, doubt: float, *, exact: bool) -> Answer:
    """Whether a number is positive."""
    if value > doubt:
        return "holds"
    return "fails" if exact or value < -doubt else "open"


def _property1(
    circuit: Circuit,
    found: Sequence[np.ndarray],
    influence: Sequence[np.ndarray],
    lca: Finding,
    slack: float,
    *,
    exact: bool,
) -> Finding:
    """LCA, and gates without influence independent of the label."""
    worst, where = 0.0, ""
    positive = float(found[0][:, :, 1].sum())
    for i, (table, gates) in enumerate(zip(found, circuit.levels, strict=True)):
        joint = np.stack(
            [(table[:, :, 1] * (TABLE[gates] == v)).sum(axis=1) for v in (0, 1)], axis=1
        )
        total = np.stack(
            [(table.sum(axis=2) * (TABLE[gates] == v)).sum(axis=1) for v in (0, 1)], axis=1
        )
        apart = np.where(influence[i] == 0, np.abs(joint - total * positive).max(axis=1), 0.0)
        if apart.max() > worst:
            worst, where = float(apart.max()), node_name(circuit, i, int(apart.argmax()))
    if worst > 3 * slack:
        return Finding(
            "Property 1",
            "fails",
            lca.constant,
            f"{where} has no influence but depends on the label",
        )
    if lca.answer == "holds" and not exact and worst > 0:
        return Finding(
            "Property 1",
            "open",
            lca.constant,
            f"{where} has no influence; its independence of the label is not certain",
        )
    return Finding("Property 1", lca.answer, lca.constant, lca.breaker)


def _property2(
    circuit: Circuit, found: Sequence[np.ndarray], slack: float, *, exact: bool
) -> Finding:
    """Given a gate's value, its pattern is independent of the label."""
    worst, where = 0.0, ""
    for i, (table, gates) in enumerate(zip(found, circuit.levels, strict=True)):
        for value in (0, 1):
            inside = np.where((TABLE[gates] == value)[:, :, None], table, 0.0)
            total, label, pattern = inside.sum(axis=(1, 2)), inside.sum(axis=1), inside.sum(axis=2)
            apart = np.abs(
                inside * total[:, None, None] - pattern[:, :, None] * label[:, None, :]
            ).max(axis=(1, 2))
            if apart.max() > worst:
                worst, where = float(apart.max()), node_name(circuit, i, int(apart.argmax()))
    if worst > 4 * slack:
        return Finding(
            "Property 2",
            "fails",
            None,
            f"the pattern at {where} tells of the label beyond the gate's value",
        )
    return Finding(
        "Property 2",
        "holds" if exact else "open",
        None,
        "" if exact else f"no gate breaks it beyond {4 * slack:.2g}",
    )
