"""Rotation-invariant learners with fewer examples than any of them can learn XOR from.

Reference: glasgow2023, Proposition F.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NTK
from unlazy.lab.arms import Arm, Comparison, Row
from unlazy.lab.trials import Record
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.prefixes import PrefixRidge
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.gradients import rotation_invariant_bound
from unlazy.papers.glasgow2023.probes import ErrorRate
from unlazy.tasks.multi_index import MultiIndex

#: Far below the kernels' eigenvalues, in units of k(x, x).
RIDGE = 1e-4
WIDTH, STEP = 64, 0.5


def below_the_bound(dimensions: tuple[int, ...], *, test: int, length: int) -> Row:
    """With n = ⌊d/log² d⌋ examples, for each dimension: `bound`, `samples` = n, and the errors of two kernels and of SGD.

    SGD trains both layers on its n examples, all at once, for `length` steps.
    """

    def at(d: int) -> Comparison:
        n, bound = rotation_invariant_bound(d)
        stage = Descent({"w": 2 * STEP * WIDTH, "a": 2 * STEP / WIDTH}, steps=length, loss="logistic")
        learners = {
            "ntk": PrefixRidge(NTK(), RIDGE, sizes=(n,)),
            "quadratic": PrefixRidge(Polynomial(2, 0.0), RIDGE, sizes=(n,)),
            "sgd": GradientDescent(SphereInit(p=WIDTH, radius=0.3), (stage,)),
        }

        def measure(records: Mapping[str, Record]) -> Mapping[str, float]:
            return {f"{name}_error": record.value("error") for name, record in records.items()} | {"bound": bound, "samples": float(n)}

        return Comparison({name: Arm(MultiIndex(d=d), each, n, (ErrorRate(test),)) for name, each in learners.items()}, measure)

    return Row({d: at(d) for d in dimensions})
