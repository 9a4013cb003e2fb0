"""Exact computations on XOR: task, one step versus formulas, gradients, reduced dynamics.

Reference: glasgow2023, Sections 2.1, 2.2, Lemmas 4.1 (C.1) and C.4.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.threefry import new_key
from unlazy.lab.trials import ExactComputation
from unlazy.learners.base import keys_of
from unlazy.learners.mean_field import mean_field_sgd, second_layer
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.gradients import PHASE1_RATE, population_gradient
from unlazy.papers.glasgow2023.probes import parts
from unlazy.papers.glasgow2023.reduced import flow, initial, simulate
from unlazy.tasks.base import Batch, Sampler
from unlazy.tasks.multi_index import XOR, MultiIndex, Terms, variables


def _weights(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return both layers in float64, the second in mean-field scaling."""
    return np.asarray(model.first_layer).astype(np.float64), np.asarray(second_layer(model)).astype(
        np.float64
    )


def _whole_cube(family: MultiIndex, key: PRNGKeyArray) -> tuple[np.ndarray, np.ndarray]:
    distribution = family.task(key=key).population
    assert distribution is not None
    population = distribution()
    return np.asarray(population.x, np.float64), np.asarray(population.y, np.float64)


class TaskFacts(ExactComputation):
    """Mean label, correlations, leap and information exponent, over all 2^d inputs.

    The negative control has another `polynomial`.
    """

    d: int = eqx.field(static=True, default=10)
    polynomial: Terms = eqx.field(static=True, default=XOR, kw_only=True)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        family = MultiIndex(
            d=self.d, polynomial=self.polynomial, where=tuple(range(variables(self.polynomial)))
        )
        x, y = _whole_cube(family, key)
        pairs = np.array([np.mean(y * x[:, i] * x[:, j]) for i in range(self.d) for j in range(i)])
        return {
            "mean_label": np.mean(y),
            "single_correlation": np.max(np.abs(y @ x)) / len(y),
            "pair_correlation": np.max(np.abs(pairs)),
            "correlated_pairs": float(np.sum(np.abs(pairs) > 0)),
            "leap": float(family.leap),
            "information_exponent": float(family.information_exponent),
        }


class Always(eqx.Module):
    """Draw that returns the same batch at every step."""

    batch: Batch

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        return self.batch


class LiteralStep(ExactComputation):
    """One step of the learner versus the formulas of Section 2.2.

    `difference`: relative to the norm of the step. `norm_error`, `balance_error`: maximum relative
    deviation of the initial network from ‖w‖ = θ and |a| = ‖w‖. Negative control: formulas with
    step, radius and second layer multiplied by `factor`.
    """

    d: int = eqx.field(static=True, default=24)
    width: int = eqx.field(static=True, default=16)
    batch: int = eqx.field(static=True, default=64)
    factor: float = eqx.field(converter=float, default=1.0, kw_only=True, metadata={"key": "slip"})

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        eta, theta = 0.5, 0.3
        learner = mean_field_sgd(
            width=self.width, batch=self.batch, radius=theta, step=eta, record=(0, 1), steps=2
        )
        task = MultiIndex(d=self.d).task(key=new_key(0))
        x, y = task.draw(self.batch, keys_of(key)[1])
        trace = learner.fit(Sampler(Always(Batch(x, y)), self.d), 2 * self.batch, key=key)
        before, after = trace.at(0), trace.at(1)
        (w, a), (moved_w, moved_a) = _weights(before), _weights(after)
        points, labels = np.asarray(x), np.asarray(y)
        z = points @ w.T
        f = np.mean(a * np.maximum(z, 0), axis=1)
        derivative = -2 * labels * np.exp(-labels * f) / (1 + np.exp(-labels * f))
        dw = (
            -self.factor
            * eta
            * (a[:, None] * ((derivative[:, None] * (z > 0)).T @ points))
            / self.batch
        )
        da = -self.factor * eta * (derivative @ np.maximum(z, 0)) / self.batch
        moved_w, moved_a = moved_w - w, moved_a - a
        difference = np.sqrt(np.sum((moved_w - dw) ** 2) + np.sum((moved_a - da) ** 2)) / np.sqrt(
            np.sum(dw**2) + np.sum(da**2)
        )
        norms = np.linalg.norm(w, axis=1)
        return {
            "difference": difference,
            "norm_error": np.max(np.abs(norms / (self.factor * theta) - 1)),
            "balance_error": np.max(np.abs(np.abs(a) / (self.factor * norms) - 1)),
        }


class PopulationGradientFormulas(ExactComputation):
    """Formulas of Lemma C.4 for random neurons versus sums over all 2^d points; the axis is d.

    `signal_error`, `opposite_error`, `rest_error`, `coordinate_error`: maximum differences over
    neurons for (B1), (B2), (B3) and (B4, all coordinates), ÷ |a|·‖w‖. `scale`: maximum |w_i·∇_i| in
    these units. `printed` uses (B4) with the printed sign. Negative control: `turn` = −1 negates
    all formulas.
    """

    KEY = "PopulationGradients"

    dimensions: tuple[int, ...] = eqx.field(static=True, default=(8, 10, 12))
    neurons: int = eqx.field(static=True, default=8)
    printed: bool = eqx.field(static=True, default=False, kw_only=True)
    turn: float = eqx.field(converter=float, default=1.0, kw_only=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rows = [self._at(d, jax.random.fold_in(key, d)) for d in self.dimensions]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _at(self, d: int, key: PRNGKeyArray) -> dict[str, float]:
        family = MultiIndex(d=d, where=(0, 1))
        task, net = family.task(key=key), SphereInit(p=self.neurons, radius=1.0)(d, key=key)
        x, y = _whole_cube(family, key)
        (w, a), split = _weights(net), parts(task, net)
        worst = dict.fromkeys(
            ("signal_error", "opposite_error", "rest_error", "coordinate_error", "scale"), 0.0
        )
        for j in range(self.neurons):
            z = x @ w[j]
            reference = np.mean((y * ((z > 0) + 0.5 * (z == 0)))[:, None] * x, axis=0) * np.sign(
                a[j]
            )  # −∇_w L₀ / |a|
            exact = population_gradient(
                float(split.signal[j]), float(split.opposite[j]), w[j, 2:], 1.0
            )
            own = (
                np.array([w[j, 0] - w[j, 1], w[j, 1] - w[j, 0]]) / 2
                if a[j] > 0
                else np.full(2, (w[j, 0] + w[j, 1]) / 2)
            )
            coordinates = -exact.coordinates if self.printed else exact.coordinates
            errors = {
                "signal_error": abs(self.turn * exact.signal - own @ reference[:2]),
                "opposite_error": abs(
                    self.turn * exact.opposite - (w[j, :2] - own) @ reference[:2]
                ),
                "rest_error": abs(self.turn * exact.rest - w[j, 2:] @ reference[2:]),
                "coordinate_error": np.max(
                    np.abs(self.turn * coordinates - w[j, 2:] * reference[2:])
                ),
                "scale": np.max(np.abs(w[j, 2:] * reference[2:])),
            }
            worst = {name: max(worst[name], float(value)) for name, value in errors.items()}
        return worst


class StartingGradients(ExactComputation):
    """Gradients of L₀ at initialization ÷ the bounds of Lemma C.17 at t = 0; the axis is d.

    θ = ζ = 1/log d, B₀ = θ·log^{3/2}(d)/√d; maxima over neurons. `across_ratio` = ‖∇_{w_perp} L₀‖ ÷
    3·min(√(θB₀), θ√ζ) (A1; it cannot reach 1 at feasible sizes). `second_ratio` = |∇_a L₀| ÷
    4θ·min(√(θB₀), θ√ζ) (A2). `each_ratio`: maximum over i of |∇_i L₀| ÷ ½·min(B₀, θζ) (A3).
    `controlled`: maximum of ‖w_sig‖/min(B₀, θζ), ‖w_opp‖·√d/(θ·log d) and ‖w_perp‖_∞·√d/(θ·log d),
    which is ≤ 1 for controlled neurons (C1, C2, C5 of Definition C.9). `rate_ratio`: median of
    −⟨w_sig, ∇⟩/‖w_sig‖², ÷ τ = 1/√(2π).

    Negative control: signal components multiplied by `boost`.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True, default=(1024,))
    neurons: int = eqx.field(static=True, default=12)
    boost: float = eqx.field(converter=float, default=1.0, kw_only=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        rows = [self._at(d, rng) for d in self.dimensions]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _at(self, d: int, rng: np.random.Generator) -> dict[str, float]:
        theta = zeta = 1 / math.log(d)
        b0 = theta * math.log(d) ** 1.5 / math.sqrt(d)
        bound = min(math.sqrt(theta * b0), theta * math.sqrt(zeta))
        across, second, each, controlled, rates = [], [], [], [], []
        for _ in range(self.neurons):
            v = rng.normal(size=d)
            v *= theta / np.linalg.norm(v)
            signal, opposite, rest = self.boost * abs(v[0]), abs(v[1]), v[2:]
            gradient = population_gradient(signal, opposite, rest, theta)
            along, other = gradient.signal / signal, gradient.opposite / opposite
            coordinates = np.abs(gradient.coordinates / rest)
            across.append(float(np.linalg.norm(coordinates)) / (3 * bound))
            total = abs(gradient.signal + gradient.opposite + gradient.rest)
            second.append(total / theta / (4 * theta * bound))
            largest = max(float(np.max(coordinates)), (abs(along) + abs(other)) / math.sqrt(2))
            each.append(largest / (0.5 * min(b0, theta * zeta)))
            unit = theta * math.log(d) / math.sqrt(d)
            controlled.append(
                max(
                    signal / min(b0, theta * zeta),
                    opposite / unit,
                    float(np.max(np.abs(rest))) / unit,
                )
            )
            rates.append(along / signal / PHASE1_RATE)
        return {
            "across_ratio": max(across),
            "second_ratio": max(second),
            "each_ratio": max(each),
            "controlled": max(controlled),
            "rate_ratio": float(np.median(rates)),
        }


_initial = eqx.filter_jit(lambda p, d, radius, key: initial(p, d, radius, key=key))


class ReducedPhases(ExactComputation):
    """Reduced dynamics up to the end of phase 1, for any d; θ = η = 1/log^C d, m = d/θ².

    At T₁, the last step with E‖a·w‖ ≤ 1: `end_share`, `end_rest`, `end_size`, `end_gap`, `end_time`
    as in `EndOfPhaseOne`, with c = `power`. `exponent` = C. Negative control: minibatches of
    m/`thin` examples.
    """

    d: float = eqx.field(converter=float, kw_only=True)
    exponent: float = eqx.field(converter=float, default=2.0, kw_only=True)
    power: float = eqx.field(converter=float, default=1.0, kw_only=True)
    width: int = eqx.field(static=True, default=400, kw_only=True)
    thin: float = eqx.field(converter=float, default=1.0, kw_only=True)

    @property
    def radius(self) -> float:
        """θ."""
        return float(math.log(self.d) ** -self.exponent)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_initial, key_noise = jax.random.split(key)
        theta = self.radius
        state = _initial(self.width, self.d, theta, key_initial)
        # In time ηt the signal grows like e^{τt} from θ/√d to about 1.
        length = round(1.3 * math.log(math.sqrt(self.d) / theta) / PHASE1_RATE / theta)
        path = simulate(state, length, theta, ratio=self.thin * theta**2, d=self.d, key=key_noise)
        signal, opposite, rest, a = (
            np.asarray(each, np.float64)
            for each in (path.signal, path.opposite, path.rest, np.abs(path.a))
        )
        square = signal**2 + opposite**2 + rest**2
        size = np.mean(a * np.sqrt(square), axis=1)
        end = len(size) - 1 - int(np.argmax((size <= 1)[::-1]))
        same_sign = [(np.asarray(path.a[end]) > 0) == (label > 0) for label in (1, 1, -1, -1)]
        own = np.asarray(np.where(path.a[end] > 0, path.along[end, :, 0], path.along[end, :, 1]))
        large = signal[end] >= theta * math.log(self.d) ** self.power
        fractions = [
            np.mean(same & large & ((own > 0) == positive))
            for same, positive in zip(same_sign, (True, False, True, False), strict=True)
        ]
        return {
            "end_share": min(fractions),
            "end_rest": np.mean(opposite[end] ** 2 + rest[end] ** 2) / theta**2,
            "end_size": size[end],
            "end_gap": np.mean(square[end] - a[end] ** 2) / math.sqrt(theta),
            "end_time": theta * end / math.log(self.d),
        }


class ReducedTimes(ExactComputation):
    """Training time ηT/log d to a loss of `target` in the reduced dynamics; the axis is d.

    θ = 1/log^C d with C = `exponent`; η → 0 and m → ∞, which θ → 0 makes exact. `share`: initial
    scale θ. `share_printed`: initial scale θ/√p, p = ⌈1/θ⌉. Infinite if it is longer than
    `limit`. Means over p neurons are means over `width` of them. Negative control: `second` = 0
    freezes the second layer.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True)
    exponent: float = eqx.field(converter=float, default=3.0, kw_only=True)
    width: int = eqx.field(static=True, default=400, kw_only=True)
    target: float = eqx.field(converter=float, default=0.1, kw_only=True)
    second: float = eqx.field(converter=float, default=1.0, kw_only=True)
    limit: float = eqx.field(converter=float, default=4.5, kw_only=True)
    intervals: int = eqx.field(static=True, default=400, kw_only=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        shares: dict[str, list[float]] = {"share": [], "share_printed": []}
        for i, d in enumerate(self.dimensions):
            theta = math.log(d) ** -self.exponent
            p = math.ceil(1 / theta)
            for name, radius in (("share", theta), ("share_printed", theta / math.sqrt(p))):
                state = initial(self.width, float(d), radius, key=jax.random.fold_in(key, i))
                step = self.limit * math.log(d) / self.intervals
                path = flow(state, self.intervals, jnp.asarray(step), jnp.asarray(self.second))
                losses = np.mean(2 * np.logaddexp(0, -np.asarray(path, np.float64)), axis=1)
                reached = np.flatnonzero(losses <= self.target)
                first = self.limit * reached[0] / self.intervals if len(reached) else math.inf
                shares[name].append(float(first))
        return {name: np.array(values) for name, values in shares.items()}
