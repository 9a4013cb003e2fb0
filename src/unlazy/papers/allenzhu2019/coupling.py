"""Lemma C.1 and Claims C.5 and C.7: networks near initialization, for the worst perturbations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.arms import StudyArm
from unlazy.lab.claims import Claim
from unlazy.lab.conditions import Condition
from unlazy.lab.paper_files import notes
from unlazy.lab.rules import Control, Scale, arm
from unlazy.lab.trials import ExactComputation

WIDTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (1 << 8, 1 << 10),
    "laptop": (1 << 10, 1 << 13, 1 << 16),
    "paper": (1 << 10, 1 << 13, 1 << 16, 1 << 19),
}
OUTPUTS, DIMENSION, ALPHA = 4, 10, 0.3
#: The parts of the lemma, (a) to (g), and the two claims, with our values of their constants.
PARTS = dict.fromkeys(("switched_w", "leftover_w", "switched_v", "leftover_v", "operator_v"), 2.0)
PARTS |= dict.fromkeys(
    ("first_output", "second_output", "gradient_w", "gradient_v", "base_gap"), 1.0
)
Matrix = Float[np.ndarray, "k m"]


class Scales(NamedTuple):
    """σ_w, σ_v, τ_w and τ_v at a width."""

    sigma_w: float
    sigma_v: float
    tau_w: float
    tau_v: float


def scales_at(m: int) -> Scales:
    """Return σ_w and σ_v, a large τ_w and a small τ_v within the ranges of the lemma."""
    return Scales(m**-0.2, m**0.05, m**0.07, 1.1 * m**-0.25)


def cheapest(preactivations: np.ndarray, gains: np.ndarray, budget: float) -> np.ndarray:
    """Return the neurons to switch by a change of norm² ≤ `budget`, by gain per cost."""
    costs = preactivations**2
    order = np.argsort(-gains / costs)
    affordable = order[: int(np.searchsorted(np.cumsum(costs[order]), budget))]
    switched = np.zeros(len(costs), bool)
    switched[affordable] = gains[affordable] > 0
    return switched


def largest_leftover(A: Matrix, g: np.ndarray, budget: float) -> np.ndarray:
    """Return the pattern of active neurons that makes A·D·g large in the first output."""
    active = g >= 0
    sign = np.sign((A * active) @ g)[0]
    found: np.ndarray = active ^ cheapest(g, -sign * A[0] * np.abs(g), budget)
    return found


class Coupling(ExactComputation):
    """Ratios of the quantities of Lemma C.1 and Claims C.5, C.7 to their bounds; the axis is m.

    Constants and powers of log m are 1. `biased` makes A positive, and the preactivations of the
    random weights cubes of Gaussians.
    """

    widths: tuple[int, ...] = eqx.field(static=True, default=WIDTHS["laptop"])
    biased: bool = eqx.field(static=True, default=False)

    axis = "widths"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        rows = [self._at(m, rng) for m in self.widths]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _at(self, m: int, rng: np.random.Generator) -> dict[str, float]:
        k, s = OUTPUTS, scales_at(m)
        A = rng.normal(size=(k, m)) / math.sqrt(m)
        x = rng.normal(size=DIMENSION)
        z0 = np.append(x / np.linalg.norm(x), 1.0)
        g = rng.normal(size=(m, len(z0))) @ z0 * s.sigma_w
        V0 = rng.normal(size=(m, k + 1)) * s.sigma_v / math.sqrt(m)
        if self.biased:
            A = np.abs(A)
            g = g**3 / (2 * s.sigma_w**2)
        budget = float(s.tau_w * np.linalg.norm(z0)) ** 2
        relative = (s.tau_w / s.sigma_w) ** (1 / 3)
        first = largest_leftover(A, g, budget)
        # The perturbation aligned with the first row of A.
        row = A[0] / np.linalg.norm(A[0])
        aligned = g + math.sqrt(budget) * row
        on1 = aligned >= 0
        out1 = A @ (on1 * aligned)
        z = np.append(out1, 1.0)
        size = float(np.linalg.norm(out1)) + 1
        h = V0 @ z
        if self.biased:
            h = h**3 / np.mean(h**2)
        budget_v = float(s.tau_v * np.linalg.norm(z)) ** 2
        near = (s.tau_v / s.sigma_v) ** (1 / 3)
        second = largest_leftover(A, h, budget_v)
        moved = h + math.sqrt(budget_v) * row
        on2 = moved >= 0
        signal = A @ (on2 * moved)
        V = V0 + s.tau_v * np.outer(row, z / np.linalg.norm(z))
        jacobian = (np.eye(k) + (A * on2) @ V[:, :k]) @ (A * on1)
        # F and G with H(x) = out(x), so that Claim C.7 has no slack from its first term.
        away = signal / np.linalg.norm(signal)
        base = out1 + signal + ALPHA * away
        b_f = float(np.linalg.norm(base))
        return {
            "switched_w": _switched(g, budget) / (relative * m ** (1 / 3)) ** 2,
            "leftover_w": float(np.linalg.norm((A * first) @ g))
            / (s.tau_w * relative / m ** (1 / 6)),
            "first_output": float(np.linalg.norm(out1)) / s.tau_w,
            "switched_v": _switched(h, budget_v) / (near**2 * m),
            "leftover_v": float(np.linalg.norm((A * second) @ h)) / (s.tau_v * near * size),
            "operator_v": float(np.linalg.norm((A * second) @ V0, 2)) / (s.tau_v * near),
            "second_output": float(np.linalg.norm(signal)) / (s.tau_v * size),
            "gradient_w": float(np.linalg.norm(jacobian, 2) * np.linalg.norm(z0)) / (s.sigma_v + 1),
            "gradient_v": float(np.linalg.norm(A * on2, 2) * np.linalg.norm(z)) / (s.tau_w + 1),
            "base_gap": float(np.linalg.norm(out1 - base)) / (s.tau_v * (b_f + 1) + ALPHA),
        }


def _switched(preactivations: np.ndarray, budget: float) -> int:
    """Return the largest number of signs that a change of norm² ≤ `budget` switches."""
    return int(np.searchsorted(np.cumsum(np.sort(preactivations**2)), budget))


def coupling(scale: Scale, *, biased: bool = False) -> dict[str, StudyArm]:
    """Return the ratios at all widths."""
    return {"network": Coupling(WIDTHS[scale], biased=biased, precision=64)}


def _largest(scale: Scale) -> tuple[int, Scales]:
    return WIDTHS[scale][-1], scales_at(WIDTHS[scale][-1])


network = arm("network")
LEMMA_C1 = Claim(
    id="allenzhu2019/lemma-c1",
    where="Lemma C.1, Claims C.5 and C.7 (Appendix C)",
    kind="lemma",
    statement=(
        "With high probability, for all W and V with ‖W‖ ≤ τ_w and ‖V‖ ≤ τ_v: (a) at most "
        "O((τ_w/σ_w)^{2/3}·m^{2/3}) neurons of the first layer switch, (b) ‖A·D_W·W⁽⁰⁾(x, 1)‖ ≤ "
        "Õ(τ_w·(τ_w/σ_w)^{1/3}/m^{1/6}), (c) ‖out₁‖ ≤ O(τ_w), (d) at most O((τ_v/σ_v)^{2/3}·m) "
        "neurons of the second layer switch, (e, f) A·D_V·V⁽⁰⁾ is at most Õ(τ_v·(τ_v/σ_v)^{1/3}), "
        "(g) ‖A·D_V·(V⁽⁰⁾ + V)(out₁, 1)‖ ≤ Õ(τ_v·(‖out₁‖ + 1)). The gradients are at most "
        "‖y − out‖ times O(σ_v + 1) and O(τ_w + 1) (Claim C.5), and ‖out₁ − F‖ ≤ 2‖out − H‖ + "
        "Õ(τ_v·(B_F + 1) + α·B_{F∘G}) (Claim C.7)."
    ),
    study=coupling,
    checks=tuple(network[name] <= constant for name, constant in PARTS.items()),
    conditions=(
        Condition(
            "τ_w ≥ 1",
            lambda scale: _largest(scale)[1].tau_w,
            lambda scale: 1.0,
        ),
        Condition(
            "τ_w ≥ m^{1/8+0.001}·σ_w",
            lambda scale: _largest(scale)[1].tau_w,
            lambda scale: _largest(scale)[0] ** 0.126 * _largest(scale)[1].sigma_w,
        ),
        Condition(
            "τ_w ≤ m^{1/8−0.001}·σ_w^{1/4}",
            lambda scale: _largest(scale)[1].tau_w,
            lambda scale: _largest(scale)[0] ** 0.124 * _largest(scale)[1].sigma_w ** 0.25,
            "≤",
        ),
        Condition(
            "τ_v ≥ σ_v·(k/m)^{3/8}",
            lambda scale: _largest(scale)[1].tau_v,
            lambda scale: _largest(scale)[1].sigma_v * (OUTPUTS / _largest(scale)[0]) ** 0.375,
        ),
        Condition(
            "τ_v ≤ σ_v",
            lambda scale: _largest(scale)[1].tau_v,
            lambda scale: _largest(scale)[1].sigma_v,
            "≤",
        ),
        Condition(
            "τ_v ≤ 1/polylog(m), taken as 1/log m (Claim C.7)",
            lambda scale: _largest(scale)[1].tau_v,
            lambda scale: 1 / math.log(_largest(scale)[0]),
            "≤",
            "C",
        ),
    ),
    control=Control(
        "output weights are positive, and preactivations are cubes of Gaussians",
        lambda scale: coupling(scale, biased=True),
    ),
    label_free_reason="the bounds hold for all labels",
    **notes("allenzhu2019/lemma-c1"),
)
