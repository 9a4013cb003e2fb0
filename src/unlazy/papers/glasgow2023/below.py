"""Rotation-invariant learners with fewer examples than the lower bound of Proposition F.1.

Reference: glasgow2023, Proposition F.1.
"""

from __future__ import annotations

from typing import Literal

from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NTK
from unlazy.lab.arms import Arm, Row
from unlazy.learners.base import Learner
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.learning_curves import PrefixRidge
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.gradients import rotation_invariant_bound
from unlazy.papers.glasgow2023.invariance import SeenOnInputs
from unlazy.papers.glasgow2023.probes import ErrorRate
from unlazy.tasks.multi_index import MultiIndex

#: Ridge in units of k(x, x), far below the kernels' eigenvalues.
RIDGE = 1e-4
WIDTH, STEP = 64, 0.5


def below_the_bound(
    name: Literal["ntk", "quadratic", "sgd"], dimensions: tuple[int, ...], *, test: int, length: int
) -> Row:
    """Return a learner with n = ⌊d/log² d⌋ examples, for each dimension.

    SGD trains both layers with full batches of the n examples, for `length` steps.
    """

    def at(d: int) -> Arm:
        n = rotation_invariant_bound(d).samples
        stage = Descent(
            {"w": 2 * STEP * WIDTH, "a": 2 * STEP / WIDTH}, steps=length, loss="logistic"
        )
        learners: dict[str, Learner] = {
            "ntk": PrefixRidge(NTK(), RIDGE, sizes=(n,)),
            "quadratic": PrefixRidge(Polynomial(2, 0.0), RIDGE, sizes=(n,)),
            "sgd": GradientDescent(SphereInit(p=WIDTH, radius=0.3), (stage,)),
        }
        return Arm(SeenOnInputs(MultiIndex(d=d)), learners[name], n, (ErrorRate(test),))

    return Row({d: at(d) for d in dimensions})
