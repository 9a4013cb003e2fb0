"""The experiments' learners: three architectures, trained in all layers or in the hidden ones, or
linear in what is trained.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.arms import Arm, Chosen
from unlazy.lab.trials import ExactComputation
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.tangent import LastLayerRidge, TangentRidge
from unlazy.networks.base import Init
from unlazy.networks.inits import PlainInit, ResNetInit
from unlazy.networks.residual import ALL, HIDDEN
from unlazy.probes.base import Probe
from unlazy.probes.performance import Performance, Validation
from unlazy.tasks.base import Family

Architecture = Literal["3resnet", "3layer", "2layer"]
Trained = Literal["all", "hidden"]
#: Which decays a linear problem is solved for: from next to none to far too much.
RIDGES = tuple(10.0 ** (power / 2) for power in range(-6, 6))
#: Step size and weight decay of a cell of a grid, as the usual library counts them: p ← p −
#: rate·(momentum of ∇ + decay·p).
Cell = tuple[float, float]


def grid(rates: tuple[float, ...], decays: tuple[float, ...]) -> tuple[Cell, ...]:
    """All pairs."""
    return tuple(itertools.product(rates, decays))


def initial(architecture: Architecture, m: int) -> Init:
    """Section 8.1: all entries, biases among them, from N(0, 1/m).

    Without the mean 1 that is printed there (see the errata).
    """
    scale = m**-0.5
    if architecture == "2layer":
        return PlainInit(m=m, w_scale=scale, b_scale=scale, a_scale=scale)
    skip = architecture == "3resnet"
    return ResNetInit(
        m=m,
        w_scale=scale,
        b_scale=scale,
        v_scale=scale,
        e_scale=scale,
        a_scale=scale,
        skip=skip,
        bottleneck=skip,
    )


def trained_groups(architecture: Architecture, trained: Trained) -> tuple[str, ...]:
    """The parameter groups that are trained: the last layer among them, or the hidden layers
    alone.
    """
    if architecture == "2layer":
        return ("w", "b", "a") if trained == "all" else ("w", "b")
    return ALL if trained == "all" else HIDDEN


def momentum_sgd(
    architecture: Architecture,
    trained: Trained,
    m: int,
    n: int,
    cell: Cell,
    epochs: int,
    *,
    batch: int = 50,
    record: tuple[int, ...] = (),
) -> GradientDescent:
    """SGD with momentum 0.9 on minibatches of 50 for ½‖out − y‖², a tenth of the step size in the
    second half. `record`: epochs.
    """
    rate, decay = cell
    groups = trained_groups(architecture, trained)
    each = n // batch
    descent = Descent(
        dict.fromkeys(groups, rate),
        steps=epochs * each,
        batch=batch,
        loss="squared",
        # The penalty is λ‖p‖² here: λ is half of what is added as decay·p to the gradient.
        decay=dict.fromkeys(groups, decay / 2),
        momentum=0.9,
        drop=0.5,
    )
    return GradientDescent(
        initial(architecture, m), (descent,), record=tuple(epoch * each for epoch in record)
    )


def looks(test: int, validation: int) -> tuple[Probe, ...]:
    """The test error, and the error by which settings are chosen."""
    return (Performance(test), Validation(validation))


def chosen_sgd(
    family: Family,
    architecture: Architecture,
    trained: Trained,
    m: int,
    n: int,
    cells: tuple[Cell, ...],
    epochs: int,
    probes: tuple[Probe, ...],
) -> Chosen:
    """A grid of step sizes and decays, of which the validation error chooses."""
    return Chosen(
        {
            cell: Arm(family, momentum_sgd(architecture, trained, m, n, cell, epochs), n, probes)
            for cell in cells
        }
    )


def chosen_linear(
    family: Family,
    architecture: Architecture,
    what: Literal["last", "NTK"],
    m: int,
    n: int,
    probes: tuple[Probe, ...],
) -> Chosen:
    """The linear problem along a path of decays, of which the validation error chooses."""
    kind = LastLayerRidge if what == "last" else TangentRidge
    return Chosen(
        {what: Arm(family, kind(initial(architecture, m), RIDGES), n, probes)}, along=True
    )


class Level(ExactComputation):
    """A line to be drawn: one error at all places of an axis."""

    value: float = eqx.field(converter=float)
    places: tuple[int, ...] = eqx.field(static=True)

    axis = "places"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        return {"test_squared_error": np.full(len(self.places), self.value)}
