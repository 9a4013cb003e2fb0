"""Learners of the experiments: three architectures, trained fully, in part, or linearized."""

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
#: Ridge parameters of the linear problems.
RIDGES = tuple(10.0 ** (power / 2) for power in range(-6, 6))
#: Learning rate and weight decay, as in common libraries: v ← momentum·v + ∇ + decay·p, then
#: p ← p − rate·v.
Cell = tuple[float, float]


def grid(rates: tuple[float, ...], decays: tuple[float, ...]) -> tuple[Cell, ...]:
    """Return all pairs of learning rate and decay."""
    return tuple(itertools.product(rates, decays))


def initial(architecture: Architecture, m: int) -> Init:
    """Return the initialization of Section 8.1: all entries and biases from N(0, 1/m).

    Deviation: the paper prints mean 1 (see the errata).
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
    """Return the trained parameter groups, with or without the last layer."""
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
    """Return SGD with momentum 0.9 on minibatches for ½‖out − y‖².

    The learning rate drops to a tenth after half of the steps. `record`: epochs to record.
    """
    rate, decay = cell
    groups = trained_groups(architecture, trained)
    steps_per_epoch = n // batch
    descent = Descent(
        dict.fromkeys(groups, rate),
        steps=epochs * steps_per_epoch,
        batch=batch,
        loss="squared",
        # `Descent` penalizes λ‖p‖², so λ is half of the weight decay.
        decay=dict.fromkeys(groups, decay / 2),
        momentum=0.9,
        drop=0.5,
    )
    return GradientDescent(
        initial(architecture, m),
        (descent,),
        record=tuple(epoch * steps_per_epoch for epoch in record),
    )


def error_probes(test: int, validation: int) -> tuple[Probe, ...]:
    """Return probes of the test error and of the validation error, which selects settings."""
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
    """Return a grid of learning rates and decays; the validation error selects a setting."""
    return Chosen(
        {
            cell: Arm(family, momentum_sgd(architecture, trained, m, n, cell, epochs), n, probes)
            for cell in cells
        }
    )


def chosen_linear(
    family: Family,
    architecture: Architecture,
    features: Literal["last", "NTK"],
    m: int,
    n: int,
    probes: tuple[Probe, ...],
) -> Chosen:
    """Return a linear problem for all decays; the validation error selects one."""
    kind = LastLayerRidge if features == "last" else TangentRidge
    return Chosen(
        {features: Arm(family, kind(initial(architecture, m), RIDGES), n, probes)}, along=True
    )


class Level(ExactComputation):
    """Constant error at all values of an axis, drawn as a line."""

    value: float = eqx.field(converter=float)
    grid: tuple[int, ...] = eqx.field(static=True, metadata={"key": "places"})

    axis = "grid"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        return {"test_squared_error": np.full(len(self.grid), self.value)}
