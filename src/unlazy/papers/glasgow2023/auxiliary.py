"""Claims of glasgow2023 on well-spread vectors, minibatches and the balance of the layers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.papers.glasgow2023.growth import LayerBalance
from unlazy.papers.glasgow2023.minibatches import MinibatchErrors
from unlazy.papers.glasgow2023.sizes import Training
from unlazy.papers.glasgow2023.spreading import SpreadVectors

#: Dimension of a network, and a dimension in which the bound of Lemma B.4 is below 1.
SMALL_D, LARGE_D = 1000, 1 << 20
#: c and C of Definition B.1 and Lemmas B.2 to B.4.
SPREADING = 4.0


def spread(scale: Scale) -> dict[str, StudyArm]:
    """Return the computation on random vectors."""
    return {
        "vectors": SpreadVectors(
            (SMALL_D, LARGE_D),
            draws=20 if scale == "smoke" else 200 if scale == "laptop" else 1000,
            constant=SPREADING,
            precision=64,
        )
    }


vectors = arm("vectors")
SPREAD = Claim(
    id="glasgow2023/spread",
    where="Definition B.1, Lemmas B.2, B.3, B.4",
    kind="lemma",
    statement=(
        "For c large enough a vector drawn from a sphere is c-well-spread with probability 1 − "
        "d^{−ω(1)}. For a C-well-spread v with C ≥ C₀ and ‖Δ‖ ≤ ζ‖v‖, ζ small enough: P(|⟨ξ, v + "
        "Δ⟩| ≤ ‖v‖/√d) ≥ const/√d; and with P_δ = P(|G| ≤ δ), G standard Gaussian, the probability "
        "that ⟨ξ, v + Δ⟩ lies in [a‖v‖, b‖v‖] differs from P_{(b−a)/2} by at most "
        "2P_{(b−a)/2}·(√ζ + max(|a|, |b|)²) + 200·C_BE/√d."
    ),
    study=spread,
    checks=(
        vectors.spread[SMALL_D] >= 0.99,
        vectors.spread[LARGE_D] >= 0.99,
        *(vectors.small[d] >= 0.5 for d in (SMALL_D, LARGE_D)),
        (vectors.gaussian_ratio[LARGE_D] <= 1.0).by_paper(),
        *(vectors.gaussian_gap[d] <= 1.0 for d in (SMALL_D, LARGE_D)),
    ),
    seeds={"smoke": 1, "laptop": 8, "paper": 8},
    conditions=(
        Condition(
            "c and C of well-spread vectors, at least C₀",
            lambda s: SPREADING,
            lambda s: 1.0,
            constant="C₀",
        ),
    ),
    control=Control(
        "vectors with a single nonzero coordinate",
        lambda s: {
            "vectors": SpreadVectors((SMALL_D, LARGE_D), draws=5, sparse=True, precision=64)
        },
    ),
    **notes("glasgow2023/spread"),
)


def _setting(scale: Scale) -> Training:
    d, width = {"smoke": (32, 16), "laptop": (128, 64), "paper": (256, 128)}[scale]
    return Training(d=d, width=width)


def _min_batch(scale: Scale) -> float:
    return _setting(scale).d * math.log(_setting(scale).d) ** 2


BATCH = Condition("m ≥ d·log² d", lambda s: _setting(s).batch, _min_batch)


def _minibatch(scale: Scale, **wrong: Any) -> dict[str, StudyArm]:
    run = _setting(scale)
    probe = MinibatchErrors(
        run.batch, 4 if scale == "smoke" else 10, 8 if scale == "smoke" else 64, **wrong
    )
    return {"SGD": run.arm((0, 30, 60), probe)}


sgd = arm("SGD")
MINIBATCH = Claim(
    id="glasgow2023/minibatch",
    label_free_reason="minibatch means concentrate for any labels",
    where="Lemmas B.12, B.13 (S1, S2)",
    kind="lemma",
    statement=(
        "For a loss that is 2-Lipschitz in the network's output and m ≥ d·log²(d), with "
        "probability 1 − d^{−ω(1)} for any neuron: ‖∇̂_w L − ∇_w L‖² ≤ a²·d·log²(d)/m, |∇̂_i L − "
        "∇_i L|² ≤ a²·log²(d)/m for each coordinate i, |∇̂_a L − ∇_a L|² ≤ ‖w‖²·log²(d)/m; and "
        "‖∇_w L‖ ≤ 2|a|, |∇_a L| ≤ 2‖w‖."
    ),
    study=_minibatch,
    checks=tuple(
        (sgd[measure][step] <= 1.0).by_paper()
        for measure, steps in {
            "whole_ratio": (0, 30, 60),
            "coordinate_ratio": (0, 30, 60),
            "second_ratio": (0, 30, 60),
            "first_length": (30, 60),
            "second_length": (30, 60),
        }.items()
        for step in steps
    ),
    conditions=(BATCH,),
    control=Control(
        "minibatches of m/100 examples, and a loss that is 24-Lipschitz",
        lambda s: _minibatch(s, thin=100, gain=12.0),
    ),
    **notes("glasgow2023/minibatch"),
)


def _balance(scale: Scale, **wrong: float) -> dict[str, StudyArm]:
    run = dataclasses.replace(_setting(scale), **wrong)  # type: ignore[arg-type]
    arm = run.arm(
        tuple(range((20 if scale == "smoke" else 60) + 1)),
        LayerBalance(radius=run.radius, step=run.step),
    )
    return {"SGD": arm}


BALANCE = Claim(
    id="glasgow2023/balance",
    label_free_reason="gradients with any labels preserve the balance of the layers",
    where="Lemma B.13 (S3, S4)",
    kind="lemma",
    statement=(
        "For a loss that is 2-Lipschitz in the network's output, m ≥ d·log²(d) and η ≤ 1/4, with "
        "probability 1 − d^{−ω(1)} for any neuron: if |a| ≤ ‖w‖ before a step, then also after "
        "it; and ‖w‖² − a² grows by at most 4η²a² in a step."
    ),
    study=_balance,
    checks=(
        (sgd.excess <= 0.0).by_paper(),
        (sgd.drift_ratio <= 1.0).by_paper(),
    ),
    conditions=(BATCH, Condition("η ≤ 1/4", lambda s: _setting(s).step, lambda s: 0.25, "≤")),
    control=Control(
        "the second layer has four times the learning rate, η = 0.05",
        lambda s: _balance(s, second=4.0, step=0.05),
    ),
    **notes("glasgow2023/balance"),
)
