"""A scaling study: sample sizes of several learners on one task over a row of dimensions, their exponents, and where they cross."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unlazy.core.errors import BadInput, require, unknown
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NNGP, NTK
from unlazy.lab.power_laws import PowerLaw, crossing, fit
from unlazy.lab.trials import Measurement, Record
from unlazy.learners.base import Learner
from unlazy.learners.gradient import GradientDescent
from unlazy.papers.glasgow2023.sample_size import Contender, KernelRidge, Online, SampleSizes, Stream
from unlazy.tasks.base import Family
from unlazy.tasks.multi_index import MultiIndex

CONTENDERS: dict[str, Contender] = {
    "sgd": Online(),
    "sgd-frozen": Online(freeze_second=True),
    "sgd-bias": Online(bias=True, expected=128),
    "ntk": KernelRidge(NTK()),
    "ntk-deep": KernelRidge(NTK(depth=2)),
    "nngp": KernelRidge(NNGP()),
    "quadratic": KernelRidge(Polynomial(2, 0.0)),
}
#: Kernels are run as far as they need so many examples, and only predicted beyond.
MOST_EXAMPLES = 5_000


def contender(name: str, named: Mapping[str, Learner]) -> Contender:
    """A contender by name: one of `CONTENDERS`, or a named learner on fresh minibatches, whose settings are the same in every dimension."""
    if name in CONTENDERS:
        return CONTENDERS[name]
    if name not in named:
        raise unknown("learner", name, [*CONTENDERS, *named])
    learner = named[name]
    require(isinstance(learner, GradientDescent), f"{name} is no learner on fresh minibatches. Known: {', '.join(CONTENDERS)}.")
    assert isinstance(learner, GradientDescent)
    return Stream(learner)


def dimensions(text: str) -> tuple[int, ...]:
    """`d=32..256` (every doubling) or `d=16,24,32` as numbers."""
    found = re.fullmatch(r"d=(?:(\d+)\.\.(\d+)|(\d+(?:,\d+)*))", text.replace(" ", ""))
    if not found:
        raise BadInput(f"--vary takes d=FIRST..LAST, which doubles, or a list such as d=16,24,32, but got {text!r}.")
    if found[3]:
        row = tuple(sorted({int(part) for part in found[3].split(",")}))
    else:
        first, last = int(found[1]), int(found[2])
        require(0 < first <= last, f"--vary goes from a smaller to a larger dimension, but got {text!r}.")
        row = tuple(first << i for i in range(int(math.log2(last / first)) + 1))
    require(row[0] > 2, f"Dimensions must be greater than 2, but the least is {row[0]}.")
    return row


@dataclasses.dataclass(frozen=True)
class Row:
    """A contender, the dimensions in which it is run, and those for which theory alone speaks."""

    name: str
    contender: Contender
    run: tuple[int, ...]
    predicted: dict[int, float]


@dataclasses.dataclass(frozen=True)
class Scaling:
    """The study: one measurement for each contender, dimension and seed, so that a stopped run goes on where it was."""

    family: MultiIndex
    target: float
    test: int
    rows: tuple[Row, ...]

    def measurement(self, row: Row, d: int, seed: int) -> Measurement:
        """One sample size."""
        precision = 64 if isinstance(row.contender, KernelRidge) else 32
        family = dataclasses.replace(self.family, d=d)
        experiment = SampleSizes(family, row.contender, (d,), target=self.target, test=self.test, precision=precision)  # type: ignore[arg-type]
        return Measurement(experiment, seed)

    def measurements(self, seeds: Sequence[int]) -> list[Measurement]:
        """All of them, small dimensions first."""
        places = sorted((d, index) for index, row in enumerate(self.rows) for d in row.run)
        return [self.measurement(self.rows[index], d, seed) for d, index in places for seed in seeds]


def lay_out(
    family: Family, contenders: Mapping[str, Contender], row: tuple[int, ...], *, target: float = 0.05, test: int = 4096
) -> Scaling:
    """Decide what is run. A kernel that theory predicts is run up to `MOST_EXAMPLES`, with dimensions between the doublings put in."""
    if not isinstance(family, MultiIndex):
        raise BadInput("Sample sizes are measured on tasks with hidden coordinates (MultiIndex), whose dimension can vary.")
    require(0 < target < 0.5, f"The target error must lie between 0 and ½, but is {target}.")
    k = max(3, 1 + max(j for _, subset in family.polynomial for j in subset))
    require(row[0] >= k, f"This task needs at least {k} dimensions, but {row[0]} were asked for.")
    rows = []
    for name, each in contenders.items():
        if isinstance(each, KernelRidge) and each.predicted(dataclasses.replace(family, d=row[0]), target) is not None:
            between = {d * 3 // 2 for d in row[:-1]} if len(row) > 1 else set()
            every = sorted({*row, *between})
            expected = {d: each.predicted(dataclasses.replace(family, d=d), target) or math.inf for d in every}
            run = tuple(d for d in every if expected[d] <= MOST_EXAMPLES)
            rows.append(Row(name, each, run, expected))
        else:
            rows.append(Row(name, each, row, {}))
    return Scaling(family, target, test, tuple(rows))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a contender needed: one row of sample sizes a seed, and the fitted power law (None with one dimension)."""

    row: Row
    samples: np.ndarray
    law: PowerLaw | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        law = {} if self.law is None else dataclasses.asdict(self.law)
        return {
            "learner": self.row.name,
            "dimensions": list(self.row.run),
            "samples": [[round(float(n), 3) for n in line] for line in self.samples],
            "predicted": {str(d): round(n, 3) for d, n in self.row.predicted.items()},
            **{name: list(value) if isinstance(value, tuple) else value for name, value in law.items()},
        }


def outcomes(study: Scaling, seeds: Sequence[int], records: Mapping[str, Record]) -> list[Outcome]:
    """Gather records by contender and fit."""
    found = []
    for row in study.rows:
        keys = [[study.measurement(row, d, seed).key for d in row.run] for seed in seeds]
        samples = np.array([[records[key].value("samples") for key in line] for line in keys]).reshape(len(seeds), len(row.run))
        found.append(Outcome(row, samples, fit(np.array(row.run, float), samples) if len(row.run) > 1 else None))
    return found


def crossings(found: Sequence[Outcome]) -> dict[tuple[str, str], float]:
    """For each pair, the dimension above which the first needs fewer examples, where it was measured."""
    result = {}
    for one, other in itertools.permutations(found, 2):
        if one.law is not None and other.law is not None:
            rows = [(np.array(each.row.run, float), np.exp(np.mean(np.log(each.samples), axis=0))) for each in (one, other)]
            place = crossing(*rows[0], *rows[1])
            if place is not None:
                result[one.row.name, other.row.name] = place
    return result
