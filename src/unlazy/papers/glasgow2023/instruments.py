"""The lemmas on XOR as measurements: gradients beside closed forms, deviations beside bounds, learners below the lower bound.

Reference: glasgow2023, Sections 2.1, 2.2, Lemmas C.2, C.3, C.4, Proposition F.1.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.threefry import new_key
from unlazy.kernels.base import Kernel
from unlazy.kernels.gram import gram
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NTK
from unlazy.lab.trials import Instrument
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.mean_field import mean_field_sgd, second_layer
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.gradients import (
    PHASE1_RATE,
    coordinate_deviation_bound,
    network_deviation_bound,
    population_gradient,
    rotation_invariant_bound,
)
from unlazy.papers.glasgow2023.probes import parts
from unlazy.papers.glasgow2023.sample_size import drawn_batch, drawn_task
from unlazy.papers.glasgow2023.training import Training
from unlazy.solvers.exact import learning_curve
from unlazy.tasks.multi_index import MultiIndex
from unlazy.tasks.spectrum import corners


def _weights(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both layers in double precision, the second in mean-field scaling."""
    return np.asarray(model.first_layer).astype(np.float64), np.asarray(second_layer(model)).astype(np.float64)


class TaskFacts(Instrument):
    """The task counted over the whole cube: what the label correlates with, how often it is +1, its leap and information exponent."""

    d: int = eqx.field(static=True, default=10)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Count."""
        family = MultiIndex(d=self.d, where=(0, 1))
        x = corners(self.d)
        y = np.asarray(family.task(key=key).target(jnp.asarray(x, jnp.result_type(float))))
        pairs = np.array([np.mean(y * x[:, i] * x[:, j]) for i in range(self.d) for j in range(i)])
        return {
            "mean_label": np.mean(y),
            "single_correlation": np.max(np.abs(y @ x)) / len(y),
            "pair_correlation": np.max(np.abs(pairs)),
            "correlated_pairs": float(np.sum(np.abs(pairs) > 0)),
            "leap": float(family.leap),
            "information_exponent": float(family.information_exponent),
        }

    @property
    def work(self) -> float:
        """All points times all pairs."""
        return 2.0**self.d * self.d**2


class LiteralStep(Instrument):
    """One step of the learner beside the formulas of Section 2.2 written out; `difference` is relative to the step's length.

    `norm_error` and `balance_error` say how far the initial network is from ‖w‖ = θ and |a| = ‖w‖.
    """

    d: int = eqx.field(static=True, default=24)
    width: int = eqx.field(static=True, default=16)
    batch: int = eqx.field(static=True, default=64)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Step both."""
        eta, theta = 0.5, 0.3
        learner = mean_field_sgd(width=self.width, batch=self.batch, radius=theta, step=eta, record=(0, 1), steps=2)
        task = MultiIndex(d=self.d).task(key=new_key(0))
        trace = learner.fit(task.sampler, 2 * self.batch, key=key)
        # The examples of step 0: the training loop folds stage and step into the third of the learner's keys.
        key_order = jax.random.split(key, 3)[2]
        x, y = task.draw(self.batch, jax.random.fold_in(jax.random.fold_in(key_order, 0), 0))
        before, after = trace.at(0), trace.at(1)
        (w, a), (moved_w, moved_a) = _weights(before), _weights(after)
        points, labels = np.asarray(x), np.asarray(y)
        z = points @ w.T
        f = np.mean(a * np.maximum(z, 0), axis=1)
        slope = -2 * labels * np.exp(-labels * f) / (1 + np.exp(-labels * f))
        dw = -eta * (a[:, None] * ((slope[:, None] * (z > 0)).T @ points)) / self.batch
        da = -eta * (slope @ np.maximum(z, 0)) / self.batch
        moved_w, moved_a = moved_w - w, moved_a - a
        difference = np.sqrt(np.sum((moved_w - dw) ** 2) + np.sum((moved_a - da) ** 2)) / np.sqrt(np.sum(dw**2) + np.sum(da**2))
        norms = np.linalg.norm(w, axis=1)
        return {
            "difference": difference,
            "norm_error": np.max(np.abs(norms / theta - 1)),
            "balance_error": np.max(np.abs(np.abs(a) / norms - 1)),
        }

    @property
    def work(self) -> float:
        """A step."""
        return 4.0 * self.batch * self.d * self.width


class PopulationGradients(Instrument):
    """Exact gradients of L₀ for random neurons, in each of `dimensions`.

    `error`: greatest difference to a reference over the neurons, relative to |a|·‖w‖; the reference is all 2^d points where d ≤ 12,
    otherwise `points` drawn ones.
    `rate_ratio`: median over neurons of −⟨w_sig, ∇⟩/‖w_sig‖², over its limit τ·|a|/‖w‖ with τ = 1/√(2π).
    """

    dimensions: tuple[int, ...] = eqx.field(static=True, default=(8, 12, 32, 256))
    neurons: int = eqx.field(static=True, default=4)
    points: int = eqx.field(static=True, default=100_000)

    @property
    def steps(self) -> tuple[int, ...]:
        """The dimensions."""
        return self.dimensions

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Compare."""
        error, rate = [], []
        for d in self.dimensions:
            key_net, key_points = jax.random.split(jax.random.fold_in(key, d))
            task = drawn_task(MultiIndex(d=d, where=(0, 1)), key_net)
            net = SphereInit(p=self.neurons, radius=1.0)(d, key=key_net)
            x = corners(d) if d <= 12 else np.asarray(drawn_batch(task, self.points, key_points).x)
            y = -x[:, 0] * x[:, 1]
            w, a = _weights(net)
            split = parts(task, net)
            worst, rates = 0.0, []
            for j in range(self.neurons):
                z = x @ w[j]
                reference = a[j] * np.mean((y * ((z > 0) + 0.5 * (z == 0)))[:, None] * x, axis=0)  # −∇_w L₀
                signal, opposite = float(split.signal[j]), float(split.opposite[j])
                exact = population_gradient(signal, opposite, w[j, 2:], a[j], coordinates=d <= 32)
                own = np.array([w[j, 0] - w[j, 1], w[j, 1] - w[j, 0]]) / 2 if a[j] > 0 else np.full(2, (w[j, 0] + w[j, 1]) / 2)
                terms = [exact.signal - own @ reference[:2], exact.opposite - (w[j, :2] - own) @ reference[:2]]
                terms.append(exact.rest - w[j, 2:] @ reference[2:])
                if d <= 32:
                    terms.extend(exact.coordinates - w[j, 2:] * reference[2:])
                worst = max(worst, float(np.max(np.abs(terms))) / abs(a[j]))
                rates.append(exact.signal / signal**2 / (PHASE1_RATE * abs(a[j])))
            error.append(worst)
            rate.append(float(np.median(rates)))
        return {"error": np.array(error), "rate_ratio": np.array(rate)}

    @property
    def work(self) -> float:
        """The reference."""
        return sum(2.0 * self.neurons * min(2**d, self.points) * d for d in self.dimensions)


@eqx.filter_jit
def _deviation(task: Any, model: Any, key: PRNGKeyArray, points: int, coordinates: int) -> tuple[Array, Array, Array, Array]:
    """∇L_ρ − ∇L₀ of all neurons over `points` drawn examples, and how often the chosen coordinates decide the neuron's sign."""
    x, y = task.draw(points, key)
    z = x @ model.first_layer.T
    a = second_layer(model)
    difference = -2 * y * jax.nn.sigmoid(-y * model(x)) + y  # ℓ'_ρ − ℓ'_0
    open_ = (z > 0) * difference[:, None]
    first = a[:, None] * (open_.T @ x) / points
    second = jnp.mean(jax.nn.relu(z) * difference[:, None], axis=0)
    # The two that matter and some others.
    at = jnp.concatenate([task.where, jnp.argsort(jnp.isin(jnp.arange(task.d), task.where))[:coordinates]])
    w = model.first_layer[:, at]  # p c
    near = jnp.mean(jnp.abs(z[:, :, None] - x[:, None, at] * w) <= jnp.abs(w), axis=0)
    return first, second, at, near


class Deviations(Instrument):
    """How far the gradients of a trained network are from those of L₀, over the lemmas' bounds: greatest ratio of a neuron along training.

    `first_ratio`, `second_ratio`: ‖∇_w L_ρ − ∇_w L₀‖ over 2·|a|·E‖a·w‖ and its like for a (Lemma C.2). `coordinate_ratio`: of
    |∇_i L_ρ − ∇_i L₀| over the bound of Lemma C.3, for the two coordinates that matter and some others. Expectations are means over
    `points` examples.
    """

    training: Training
    record: tuple[int, ...] = eqx.field(static=True, kw_only=True)
    points: int = eqx.field(static=True, default=16_384, kw_only=True)
    coordinates: int = eqx.field(static=True, default=6, kw_only=True)

    @property
    def steps(self) -> tuple[int, ...]:
        """The recorded steps."""
        return self.record

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Train and compare."""
        key_run, key_points = jax.random.split(key)
        task, trace = self.training.run(self.record, key=key_run)
        found: dict[str, list[float]] = {"first_ratio": [], "second_ratio": [], "coordinate_ratio": [], "size": []}
        for index in range(len(self.record)):
            model = trace.at(index)
            first, second, at, near = (np.asarray(v) for v in _deviation(task, model, key_points, self.points, self.coordinates))
            w, a = _weights(model)
            norms = np.linalg.norm(w, axis=1)
            size = float(np.mean(np.abs(a) * norms))
            found["size"].append(size)
            found["first_ratio"].append(float(np.max(np.linalg.norm(first, axis=1) / network_deviation_bound(a, size))))
            found["second_ratio"].append(float(np.max(np.abs(second) / (2 * norms * size))))
            bounds = [
                coordinate_deviation_bound(a, size, float(np.mean(np.abs(a * w[:, i]))), near[:, c], self.training.d)
                for c, i in enumerate(at)
            ]
            found["coordinate_ratio"].append(max(float(np.max(np.abs(first[:, i]) / bounds[c])) for c, i in enumerate(at)))
        return {name: np.array(values) for name, values in found.items()}

    @property
    def work(self) -> float:
        """Training and the means."""
        looks = len(self.record) * self.points * self.training.width * (2 * self.training.d + 8 * self.coordinates)
        return self.training.work(self.record[-1]) + looks


class BelowTheBound(Instrument):
    """Rotation-invariant learners with n = ⌊d/log² d⌋ examples, for each dimension: `bound`, and the errors of two kernels and of SGD.

    SGD trains both layers on its n examples, all at once, for `length` steps.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True, default=(1200, 2048))
    test: int = eqx.field(static=True, default=4096)
    length: int = eqx.field(static=True, default=100)
    width: int = eqx.field(static=True, default=64)

    @property
    def steps(self) -> tuple[int, ...]:
        """The dimensions."""
        return self.dimensions

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Learn from too little."""
        kernels: dict[str, Kernel] = {"ntk_error": NTK(), "quadratic_error": Polynomial(2, 0.0)}
        found: dict[str, list[float]] = {name: [] for name in ("bound", "samples", "sgd_error", *kernels)}
        for d in self.dimensions:
            n, bound = rotation_invariant_bound(d)
            key_task, key_sample, key_test, key_net = jax.random.split(jax.random.fold_in(key, d), 4)
            task = drawn_task(MultiIndex(d=d), key_task)
            (x, y), (z, t) = drawn_batch(task, n, key_sample), drawn_batch(task, self.test, key_test)
            for name, kernel in kernels.items():
                K, K_test = np.asarray(gram(kernel, x)), np.asarray(gram(kernel, z, x))
                scores = learning_curve(K, K_test, np.asarray(y), 1e-4 * float(K[0, 0]), sizes=[n])[0]
                found[name].append(float(np.mean(scores * np.asarray(t) <= 0)))
            stage = Descent({"w": 2 * 0.5 * self.width, "a": 2 * 0.5 / self.width}, steps=self.length, loss="logistic")
            learner = GradientDescent(SphereInit(p=self.width, radius=0.3), (stage,))
            model = _fitted(learner, task, n, key_net)
            found["sgd_error"].append(float(np.mean(np.asarray(model(z) * t) <= 0)))
            found["bound"].append(bound)
            found["samples"].append(float(n))
        return {name: np.array(values) for name, values in found.items()}

    @property
    def work(self) -> float:
        """Mostly the test points."""
        return sum(float(d) * (self.test * 3 * self.width + d * self.length) for d in self.dimensions)


_fitted = eqx.filter_jit(lambda learner, task, n, key: learner.fit(task.sampler, n, key=key).at(0))
