"""The lemmas that speak of no training run as instruments: the explicit network, and the components of the first gradient.

Reference: shi2022, Lemmas 5, 6 and 15.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.random import normal
from unlazy.lab.power_laws import slope
from unlazy.lab.trials import Instrument
from unlazy.papers.shi2022.constants import lemma_15, theorem_26
from unlazy.papers.shi2022.explicit import explicit_network
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
        sizes = np.log(self.sizes)
        exponents = {f"{name}_exponent": slope(sizes, np.log(found[name])) for name in ("relevant", "background")}
        return found | {name: np.full(len(sizes), value) for name, value in exponents.items()}

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
