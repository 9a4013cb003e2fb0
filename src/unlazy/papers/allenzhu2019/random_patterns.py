"""Lemma E.1: a smooth function as a network whose activation patterns are those of random weights.

W maps to the network Σ_j a_j·⟨w_j, x⟩·1[⟨w_j⁽⁰⁾, x⟩ ≥ 0], which is linear in W.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray
from numpy.polynomial import hermite_e

from unlazy.core.random import host_generator
from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.lab.trials import ExactComputation
from unlazy.papers.allenzhu2019.existence import CUBIC, EVEN, SINE, SINH, Smooth

WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (1 << 8, 1 << 10),
    "laptop": (1 << 8, 1 << 11, 1 << 14, 1 << 17),
    "paper": (1 << 8, 1 << 11, 1 << 14, 1 << 17, 1 << 20),
}
FIRST = WIDTHS["laptop"][0]
OUTPUTS, NEURONS, DIMENSION, POINTS = 2, 2, 6, 30


class PatternNetwork(ExactComputation):
    """Network (E.3) for Φ_r(x) = Σ_i a_{r,i}·φ(⟨w₁, x⟩)·⟨w₂, x⟩ on the sphere; the axis is m.

    Each quantity is defined in quantities.csv. `functions`: the functions φ, in turn.
    """

    widths: tuple[int, ...] = eqx.field(static=True, default=WIDTHS["laptop"])
    functions: tuple[Smooth, ...] = (SINE, CUBIC, SINH, CUBIC)

    axis = "widths"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        k, p, d = OUTPUTS, NEURONS, DIMENSION
        size = max(f.complexity for f in self.functions)

        def unit(*shape: int) -> np.ndarray:
            v = rng.normal(size=shape)
            found: np.ndarray = v / np.linalg.norm(v, axis=-1, keepdims=True)
            return found

        a, w1, w2, x = (
            rng.choice((-1.0, 1.0), (k, p)),
            unit(k, p, d),
            unit(k, p, d),
            unit(POINTS, d),
        )
        x[: k * p] = w1.reshape(-1, d)
        target = np.zeros((POINTS, k))
        errors, rows, norms = [], [], []
        for m in self.widths:
            start, output = rng.normal(size=(m, d)), rng.normal(size=(m, k))
            weights = np.zeros((m, d))
            target[:] = 0.0
            for r in range(k):
                for i in range(p):
                    f = self.functions[(r * p + i) % len(self.functions)]
                    h = a[r, i] * hermite_e.hermeval(start @ w1[r, i], f.indicator())
                    weights += np.outer(output[:, r] * h, w2[r, i]) / m
                    target[:, r] += a[r, i] * f(x @ w1[r, i]) * (x @ w2[r, i])
            active = start @ x.T >= 0
            found = ((weights @ x.T) * active).T @ output
            errors.append(float(np.max(np.sum(np.abs(found - target), axis=1))))
            rows.append(float(np.max(np.linalg.norm(weights, axis=1))) * m)
            norms.append(float(np.linalg.norm(weights)) * math.sqrt(m) / (k * p * size))
        error = np.array(errors)
        return {
            "error": error,
            "decay": error * np.sqrt(np.array(self.widths) / self.widths[0]) / error[0],
            "row_norm": np.array(rows),
            "norm_over_bound": np.array(norms),
        }


def patterns(scale: Scale, *, functions: tuple[Smooth, ...] = ()) -> dict[str, StudyArm]:
    """Return the network at all widths."""
    return {
        "network": PatternNetwork(
            WIDTHS[scale], functions or (SINE, CUBIC, SINH, CUBIC), precision=64
        )
    }


network = arm("network")
LEMMA_E1 = Claim(
    id="allenzhu2019/lemma-e1",
    where="Lemmas E.1, E.1' (Appendix E) and C.2",
    kind="lemma",
    statement=(
        "For F of general complexity (p, C_s, C_ε) and every ε there is a width M such that for "
        "m ≥ M weights W with ‖W‖_F ≤ Õ(k·p·C_s/√m), which depend on random weights W⁽⁰⁾ and A "
        "but not on x, have Σ_r |F_r(x) − Σ_j a_{r,j}·⟨w_j, (x, 1)⟩·1[⟨w_j⁽⁰⁾, (x, 1)⟩ ≥ 0]| ≤ "
        "ε·‖(x, 1)‖ with high probability. So A·D_{W⁽⁰⁾}·W(x, 1) can equal F, and "
        "A·D_{V⁽⁰⁾,W}·V(out₁, 1) can equal α·G(out₁), up to an error (Lemma C.2)."
    ),
    study=patterns,
    checks=(
        network.error <= 0.1,
        network.decay <= 3.0,
        (network.norm_over_bound <= 1.0).refuting(),
    ),
    control=Control("functions with even terms", lambda scale: patterns(scale, functions=(EVEN,))),
    plots=(
        Plot(
            "Error of the network versus its width",
            "m",
            "max Σ|F − network|",
            (PlotLine("network", "error", "network of Lemma E.1"),),
            log_x=True,
            log_y=True,
            caption="The activation patterns are those of the random weights.",
        ),
    ),
    label_free_reason="the weights are constructed, not learned",
    **notes("allenzhu2019/lemma-e1"),
)
