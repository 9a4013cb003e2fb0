"""Claims on clusters of neurons: labels by hidden representation, and Gaussian mixtures.

Reference: shi2022, Appendix E.3.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.arms import Arm, StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.readings import Reading
from unlazy.lab.rules import Control, Scale, arm, arms, shuffled
from unlazy.lab.trials import ExactComputation
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.base import Init
from unlazy.networks.inits import AntisymmetricInit, PlainInit
from unlazy.papers.shi2022.gradients import generator
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.papers.shi2022.table1 import Size, curve_steps
from unlazy.probes.neurons import Alignment, Clusters, SecondLayerSigns, Silhouette
from unlazy.probes.performance import Performance
from unlazy.tasks.dictionary.codes import HiddenRepresentations
from unlazy.tasks.gaussians import CubeGaussians

REPRESENTATIONS: dict[Scale, Size] = {
    "smoke": Size(d=24, D=16, k=8, m=8, T=20, n=500, batch=100, test=200),
    "laptop": Size(d=500, D=250, k=50, m=50, T=200, n=20_000, batch=1_000, test=5_000),
    "paper": Size(d=500, D=250, k=50, m=300, T=600, n=50_000, batch=1_000, test=10_000),
}


def representation_task(size: Size) -> HiddenRepresentations:
    """Return hidden representations with k codes per label."""
    return HiddenRepresentations(d=size.d, D=size.D, k=size.k, codes=size.k)


def figure15(scale: Scale) -> dict[str, Arm]:
    """Return the network with the practical schedule of Table 1."""
    size = REPRESENTATIONS[scale]
    schedule = TwoStep.practical(
        k=size.k, m=size.m, T=size.T, gamma=0.25, sigma=(size.D / 4) ** 0.5, batch=size.batch
    )
    probes = (Performance(size.test), Alignment(), Clusters(0.9, opposites=True), Silhouette())
    return {
        "Network": Arm(
            representation_task(size), schedule.network(curve_steps(size.T)), size.n, probes
        )
    }


net = arm("Network")
FIGURE15 = Claim(
    id="shi2022/figure15",
    where="Figure 15 (Appendix E.3.1)",
    kind="figure",
    statement=(
        "With 50 random hidden vectors per label, features are learned as on the data of Table 1: "
        "the first two steps update the weights to form clusters."
    ),
    study=figure15,
    checks=(net.clustered[1] - net.clustered[0] >= 0.9, net.clustered[2] - net.clustered[0] >= 0.9),
    control=shuffled(figure15),
    seeds={"smoke": 1, "laptop": 6, "paper": 6},
    plots=(
        Plot(
            title="Neurons in the clusters",
            x="gradient step",
            y="fraction of neurons with |cosine| ≥ 0.9",
            series=(PlotLine("Network", "clustered", "clustered"),),
        ),
    ),
    **notes("shi2022/figure15"),
)


class GaussianExperiment(NamedTuple):
    """Dimension d, k and spread of an experiment (Table 6), and its epochs (Figure 16)."""

    d: int
    k: int
    spread: float
    epochs: tuple[int, int]


EXPERIMENTS = {
    "Experiment 1": GaussianExperiment(100, 4, 1.0, (50, 80)),
    "Experiment 2": GaussianExperiment(25, 4, 0.7, (30, 50)),
    "Experiment 3": GaussianExperiment(100, 5, 1.0, (50, 80)),
}
#: Initial weights: independent neurons with the default standard deviations of common libraries,
#: 1/√(3·fan-in); the same in antisymmetric pairs; antisymmetric pairs with small weights.
Initial = Literal["library", "pairs", "small"]

#: Training settings that the text allows: name -> (reason, keyword arguments of `table6`).
TABLE6_SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "adam": (
        "typical practice: Adam with its default step size, library initialization, printed epochs",
        {},
    ),
    "adam-0.003": ("as adam; the step size is not printed", {"rate": 0.003}),
    "adam-0.01": ("as adam; the step size is not printed", {"rate": 0.01}),
    "momentum-0.01": (
        "SGD with momentum 0.95 is the traditional training method of Appendix E.4; step size 0.01 "
        "is the default of Keras",
        {"optimizer": "sgd", "momentum": 0.95, "rate": 0.01},
    ),
    "momentum-0.1": (
        "as momentum-0.01, with the usual first choice of a step size for SGD",
        {"optimizer": "sgd", "momentum": 0.95, "rate": 0.1},
    ),
    "sgd-0.1": ("plain SGD; the optimizer is not printed", {"optimizer": "sgd", "rate": 0.1}),
    "sgd-1": ("plain SGD with step size 1", {"optimizer": "sgd", "rate": 1.0}),
    "pairs": (
        "SGD with step size 1 from antisymmetric pairs as in Section 3.1, for 10 epochs",
        {"optimizer": "sgd", "rate": 1.0, "epochs": 10, "initial": "pairs"},
    ),
    "small": (
        "SGD with step size 1 from small antisymmetric pairs, for 10 epochs",
        {"optimizer": "sgd", "rate": 1.0, "epochs": 10, "initial": "small"},
    ),
}


def _initial(start: Initial, d: int, m: int) -> Init:
    """Return an initialization of m neurons in d dimensions."""
    w, a = 1 / math.sqrt(3 * d), 1 / math.sqrt(3 * m)
    if start == "library":
        return PlainInit(m=m, w_scale=w, b_scale=w, a_scale=a)
    if start == "small":
        w, a = 0.001, 0.03
    return AntisymmetricInit(m=m // 2, w_scale=w, b_scale=w, a_scale=a, activation="relu")


def table6(
    scale: Scale,
    *,
    optimizer: Literal["sgd", "adam"] = "adam",
    rate: float = 0.001,
    momentum: float | None = None,
    epochs: int | None = None,
    initial: Initial = "library",
) -> dict[str, Arm]:
    """Return the three mixtures; `epochs` = None trains for the printed number of epochs."""
    m, n, batch, test = {
        "smoke": (40, 500, 100, 500),
        "laptop": (800, 10_000, 250, 5_000),
        "paper": (800, 10_000, 250, 5_000),
    }[scale]
    groups = ("w", "b", "a", "c") if initial == "library" else ("w", "b", "a")
    probes = (
        Performance(test, "logistic"),
        Alignment(),
        Clusters(0.9),
        SecondLayerSigns(0.9),
        Silhouette(),
    )
    arms = {}
    for name, mixture in EXPERIMENTS.items():
        steps = (mixture.epochs[-1] if epochs is None else epochs) * n // batch
        printed = (e * n // batch for e in mixture.epochs if epochs is None)
        early = (round(steps * fraction) for fraction in (0.05, 0.1, 0.2, 0.5))
        descent = Descent(
            {group: rate for group in groups},
            steps=steps,
            batch=batch,
            loss="logistic",
            optimizer=optimizer,
            momentum=momentum,
        )
        arms[name] = Arm(
            CubeGaussians(d=mixture.d, k=mixture.k, spread=mixture.spread),
            GradientDescent(
                _initial(initial, mixture.d, m),
                (descent,),
                record=tuple(sorted({0, *early, *printed})),
            ),
            n,
            probes,
        )
    return arms


def table6_small(scale: Scale) -> dict[str, Arm]:
    """Return the three mixtures with small initial weights."""
    epochs = {"smoke": 8, "laptop": 10, "paper": 20}[scale]
    return table6(scale, **TABLE6_SETTINGS["small"][1] | {"epochs": epochs})


_MIXTURE = (
    "On mixtures of 16, 16 and 32 Gaussians at the vertices of a cube with parity labels, some "
    "neurons of a two-layer network with m = 800 neurons learn directions of centers, and each "
    "center is covered by some neurons."
)
_MIXTURE_CHECKS = tuple(
    check
    for name in arms(*EXPERIMENTS)
    for check in (
        name.test_accuracy >= 99.0,
        name.covered >= 0.999,
        name.clustered - name.clustered[0] >= 0.02,
    )
)

_MIXTURE_PLOTS = tuple(
    Plot(
        title=title,
        x="gradient step",
        y=axis,
        series=tuple(PlotLine(name, measure, name) for name in EXPERIMENTS),
    )
    for title, axis, measure in (
        ("Centers covered", "fraction of centers", "covered"),
        ("Neurons near centers", "fraction of neurons", "clustered"),
    )
)

TABLE6 = Claim(
    id="shi2022/table6",
    where="Table 6, Figure 16 (Appendix E.3.2)",
    kind="figure",
    statement=_MIXTURE,
    study=table6,
    checks=_MIXTURE_CHECKS,
    control=shuffled(table6),
    readings=tuple(Reading(name, why, own) for name, (why, own) in TABLE6_SETTINGS.items()),
    plots=_MIXTURE_PLOTS,
    **notes("shi2022/table6"),
)

TABLE6_SMALL = Claim(
    id="shi2022/table6-small-start",
    where="Table 6, Figure 16 (Appendix E.3.2), from small initial weights",
    kind="figure",
    statement=_MIXTURE,
    study=table6_small,
    source="ours",
    checks=_MIXTURE_CHECKS,
    control=shuffled(table6_small),
    plots=_MIXTURE_PLOTS,
    **notes("shi2022/table6-small-start"),
)


class CenterNetwork(ExactComputation):
    """Network Σ_i a_i·ReLU(⟨c_i, x⟩ + b) over all centers c_i ∈ {±1}^k of a cube, with a_i = `sign`
    times the label of c_i, and b = −(k − 2) if `biased`, otherwise 0 as printed.

    `right`: fraction of centers at which the output has the sign of the label; `value`: mean over
    centers of label times output. `accuracy`: percentage of `examples` of the mixture with noise of
    standard deviation `noise` per coordinate on which the sign is the label. Only the coordinates
    in the span of the centers matter.
    """

    KEY = "CentreNetwork"

    k: int = eqx.field(static=True)
    sign: float = eqx.field(static=True, default=1.0)
    biased: bool = eqx.field(static=True, default=False)
    noise: float = eqx.field(static=True, default=0.0)
    examples: int = eqx.field(static=True, default=20_000)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        centers = np.array(list(itertools.product((-1.0, 1.0), repeat=self.k)))
        labels = centers.prod(axis=1)
        bias = 2.0 - self.k if self.biased else 0.0

        def margins(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            output = np.maximum(x @ centers.T + bias, 0.0) @ (self.sign * labels)
            return np.asarray(output * y)

        rng = generator(key, self.k)
        chosen = rng.integers(len(centers), size=self.examples)
        x = centers[chosen] + self.noise * rng.normal(size=(self.examples, self.k))
        at_centers = margins(centers, labels)
        return {
            "right": float(np.mean(at_centers > 1e-9)),
            "value": float(np.mean(at_centers)),
            "accuracy": 100 * float(np.mean(margins(x, labels[chosen]) > 1e-9)),
        }


def center_signs(scale: Scale, sign: float = 1.0) -> dict[str, StudyArm]:
    """Return the network with biases at the centers of several cubes, and on the mixtures of
    Table 6.
    """
    cubes: dict[str, StudyArm] = {
        f"k={k}": CenterNetwork(k, sign, biased=True, precision=64) for k in (3, 4, 5, 6)
    }
    return cubes | {
        name: CenterNetwork(
            of.k, sign, biased=True, noise=of.spread * math.sqrt(of.k / of.d), precision=64
        )
        for name, of in EXPERIMENTS.items()
    }


SIGNS = Claim(
    id="shi2022/table6-signs",
    where="Appendix E.3.2, the labeling function as a network",
    kind="lemma",
    statement=(
        "The label of a Gaussian mixture at the vertices of a cube is roughly Σ_i "
        "a_i·ReLU(⟨c_i, x⟩) over the centers c_i, with a_i ∝ 1 for centers of label 1 and a_i ∝ −1 "
        "for centers of label −1."
    ),
    study=center_signs,
    checks=(
        *((arm(f"k={k}").right >= 1.0).by_paper().exactly() for k in (3, 4, 5, 6)),
        *((arm(name).accuracy >= 95.0).at("laptop", "paper") for name in EXPERIMENTS),
    ),
    control=Control("the signs are opposite", lambda scale: center_signs(scale, -1.0)),
    corrections=("shi2022/mixture-signs",),
    min_seeds=1,
    **notes("shi2022/table6-signs"),
)

MIXTURES = (FIGURE15, TABLE6, TABLE6_SMALL, SIGNS)
