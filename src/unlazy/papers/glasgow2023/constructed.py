"""Constructed networks that satisfy the signal-heavy definition, and one exact gradient step.

Training at feasible sizes never satisfies Definition 4.2, which requires ζ ≤ e^{−10H} with H ≥ 1.
In the constructed networks, neurons in S have e^{6H}·‖w_perp‖ + ‖w_opp‖ = u·ζ·‖w_sig‖ with u ≤ 1,
and u = 1 for a third of them. The others have E[1(w ∉ S)·‖w‖²] = ζ·γ̃_min, and all but one point
nearly along the weakest cluster, where they grow fastest. E‖w‖² − E a² = ζH. The cube has few
dimensions, so that expectations are sums over all its points.

A step of η = ζ³ ≈ 1e-13 would be lost to rounding in a sum. So changes are stored separately and
divided by η.

Reference: glasgow2023, Definition 4.2, Lemmas 4.4 (D.3), D.5, D.11 to D.14.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.glasgow2023.gradients import PHASE2_RATE
from unlazy.tasks.spectrum import corners

#: Unit vectors along μ₁, −μ₁, μ₂, −μ₂ in the two relevant coordinates, and their labels.
DIRECTIONS = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]]) / math.sqrt(2)
LABELS = np.array([1.0, 1.0, -1.0, -1.0])
#: Fractions of the squared norm per cluster, far from balanced.
FRACTIONS = np.array([0.5, 0.22, 0.16, 0.12])


#: Relative distance to the boundary of the definition, above the rounding of float64.
ROUNDING = 1e-6


class HeavyNetwork(NamedTuple):
    """Neurons w (p d), a (p) in mean-field scaling, membership in S, cluster, ζ and H."""

    w: np.ndarray
    a: np.ndarray
    inside: np.ndarray
    cluster: np.ndarray
    zeta: float
    H: float
    saturated: np.ndarray  # u = 1

    @property
    def signal(self) -> np.ndarray:
        """⟨w, unit vector of its cluster⟩."""
        result: np.ndarray = np.sum(self.w[:, :2] * DIRECTIONS[self.cluster], axis=1)
        return result

    @property
    def margins(self) -> np.ndarray:
        """Heavy margins γ̃ of the four clusters."""
        each = np.abs(self.a) * math.sqrt(2) * self.signal * self.inside
        return np.array([np.mean(each * (self.cluster == c)) for c in range(4)])

    @property
    def min_zeta(self) -> float:
        """Minimum ζ for which the network is (ζ, H)-signal-heavy with this S, but ζ ≤ e^{−10H}."""
        square = np.sum(self.w**2, axis=1)
        opposite = np.abs(np.sum(self.w[:, :2] * DIRECTIONS[(self.cluster + 2) % 4], axis=1))
        weighted = math.exp(6 * self.H) * np.linalg.norm(self.w[:, 2:], axis=1) + opposite
        return max(
            float(np.max((weighted / np.maximum(self.signal, 1e-300))[self.inside])),
            float(np.mean(~self.inside * square) / np.min(self.margins)),
            float(np.mean(square - self.a**2)) / self.H,
        )


def signal_heavy(
    rng: np.random.Generator,
    *,
    d: int = 10,
    p: int = 96,
    H: float = 1.0,
    loose: float = 0.0,
    scattered: bool = False,
    size: float = 1.9,
) -> HeavyNetwork:
    """Return a network with ζ = e^{−10H} and, within S, E‖w‖² ≈ `size`·H.

    `loose` > 0: ‖w_perp‖ + ‖w_opp‖ = `loose`·‖w_sig‖ in S. `scattered`: neurons outside of S have
    random directions instead of those in which they grow fastest.
    """
    zeta, heavy = math.exp(-10 * H), p - p // 8
    cluster = np.arange(p) % 4
    fractions = rng.permutation(FRACTIONS)
    strength = np.sqrt(fractions[cluster] * rng.uniform(0.5, 1.5, p))
    strength[heavy:] = 0
    strength *= math.sqrt(size * H / np.mean(strength**2))
    saturated = (np.arange(p) % 3 == 0) & (np.arange(p) < heavy)
    budget = np.where(saturated, 1.0, rng.uniform(0.2, 0.9, p)) * zeta * strength
    part = rng.choice([0.0, 0.3, 0.9, 1.0], p)
    rest, opposite = part * budget * math.exp(-6 * H), (1 - part) * budget
    if loose:
        rest, opposite = part * loose * strength, (1 - part) * loose * strength
    side = rng.choice([-1.0, 1.0], p)
    w = np.zeros((p, d))
    w[:, :2] = (
        strength[:, None] * DIRECTIONS[cluster]
        + (side * opposite)[:, None] * DIRECTIONS[(cluster + 2) % 4]
    )
    w[:, 2:] = rest[:, None] * _unit(rng, p, d - 2)
    a = LABELS[cluster] * strength
    margins = np.array(
        [np.mean((cluster == c) * np.abs(a) * math.sqrt(2) * strength) for c in range(4)]
    )
    weakest = int(np.argmin(margins))
    # Outside of S: nearly along the weakest cluster, with twice the ratio that S allows. The last
    # one is small and has a random direction.
    count = p - heavy
    norms = np.full(count, math.sqrt(zeta * margins[weakest] * p / count))
    norms[-1] /= 1 if scattered else 100
    out = np.zeros((count, d))
    out[:, :2] = DIRECTIONS[weakest] + 2 * zeta * DIRECTIONS[(weakest + 2) % 4]
    out[0 if scattered else -1 :] = _unit(rng, count if scattered else 1, d)
    w[heavy:] = norms[:, None] * out / np.linalg.norm(out, axis=1, keepdims=True)
    a[heavy:] = LABELS[weakest] * norms
    cluster = cluster.copy()
    cluster[heavy:] = weakest
    square = np.sum(w**2, axis=1)
    gap = (1 - ROUNDING) * zeta * H / np.mean(square)
    a = np.sign(a) * np.sqrt((1 - gap) * square)
    return HeavyNetwork(w, a, np.arange(p) < heavy, cluster, zeta, H, saturated)


def _unit(rng: np.random.Generator, count: int, d: int) -> np.ndarray:
    """Draw unit vectors with a random number of nonzero coordinates."""
    v = rng.normal(size=(count, d))
    nonzero = rng.integers(1, d + 1, count)
    v[np.arange(d)[None, :] >= nonzero[:, None]] = 0
    v = rng.permuted(v, axis=1)
    result: np.ndarray = v / np.linalg.norm(v, axis=1, keepdims=True)
    return result


def scores(net: HeavyNetwork, x: np.ndarray) -> np.ndarray:
    """Return f(x) = mean of a·relu(⟨w, x⟩)."""
    result: np.ndarray = np.maximum(x @ net.w.T, 0) @ net.a / len(net.a)
    return result


class Descended(NamedTuple):
    """−∇_w L (p d) and −∇_a L (p)."""

    w: np.ndarray
    a: np.ndarray


def descend(net: HeavyNetwork, x: np.ndarray, derivative: np.ndarray) -> Descended:
    """Return the p-scaled descent direction for loss derivatives ℓ'(x) at uniform points x."""
    z = x @ net.w.T
    return Descended(
        -net.a[:, None] * (((z > 0) * derivative[:, None]).T @ x) / len(x),
        -(derivative @ np.maximum(z, 0)) / len(x),
    )


class HeavyStep(ExactComputation):
    """One step of η = ζ³ on the population loss from a signal-heavy network (Lemma D.3).

    `least_ratio`, `greatest_ratio`: relative growth of γ̃_min ÷ 2ητ·g_max and of γ̃_max ÷ 2ητ·g_min
    (items 2, 3). `neuron_ratio`: minimum over S of the relative growth of |a|·‖w_sig‖ ÷ 2ητ·g_μ, μ
    its cluster (D.15). `mass_rate`: relative growth of E[1(w ∉ S)·‖w‖²]/γ̃_min ÷ 10ηζH;
    `shape_rate`: maximum relative growth of (e^{6H}‖w_perp‖ + ‖w_opp‖)/‖w_sig‖ over neurons of S
    with u = 1, ÷ 10ηζH; `gap_rate`: increase of E‖w‖² − E a² ÷ 10ηζ²H²; `norm_after` = (E a'² +
    ζ'H)/(2H), ζ' = ζ(1 + 10ηζH) (item 1). `zeta_met` = ζ·e^{10H} with the minimum ζ of the network,
    `gap` = (E‖w‖² − E a²)/(ζH), `norm` = (E a² + ζH)/(2H): the definition requires at most 1.

    `clean_first`, `clean_second`: maximum distance to the clean gradients ÷ 4|a|ζH_ρ and ÷ 4‖w‖ζH_ρ
    (D.5). `norm_rate`: (maximum relative growth of ‖w‖² ÷ 2ητ·g_max − 1) ÷ 2ζH (D.11).
    `margin_step` = |γ̃' − γ̃|/(8ηH), `margin_gap` = |γ − γ̃|/(2ζH) (D.14).

    Negative control: `frozen` second layer, `linear` loss, `loose` networks that are not
    signal-heavy, learning rate multiplied by `gain`.
    """

    d: int = eqx.field(static=True, default=10)
    width: int = eqx.field(static=True, default=96)
    H: float = eqx.field(converter=float, default=1.0, kw_only=True)
    frozen: bool = eqx.field(static=True, default=False, kw_only=True)
    linear: bool = eqx.field(static=True, default=False, kw_only=True)
    scattered: bool = eqx.field(static=True, default=False, kw_only=True)
    loose: float = eqx.field(converter=float, default=0.0, kw_only=True)
    gain: float = eqx.field(converter=float, default=1.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        net = signal_heavy(
            rng, d=self.d, p=self.width, H=self.H, loose=self.loose, scattered=self.scattered
        )
        x = corners(self.d)
        y = -x[:, 0] * x[:, 1]
        centers = np.concatenate([math.sqrt(2) * DIRECTIONS, np.zeros((4, self.d - 2))], axis=1)
        margins = LABELS * scores(net, centers)
        derivative = -y if self.linear else -2 * y / (1 + np.exp(y * scores(net, x)))
        z = np.concatenate([x[:, :2], np.zeros((len(x), self.d - 2))], axis=1)
        clean = descend(net, x, -y if self.linear else -2 * y / (1 + np.exp(y * scores(net, z))))
        moved = descend(net, x, derivative)
        change_w, change_a = self.gain * moved.w, (0 if self.frozen else self.gain) * moved.a
        g = 2 / (1 + np.exp(margins))
        return (
            self._induction(net, change_w, change_a, g)
            | self._distances(net, moved, clean)
            | {"margin_gap": np.max(np.abs(margins - net.margins)) / (2 * net.zeta * net.H)}
        )

    def _induction(
        self, net: HeavyNetwork, dw: np.ndarray, da: np.ndarray, g: np.ndarray
    ) -> dict[str, Any]:
        zeta, H, eta, inside = net.zeta, net.H, net.zeta**3, net.inside
        sign = np.sign(net.a)
        signal, grown = net.signal, np.sum(dw[:, :2] * DIRECTIONS[net.cluster], axis=1)
        size, size_grown = np.abs(net.a), sign * da
        each = (
            math.sqrt(2) * inside * (size * grown + signal * size_grown + eta * grown * size_grown)
        )
        margin = net.margins
        growth = np.array([np.mean(each * (net.cluster == c)) for c in range(4)]) / margin
        weakest, strongest = int(np.argmin(margin)), int(np.argmax(margin))
        square = np.sum(net.w**2, axis=1)
        square_grown = 2 * np.sum(net.w * dw, axis=1) + eta * np.sum(dw**2, axis=1)
        mass = np.mean(~inside * square_grown) / np.mean(~inside * square)
        weight = math.exp(6 * H)
        other = DIRECTIONS[(net.cluster + 2) % 4]
        opposite = np.sum(net.w[:, :2] * other, axis=1)
        rest = np.linalg.norm(net.w[:, 2:], axis=1)
        # The norm of a zero component grows by the norm of its change.
        rest_grown = np.where(
            rest > 0,
            np.sum(net.w[:, 2:] * dw[:, 2:], axis=1) / np.maximum(rest, 1e-300),
            np.linalg.norm(dw[:, 2:], axis=1),
        )
        along = np.sum(dw[:, :2] * other, axis=1)
        opposite_grown = np.where(opposite != 0, np.sign(opposite) * along, np.abs(along))
        at_bound = net.saturated
        excess = (weight * rest_grown + opposite_grown)[at_bound]
        shape = excess / signal[at_bound] / zeta - grown[at_bound] / signal[at_bound]
        first, second = grown[inside] / signal[inside], size_grown[inside] / size[inside]
        own = first + second + eta * first * second
        return {
            "least_ratio": growth[weakest] / (2 * PHASE2_RATE * np.max(g)),
            "greatest_ratio": growth[strongest] / (2 * PHASE2_RATE * np.min(g)),
            "mass_rate": (mass - growth[weakest]) / (10 * zeta * H),
            "shape_rate": np.max(shape) / (10 * zeta * H),
            "neuron_ratio": np.min(own / (2 * PHASE2_RATE * g[net.cluster[inside]])),
            "gap": np.mean(square - size**2) / (zeta * H),
            "norm": (np.mean(size**2) + zeta * H) / (2 * H),
            "norm_after": (np.mean(size**2 + eta * (2 * size * size_grown + eta * size_grown**2)))
            / (2 * H)
            + zeta * (1 + 10 * eta * zeta * H) / 2,
            "gap_rate": np.mean(square_grown - 2 * size * size_grown - eta * size_grown**2)
            / (10 * zeta**2 * H**2),
            "zeta_met": net.min_zeta * math.exp(10 * H),
            "norm_rate": (np.max(square_grown / square) / (2 * PHASE2_RATE * np.max(g)) - 1)
            / (2 * zeta * H),
            "margin_step": np.max(np.abs(growth * margin)) / (8 * H),
            "least_margin": np.min(margin),
            "greatest_margin": np.max(margin),
        }

    def _distances(self, net: HeavyNetwork, moved: Descended, clean: Descended) -> dict[str, Any]:
        norms = np.linalg.norm(net.w, axis=1)
        size = np.mean(np.abs(net.a) * norms)
        return {
            "clean_first": np.max(np.linalg.norm(moved.w - clean.w, axis=1) / np.abs(net.a))
            / (4 * net.zeta * size),
            "clean_second": np.max(np.abs(moved.a - clean.a) / norms) / (4 * net.zeta * size),
        }
