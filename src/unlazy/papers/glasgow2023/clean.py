"""Clean gradients of single neurons, which use the loss derivative at the cluster, g_μ in (0, 2).

    ∇ᶜ_w L = a·E ℓ'(z)·σ'(⟨w, x⟩)·x,   ∇ᶜ_a L = E ℓ'(z)·σ(⟨w, x⟩),
    ℓ'(±μ) = −y(μ)·g_{±μ},   x = z + ξ

Expectations are sums over four clusters and all signs ξ of few coordinates. Neurons are random and
include those for which the bounds are tight: w_perp on two equal coordinates, no w_opp, and the
smallest g at the other clusters.

Reference: glasgow2023, Claims D.6, D.9, Lemmas D.7, D.10, Corollary D.8, Lemma D.4.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.glasgow2023.constructed import LABELS
from unlazy.papers.glasgow2023.gradients import PHASE2_RATE
from unlazy.tasks.spectrum import corners

ROOT = math.sqrt(2)


class Neuron(NamedTuple):
    """‖w_sig‖, ‖w_opp‖ and w_perp of a neuron of μ₁ with a = 1, and g at μ₁, −μ₁, μ₂, −μ₂."""

    signal: float
    opposite: float
    perpendicular: np.ndarray
    g: np.ndarray


class CleanGradient(NamedTuple):
    """Inner products of w_sig/‖w_sig‖, w_opp and w_perp with ∇ᶜ_w L, and ∇ᶜ_a L.

    `beyond` = P(|⟨w_perp, ξ⟩| ≥ √2‖w_opp‖).
    """

    signal: float
    opposite: float
    rest: float
    second: float
    beyond: float


def clean_gradient(neuron: Neuron, flip: float = 1.0) -> CleanGradient:
    """Return the clean gradient by enumeration; `flip` = −1 negates all labels."""
    along = np.array([neuron.signal, neuron.opposite])
    centers = ROOT * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    noise = corners(len(neuron.perpendicular)) @ neuron.perpendicular
    z = (centers @ along)[:, None] + noise[None]  # 4 2^k
    derivative = -flip * LABELS * neuron.g / 4
    active = np.mean(z > 0, axis=1)
    first = (derivative * active) @ centers
    return CleanGradient(
        float(first[0]),
        float(first[1] * neuron.opposite),
        float(derivative @ np.mean((z > 0) * noise, axis=1)),
        float(derivative @ np.mean(np.maximum(z, 0), axis=1)),
        float(np.mean(np.abs(noise) >= ROOT * neuron.opposite)),
    )


def _neurons(rng: np.random.Generator, count: int, k: int, H: float) -> list[Neuron]:
    """Draw neurons of S for ζ = e^{−10H}, with ratios of g of at most e^H."""
    zeta, weight, neurons = math.exp(-10 * H), math.exp(6 * H), []
    for _ in range(count):
        v = rng.normal(size=k)
        v[rng.integers(1, k + 1) :] = 0
        v = rng.permutation(v) / np.linalg.norm(v)
        opposite = float(
            rng.choice([0.0, 0.05, 0.3, 0.7, 2.0, 30.0, 500.0]) * rng.uniform(0.8, 1.2)
        )
        low = rng.uniform(0.05, 0.7)
        g = low * np.exp(H * rng.choice([0.0, 0.5, 1.0], 4))
        g = np.minimum(g, 1.99)
        signal = (weight + opposite) / zeta
        neurons.append(Neuron(signal, opposite, v, g))
    # Two equal coordinates and small g at the other clusters: Khintchine's inequality is an
    # equality, and X = ½.
    equal, g = np.array([1.0, 1.0] + [0.0] * (k - 2)) / ROOT, np.array([1.0, 1.0, 0.5, 0.5])
    return [*neurons, *(Neuron(weight / zeta, opposite, equal, g) for opposite in (0.0, 0.05))]


class CleanNeurons(ExactComputation):
    """Clean gradients of neurons of S versus the lemmas, with X = P(|⟨w_perp, ξ⟩| ≥ √2‖w_opp‖).

    `signal_error`, `second_error`: maximum |ratio − 1|/ζ of −⟨μ/‖μ‖, ∇ᶜ⟩ to |a|·τ·g_μ and of
    −y·∇ᶜ_a to ‖w_sig‖·τ·g_μ (D.6). `rest_ratio`: minimum ⟨w_perp, ∇ᶜ⟩ ÷ g_min·X·‖w_perp‖/(4√2);
    `opposite_slack`: minimum ⟨w_opp, ∇ᶜ⟩/‖w_opp‖ − √2·g_min/8 + √2·g_max·X/4 (D.7). `both_ratio`:
    minimum ⟨w_opp, ∇ᶜ⟩ + e^{6H}⟨w_perp, ∇ᶜ⟩ ÷ g_min·e^{−6H}·(‖w_opp‖ + e^{6H}‖w_perp‖)·√2/320
    (D.8). `beyond`: minimum X if ‖w_perp‖ ≥ 10‖w_opp‖ (D.9). `second_bound`: maximum over arbitrary
    neurons of |∇ᶜ_a| ÷ τ·g_max·‖w‖ (D.10).

    Negative control: `flip` = −1 negates the labels, `gain` multiplies the gradients, `short` is
    added to ‖w_opp‖ in D.9.
    """

    neurons: int = eqx.field(static=True, default=200)
    coordinates: int = eqx.field(static=True, default=8)
    H: float = eqx.field(converter=float, default=1.0, kw_only=True)
    flip: float = eqx.field(converter=float, default=1.0, kw_only=True)
    gain: float = eqx.field(converter=float, default=1.0, kw_only=True)
    short: float = eqx.field(converter=float, default=0.0, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        zeta, weight = math.exp(-10 * self.H), math.exp(6 * self.H)
        rows: dict[str, list[float]] = {
            name: [] for name in ("signal", "second", "rest", "opposite", "both", "beyond", "bound")
        }
        for neuron in _neurons(rng, self.neurons, self.coordinates, self.H):
            exact = clean_gradient(neuron, self.flip)
            gradient = CleanGradient(
                self.gain * exact[0],
                self.gain * exact[1],
                self.gain * exact[2],
                self.gain * exact[3],
                exact.beyond,
            )
            own, low, high = neuron.g[0], float(np.min(neuron.g)), float(np.max(neuron.g))
            rows["signal"].append(abs(-gradient.signal / (PHASE2_RATE * own) - 1) / zeta)
            rows["second"].append(
                abs(-gradient.second / (PHASE2_RATE * own * neuron.signal) - 1) / zeta
            )
            rows["rest"].append(
                gradient.rest / (low * gradient.beyond / (4 * ROOT))
                if gradient.beyond
                else math.inf
            )
            if neuron.opposite:
                slack = (
                    gradient.opposite / neuron.opposite
                    - ROOT * low / 8
                    + ROOT * high * gradient.beyond / 4
                )
                rows["opposite"].append(slack)
            both = gradient.opposite + weight * gradient.rest
            rows["both"].append(both / (low / weight * (neuron.opposite + weight) * ROOT / 320))
            if 10 * neuron.opposite <= 1:
                rows["beyond"].append(self._shortened(neuron))
        for neuron in self._any(rng):
            norm = math.sqrt(
                neuron.signal**2 + neuron.opposite**2 + float(np.sum(neuron.perpendicular**2))
            )
            rows["bound"].append(
                self.gain
                * abs(clean_gradient(neuron, self.flip).second)
                / (PHASE2_RATE * float(np.max(neuron.g)) * norm)
            )
        return {
            "signal_error": max(rows["signal"]),
            "second_error": max(rows["second"]),
            "rest_ratio": min(rows["rest"]),
            "opposite_slack": min(rows["opposite"]),
            "both_ratio": min(rows["both"]),
            "beyond": min(rows["beyond"]),
            "second_bound": max(rows["bound"]),
        }

    def _shortened(self, neuron: Neuron) -> float:
        """Return X; the negative control has a longer w_opp."""
        return clean_gradient(neuron._replace(opposite=neuron.opposite + self.short)).beyond

    def _any(self, rng: np.random.Generator) -> list[Neuron]:
        """Draw arbitrary neurons, including one with w = w_sig."""
        neurons = []
        for _ in range(self.neurons):
            part = rng.exponential(size=3) * rng.integers(0, 2, 3)
            v = rng.normal(size=self.coordinates)
            neurons.append(
                Neuron(
                    1e-9 + part[0],
                    part[1],
                    part[2] * v / np.linalg.norm(v),
                    rng.uniform(0.01, 1.99, 4),
                )
            )
        return [*neurons, Neuron(1.0, 0.0, np.zeros(self.coordinates), np.full(4, 1.0))]


class BaseCase(ExactComputation):
    """Worst case of the chain of Lemma D.4, with ζ = log^{−c/2} d and `H` = −log(ζ)/20 ≥ 1.

    `mass` = 4θ²·(1 + (e^{6H}/ζ)²) ÷ (ζ·log^{2c}(d)·θ²/20): mass outside of S ÷ allowed mass; θ
    cancels.

    Deviation: the factor of log^{2c}(d)·θ² is set to 1/20, since our text is unreadable there.
    """

    d: float = eqx.field(converter=float, default=1e6)
    c: float = eqx.field(converter=float, default=20.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        log_zeta = -self.c / 2 * math.log(math.log(self.d))
        H = -log_zeta / 20
        log_mass = math.log(4) + float(np.logaddexp(0, 2 * (6 * H - log_zeta)))
        return {
            "H": H,
            "mass": math.exp(
                log_mass - (log_zeta + 2 * self.c * math.log(math.log(self.d)) - math.log(20))
            ),
        }
