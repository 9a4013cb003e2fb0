"""The lemmas of two-step feature learning as instruments: measured quantities beside their bounds.

Reference: shi2022, Lemmas 5, 6, 15, 19 to 25, Theorem 26.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.losses import hinge
from unlazy.core.metrics import accuracy
from unlazy.core.random import normal
from unlazy.lab.trials import Instrument
from unlazy.learners.gradient import GradientDescent
from unlazy.networks.inits import MirroredInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.shi2022.constants import drift_bound, error_bound, lemma_15, theorem_26
from unlazy.papers.shi2022.explicit import explicit_network
from unlazy.papers.shi2022.learner import TwoStep
from unlazy.tasks.base import Family
from unlazy.tasks.dictionary.patterns import HiddenPatterns, ParityMixture, PatternLaw


class ExplicitLabels(Instrument):
    """The explicit network on `draws` random (A, P) for each k in `counts`: every number of present patterns, with random backgrounds.

    Measures the share of wrong labels, the greatest |g(x) − y|, and the constants of Lemma 5 relative to their bounds: the worst of all
    k so far.
    """

    counts: tuple[int, ...] = eqx.field(static=True)
    draws: int = eqx.field(static=True, default=10)
    D: int = eqx.field(static=True, default=20)

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers k of relevant patterns."""
        return self.counts

    @property
    def work(self) -> float:
        """A forward pass on 64 inputs each."""
        return sum(64.0 * self.draws * 3 * (k + 1) * self.D for k in self.counts)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Label, and compare."""
        rows = []
        for k in self.counts:
            found = [self._one(k, np.random.default_rng([k, i, *np.asarray(jax.random.key_data(key))])) for i in range(self.draws)]
            rows.append({name: max(f[name] for f in found) for name in found[0]})
        return {name: np.maximum.accumulate([row[name] for row in rows]) for name in rows[0]}

    def _one(self, k: int, rng: np.random.Generator) -> dict[str, float]:
        """One random A and P, and a random rate p at which the relevant patterns are present."""
        P = tuple(s for s in range(1, k + 1) if rng.random() < 0.5) or (k,)
        law = PatternLaw(jnp.ones(1), jnp.full(1, rng.uniform(0.05, 0.95)), jnp.full(1, 0.5), self.D, k, P)
        q, _ = np.linalg.qr(rng.normal(size=(self.D, self.D)))
        task = HiddenPatterns(jnp.asarray(q), jnp.asarray(rng.permutation(self.D) < k), law)
        present = rng.random((64, self.D)) < 0.5
        count = np.arange(64) % (k + 1)
        places = np.flatnonzero(task.relevant)
        for row, s in enumerate(count):
            present[row, places] = rng.permutation(k) < s
        x = (present - np.asarray(task.mean)) / float(law.moments.sigma) @ np.asarray(task.dictionary)
        y = np.where(np.isin(count, P), 1.0, -1.0)
        net = explicit_network(task)
        score = np.asarray(net(jnp.asarray(x)))
        reach = np.abs(x @ np.asarray(net.w).T + np.asarray(net.b))
        return {
            "wrong": float(np.mean(score * y <= 0)),
            "distance": float(np.max(np.abs(score - y))),
            "second_layer": float(np.max(np.abs(net.a))) / (32 * k),
            "largest_bias": float(np.max(np.abs(net.b))) / 0.5,
            "inverse_least_bias": 1 / (32 * k * float(np.min(np.abs(net.b)))),
            "reach": float(np.max(reach)),
        }


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """The exponent of a power law: the slope of log y against log x by least squares."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


class FirstGradient(Instrument):
    """The components T_j of the first gradient −a Σ_j M_j T_j on and off A, over the number D of patterns, beside Lemma 15.

    T_j = E[y φ_j σ̃'(⟨q, φ⟩ + b)]. Off A the average over φ̃_j is taken exactly, T_j = po(1−po)/σ̃ · E[y (I(φ̃_j = 1) − I(φ̃_j = 0))]: what is
    left is as small as T_j itself. Ratios are to the lemma's bounds with constants one, the greatest over neurons and all D so far.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True, default=5)
    neurons: int = eqx.field(static=True, default=8)
    n: int = eqx.field(static=True, default=10_000)

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers D of patterns."""
        return self.sizes

    @property
    def work(self) -> float:
        """Four error functions an entry."""
        return 50.0 * self.n * self.neurons * sum(self.sizes)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """All sizes, and the exponents over them."""
        rows = [self._one(D, jax.random.fold_in(key, D)) for D in self.sizes]
        found = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
        for name in ("relevant_ratio", "background_ratio"):
            found[name] = np.maximum.accumulate(found[name])
        sizes = np.array(self.sizes)
        return found | {f"{name}_exponent": np.full(len(sizes), slope(sizes, found[name])) for name in ("relevant", "background")}

    def _one(self, D: int, key: PRNGKeyArray) -> dict[str, Array]:
        family = ParityMixture(d=D, D=D, k=self.k)
        moments = family.moments
        constants = theorem_26(k=self.k, m=self.neurons, T=600, gamma=float(moments.gamma), sigma=float(moments.sigma))
        on, off, beta = _components(family, self.neurons, self.n, constants.w_scale, constants.b_scale, constants.noise, key)
        bound = lemma_15(D=D, k=self.k, m=self.neurons, po=0.5, sigma=float(moments.sigma))
        signal = beta[:, None] * moments.gamma / moments.sigma
        return {
            "relevant": jnp.mean(on),
            "background": jnp.sqrt(jnp.mean(off**2)),
            "beta": jnp.mean(beta),
            "relevant_ratio": jnp.max(jnp.abs(on - signal)) / bound.relevant,
            "background_ratio": jnp.max(jnp.abs(off)) / bound.background,
        }


@eqx.filter_jit
def _components(
    family: ParityMixture, neurons: int, n: int, w_scale: float, b_scale: float, noise: float, key: PRNGKeyArray
) -> tuple[Float[Array, "m k"], Float[Array, "m D-k"], Float[Array, " m"]]:
    """T_j on A, T_j off A, and β, for each neuron."""
    key_task, key_data, key_w, key_b = jax.random.split(key, 4)
    task = family.task(key=key_task)
    z, y = task.draw(n, key_data)
    sigma, k = family.moments.sigma, family.k
    order = jnp.argsort(~task.relevant)  # A first
    z, q = z[:, order], w_scale * normal(key_w, (neurons, family.D))
    present = z > 0

    def active(u: Float[Array, "..."]) -> Float[Array, "..."]:
        """σ̃': the probability that u + ξ lies in (0, 1)."""
        return jax.scipy.stats.norm.cdf(u / noise) - jax.scipy.stats.norm.cdf((u - 1) / noise)

    def one(neuron: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        w, b = neuron
        u = z @ w + b
        on = jnp.mean((y * active(u))[:, None] * z[:, :k], axis=0)
        step = w[k:] / sigma
        there, here = u[:, None] + ~present[:, k:] * step, u[:, None] - present[:, k:] * step
        off = 0.25 / sigma * jnp.mean(y[:, None] * (active(there) - active(here)), axis=0)
        return on, off, jnp.mean(active(z[:, k:] @ w[k:] + b))

    return jax.lax.map(one, (q, b_scale * normal(key_b, (neurons,))))


class SignalToNoise(Instrument):
    """Components of the weights on A relative to those off A, after step 1 and after step 2, over the number of examples.

    After step 1 the background is of a size that no sample removes (Lemma 18); after step 2 only the sample's chance is left, so that the
    ratio keeps growing as √n (Lemmas 20 and 23). Also measures how many examples keep the margin y·g < 1 after step 1 (Lemma 19).
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    D: int = eqx.field(static=True, default=20)
    k: int = eqx.field(static=True, default=3)
    m: int = eqx.field(static=True, default=50)

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of examples."""
        return self.sizes

    @property
    def work(self) -> float:
        """Two passes over the examples, with smoothing."""
        return 2.0 * sum(self.sizes) * 2 * self.m * (3 * self.D + 100)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Both steps for each number of examples."""
        rows = [self._one(n, key) for n in self.sizes]
        found = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
        exponents = {f"{name}_exponent": np.full(len(rows), slope(np.array(self.sizes), found[name])) for name in ("first", "second")}
        return found | exponents | {"gain": found["second"] / found["first"]}

    def _one(self, n: int, key: PRNGKeyArray) -> dict[str, Any]:
        family = ParityMixture(d=self.D, D=self.D, k=self.k)
        moments = family.moments
        c = theorem_26(k=self.k, m=self.m, T=600, gamma=float(moments.gamma), sigma=float(moments.sigma))
        init = MirroredInit(m=self.m, w_scale=c.w_scale, b_scale=c.b_scale, a_scale=c.a_scale)
        key_task, key_init, key_data = jax.random.split(key, 3)
        task, net = family.task(key=key_task), init(self.D, key=key_init)
        net = net.put({"w": net.first_layer @ task.basis.T})  # by coordinates: one component a pattern
        w, b, a, _ = _gradient(net, task, n, c.noise, key_data)
        first = net.put({"w": -c.first * w, "b": net.b - c.first * b, "a": net.a - c.first * a})
        w, _, _, inside = _gradient(first, task, n, c.noise, jax.random.fold_in(key_data, 1))
        second = net.put({"w": -c.second * w})
        return {"first": _ratio(first, task.relevant), "second": _ratio(second, task.relevant), "inside": inside}


def _ratio(net: TwoLayer, relevant: Bool[Array, " D"]) -> Float[Array, ""]:
    """The median over neurons of mean |q_j| on A over the root mean square of q_j off A."""
    w = net.first_layer / jnp.max(jnp.abs(net.first_layer), axis=1, keepdims=True)
    on = jnp.abs(w) @ relevant / jnp.sum(relevant)
    off = jnp.sqrt(w**2 @ ~relevant / jnp.sum(~relevant))
    return jnp.median(on / off)


#: Examples of one call of the gradient.
CHUNK = 4096


def _gradient(net: TwoLayer, task: HiddenPatterns, n: int, noise: float, key: PRNGKeyArray) -> tuple[Any, ...]:
    """The gradient of the smoothed hinge loss over n examples (rounded up to chunks), and the share of them with y·g < 1."""
    chunks = -(-n // CHUNK)
    parts = [_chunk_gradient(net, task, noise, jax.random.fold_in(key, i)) for i in range(chunks)]
    return tuple(sum(part[i] for part in parts) / chunks for i in range(4))


@eqx.filter_jit
def _chunk_gradient(net: TwoLayer, task: HiddenPatterns, noise: float, key: PRNGKeyArray) -> tuple[Any, ...]:
    x, y = task.draw(CHUNK, key)

    def loss(groups: dict[str, Any]) -> tuple[Array, Array]:
        score = net.put(groups)(x, smoothing=noise)
        return jnp.mean(hinge(score, y)), jnp.mean(y * score < 1)

    gradient, inside = jax.grad(loss, has_aux=True)(net.get(("w", "b", "a")))
    return gradient["w"], gradient["b"], gradient["a"], inside


class Drift(Instrument):
    """How far the first layer moves in the classifier steps of size `rate` after step 2, beside Lemma 24's bound, over the steps."""

    learner: GradientDescent
    family: Family
    n: int = eqx.field(static=True)
    rate: float = eqx.field(converter=float)

    def __check_init__(self) -> None:
        """Refuse a learner that does not begin with step 2."""
        begin = self.learner.recorded(self.n)[0]
        require(begin == 2, f"The drift is measured from step 2 on, but the first recorded step is {begin}.")

    @property
    def steps(self) -> tuple[int, ...]:
        """The recorded steps t > 2."""
        return self.learner.recorded(self.n)[1:]

    @property
    def work(self) -> float:
        """One training run."""
        return self.learner.work(self.n, self.family.coordinates)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Train, and compare all weights with those after step 2."""
        models = _fit(self.learner, self.family, self.n, key)[1].models
        start, later = models.at(0), models
        w = np.linalg.norm(later.first_layer[1:] - start.first_layer, axis=2).max(axis=1)
        b = np.abs(later.b[1:] - start.b).max(axis=1)
        a_start = float(np.max(np.abs(start.a)))
        bound = np.array([drift_bound(steps=t - 2, rate=self.rate, a_start=a_start) for t in self.steps])
        length = float(np.median(np.linalg.norm(start.first_layer, axis=1)))
        return {
            "weights": w,
            "biases": b,
            "bound": bound,
            "ratio": np.maximum.accumulate(np.maximum(w, b) / bound),
            "relative": w / length,
        }


class ErrorAgainstWidth(Instrument):
    """Error and hinge loss of the trained network over m, with T = m^{4/3} steps as Theorem 26 asks, beside its bound."""

    family: Family
    k: int = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True)
    n: int = eqx.field(static=True)
    batch: int = eqx.field(static=True, default=500)

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers m of neuron pairs."""
        return self.widths

    def _schedule(self, m: int) -> TwoStep:
        moments = self.family.moments  # type: ignore[attr-defined]
        gamma, sigma = float(moments.gamma), float(moments.sigma)
        return TwoStep.practical(k=self.k, m=m, T=max(4, round(m ** (4 / 3))), gamma=gamma, sigma=sigma, batch=self.batch)

    @property
    def work(self) -> float:
        """All training runs."""
        return sum(self._schedule(m).network().work(self.n, self.family.coordinates) for m in self.widths)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Train each, and test on 20,000 examples."""
        errors, losses = [], []
        for m in self.widths:
            task, trace = _fit(self._schedule(m).network(), self.family, self.n, key)
            x, y = task.sample(20_000, key=jax.random.fold_in(key, 1))
            score = trace.at(-1)(x)
            errors.append(1 - float(accuracy(score, y)) / 100)
            losses.append(float(jnp.mean(hinge(score, y))))
        bound = [error_bound(k=self.k, m=m, T=self._schedule(m).T) for m in self.widths]
        return {"error": np.array(errors), "loss": np.array(losses), "bound": np.array(bound)}


@eqx.filter_jit
def _fit(learner: Any, family: Any, n: int, key: PRNGKeyArray) -> Any:
    key_task, key_learner = jax.random.split(key)
    task = family.task(key=key_task)
    return task, learner.fit(task.sampler, n, key=key_learner)
