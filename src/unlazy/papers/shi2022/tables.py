"""Tables 2 to 5: interval labels, and Table 1 with another input dimension, class balance or number of examples.

The data of Tables 3 to 5 are one family whose structure and class balance are numbers, so that the network with and without input structure,
and all class balances, run in the same compiled programs.

Reference: shi2022, Appendix E.1.2 and E.2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from unlazy.lab.judging import Arm, Check, Claim, Published, Quantity, Scale
from unlazy.learners.emergence import TwoStep
from unlazy.papers.shi2022.table1 import PARITY, TABLE1, Size, curve_steps, practical, printed
from unlazy.probes import Accuracy, Alignment, Silhouette
from unlazy.tasks.balance import BalancedParity
from unlazy.tasks.base import Family
from unlazy.tasks.dictionary import ProductPatterns, interval

#: The six columns of every table.
METHODS = ("Network", "NTK", "RF", "One Step", "Two Step", "Network w/o structure")


def contest(size: Size, schedule: TwoStep, structured: Family, unstructured: Family, note: str = "") -> dict[str, Arm]:
    """The six methods of a table; `note` is put behind their names."""
    steps = curve_steps(size.T)
    learners = {
        "Network": schedule.network(steps),
        "NTK": schedule.tangent(steps),
        "RF": schedule.random_features(steps),
        "One Step": schedule.frozen(1, steps),
        "Two Step": schedule.frozen(2, steps),
        "Network w/o structure": schedule.network(steps),
    }
    measure = (Accuracy(size.test), Alignment())
    return {
        name + note: Arm(
            unstructured if "w/o" in name else structured,
            learner,
            size.n,
            (*measure, Silhouette()) if name.startswith("Network") else measure,
        )
        for name, learner in learners.items()
    }


def published(rows: Mapping[str, tuple[float | None, ...]], note: str = "") -> tuple[Published, ...]:
    """The printed rows of a table, one value for each of `METHODS`."""
    tolerance = {"test_accuracy": 3.0, "train_accuracy": 3.0, "cosine": 0.05}
    return tuple(
        value
        for measure, row in rows.items()
        for value in printed(measure, tolerance[measure], {m + note: v for m, v in zip(METHODS, row, strict=True) if v is not None})
    )


def parity_contest(size: Size, note: str, *, negative: float = 0.5) -> dict[str, Arm]:
    """The six methods on the data of Table 1, with another class balance."""
    family = BalancedParity(d=size.d, D=size.D, k=size.k, structure=0.5, negative=negative)
    return contest(size, practical(size), family, dataclasses.replace(family, structure=0.0), note)


INTERVAL: dict[Scale, Size] = {
    "smoke": Size(d=24, D=16, k=6, m=16, T=40, n=1_000, batch=100, test=500, neurons=16),
    "laptop": Size(d=500, D=100, k=30, m=100, T=200, n=20_000, batch=1_000, test=10_000, neurons=200),
    "paper": Size(d=500, D=100, k=30, m=100, T=200, n=50_000, batch=1_000, test=10_000, neurons=200),
}


def interval_task(size: Size, p: float = 2 / 3) -> ProductPatterns:
    """Independent patterns; the label says whether at least two thirds of the relevant ones are present. p = 1/2: no input structure."""
    return ProductPatterns(d=size.d, D=size.D, k=size.k, P=interval(size.k, 2 * size.k // 3, size.k), p=p, po=0.5)


def table2(scale: Scale) -> dict[str, Arm]:
    """The six methods on interval labels."""
    size = INTERVAL[scale]
    moments = interval_task(size).moments
    schedule = TwoStep.practical(
        k=size.k, m=size.m, T=size.T, gamma=float(moments.gamma), sigma=float(moments.sigma), batch=size.batch
    )
    schedule = dataclasses.replace(schedule, tangent_rate=300 / size.m)
    return contest(size, schedule, interval_task(size), interval_task(size, p=0.5))


def table3(scale: Scale) -> dict[str, Arm]:
    """Table 1 with inputs of d = 100 and d = 2000 dimensions."""
    small, large = {"smoke": (12, 48), "laptop": (100, 2000), "paper": (100, 2000)}[scale]
    size = PARITY[scale]
    return parity_contest(size._replace(d=small), ", d=100") | parity_contest(size._replace(d=large), ", d=2000")


def table4(scale: Scale) -> dict[str, Arm]:
    """Table 1 with 80 % and 90 % of the examples in the negative class."""
    return parity_contest(PARITY[scale], ", 0.8", negative=0.8) | parity_contest(PARITY[scale], ", 0.9", negative=0.9)


def table5(scale: Scale) -> dict[str, Arm]:
    """Table 1 with 25,000 examples, and with 10,000 examples and fewer neurons."""
    size = PARITY[scale]
    large = {"smoke": 500, "laptop": 25_000, "paper": 25_000}[scale]
    small = size._replace(n=400, m=8) if scale == "smoke" else size._replace(n=10_000, m=50)
    return parity_contest(size._replace(n=large), ", n=25k") | parity_contest(small, ", n=10k")

TABLES = ()
