"""Statements of allenzhu2019 that need no learner on a task: complexities, gradients, networks made
by hand.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.core.series import (
    SIGMOID,
    TANH,
    TaylorSeries,
    cosine,
    exponential,
    polynomial_series,
    sine,
)
from unlazy.lab.trials import Instrument
from unlazy.networks.inits import ResNetInit
from unlazy.tasks.hierarchy import HardInstance, PairHierarchy, SmoothHierarchy
from unlazy.tasks.spectrum import corners
from unlazy.theory.minimal_norm import least_error, least_norm, parity_network
from unlazy.theory.smooth_complexity import log_sample_complexity, slope_complexity, tail

#: Functions of Example 4.1 whose C_ε is o(1/ε).
ENTIRE: dict[str, TaylorSeries] = {
    "exp": exponential(),
    "sin": sine(2.0),
    "cos": cosine(),
    "cubic": polynomial_series(1.0, -2.0, 0.0, 0.5),
}
#: Those whose series is cut off after so many times log(1/ε) terms.
CUT = {"tanh": (TANH, 3), "sigmoid": (SIGMOID, 1)}


class HierarchyFacts(Instrument):
    """Errors that the base signal alone leaves, and the degree of the composite signal in x, by
    enumeration.
    """

    alpha: float = eqx.field(converter=float, default=0.3)
    order: int = eqx.field(static=True, default=4)
    examples: int = eqx.field(static=True, default=4096)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_task, key_data = jax.random.split(key)
        pairs = PairHierarchy(alpha=self.alpha, order=self.order).task(key=key_task)
        x, y = pairs.sample(self.examples, key=key_data)
        left = y - pairs.base_signal(x)
        # On all points of the coordinates that enter G(F): its weight at each degree.
        q = 8
        z = np.ones((1 << q, 30))
        z[:, np.asarray(pairs.where)[:q]] = corners(q)
        g = np.asarray(pairs.composite(pairs.base_signal(jnp.asarray(z))))[:, 0]
        full = float(np.mean(g * np.prod(corners(q), axis=1))) ** 2
        hard = HardInstance(d=30, fair=20, k=3, alpha=self.alpha, background="tied").task(
            key=key_task
        )
        xs, ys = hard.sample(self.examples, key=key_data)
        smooth = SmoothHierarchy(alpha=self.alpha).task(key=key_task)
        xm, ym = smooth.sample(self.examples, key=key_data)
        base = smooth.base_signal(xm)
        return {
            "left_by_base": float(jnp.mean(jnp.sum(left**2, axis=1))),
            "weight_of_degree_8": full,
            "hard_left_over_alpha2": float(
                jnp.mean(jnp.sum((ys - hard.base_signal(xs)) ** 2, axis=1))
            )
            / 0.09,
            "hard_input_norm": float(jnp.mean(jnp.linalg.norm(xs, axis=1))),
            "smooth_input_norm": float(jnp.mean(jnp.linalg.norm(xm, axis=1))),
            "smooth_weight_norm": float(jnp.max(jnp.linalg.norm(smooth.w, axis=2))),
            "smooth_mismatch": float(jnp.max(jnp.abs(ym - base - 0.3 * smooth.composite(base)))),
        }


class Complexities(Instrument):
    """Example 4.1: the exponents log C_ε/log(1/ε) for a minute ε, and C_s/C*, of named functions.

    `flat` leaves the decay of c_i away.
    """

    log_inverse: float = eqx.field(converter=float, default=1e6)
    cut_inverse: float = eqx.field(converter=float, default=100.0)
    flat: bool = eqx.field(static=True, default=False)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        entire = dict(ENTIRE)
        if self.flat:  # coefficients 1 throughout: 1/(1 − z)
            entire["exp"] = TaylorSeries("geometric", lambda z: 1 / (1 - z), np.zeros)
        found: dict[str, Any] = {
            "entire_exponent": max(
                log_sample_complexity(series, self.log_inverse) / self.log_inverse
                for series in entire.values()
            ),
            "entire_slope": max(slope_complexity(series, 1.0) for series in entire.values()),
        }
        exponents, missed = [], []
        for series, factor in CUT.values():
            for log_inverse in (self.cut_inverse, 4 * self.cut_inverse):
                degree = 1 if self.flat else int(factor * log_inverse)
                exponents.append(
                    log_sample_complexity(series, log_inverse, degree=degree) / log_inverse
                )
                missed.append(math.log(max(tail(series, degree), 1e-300)) / log_inverse)
        found["cut_exponent"], found["cut_tail_exponent"] = max(exponents), max(missed)
        found["cut_exponent_growth"] = max(exponents[1] / exponents[0], exponents[3] / exponents[2])
        found["cut_slope"] = max(slope_complexity(series, 1.0) for series, _ in CUT.values())
        return found


class GeneralClass(Instrument):
    """Fact A.3 and Lemma A.2 on random functions of Definition A.1: greatest norms and slopes over
    pairs of points, over their bounds.

    Bounds are with C* = 1, the least favourable: C_s is then Σ(i + 1)|c_i|. `steep` makes neurons
    so much steeper without counting it.
    """

    d: int = eqx.field(static=True, default=6)
    k: int = eqx.field(static=True, default=3)
    p: int = eqx.field(static=True, default=4)
    pairs: int = eqx.field(static=True, default=20_000)
    steep: float = eqx.field(converter=float, default=1.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        complexity = slope_complexity(sine(), 1.0)

        def unit(*shape: int) -> np.ndarray:
            v = rng.normal(size=shape)
            result: np.ndarray = v / np.linalg.norm(v, axis=-1, keepdims=True)
            return result

        a, w1, w2 = (
            rng.uniform(-1, 1, (self.k, self.p)),
            unit(self.k, self.p, self.d + 1),
            unit(self.k, self.p, self.d + 1),
        )
        # Directions that add up: the bound is for the worst of the class, which random ones are far
        # from.
        w1[:], w2[:], a[:] = w1[0, 0], w2[0, 0], np.abs(a)

        def function(x: np.ndarray) -> np.ndarray:
            lifted = np.concatenate([x, np.ones((len(x), 1))], axis=1)
            inner = (
                np.einsum("kpd,nd->nkp", w1, lifted) / np.linalg.norm(lifted, axis=1)[:, None, None]
            )
            result: np.ndarray = np.einsum(
                "kp,nkp->nk",
                a,
                self.steep * np.sin(self.steep * inner) * np.einsum("kpd,nd->nkp", w2, lifted),
            )
            return result

        x = rng.normal(size=(self.pairs, self.d)) * rng.exponential(size=(self.pairs, 1))
        y = x + rng.normal(size=x.shape) * 10.0 ** rng.uniform(-4, 1, (self.pairs, 1))
        bound = math.sqrt(self.k) * self.p * complexity
        values, others = function(x), function(y)
        slopes = np.linalg.norm(values - others, axis=1) / np.linalg.norm(x - y, axis=1)
        lifted = np.sqrt(1 + np.sum(x**2, axis=1))
        near = 1e-3 * unit(100, self.d)
        return {
            "slope_over_bound": float(np.max(slopes) / bound),
            "norm_over_lifted_bound": float(
                np.max(np.linalg.norm(values, axis=1) / lifted) / bound
            ),
            "norm_over_printed_bound": float(
                np.max(np.linalg.norm(function(near), axis=1) / np.linalg.norm(near, axis=1))
                / bound
            ),
            "lemma_a2_gap": self._lemma(rng),
        }

    def _lemma(self, rng: np.random.Generator) -> float:
        """The greatest gap on the unit sphere between F and the F' of Lemma A.2, for e^z + cos z,
        whose series has all kinds of terms.
        """
        w = rng.normal(size=self.d)
        w /= np.linalg.norm(w)
        x = rng.normal(size=(500, self.d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        lifted = np.concatenate([x, np.ones((500, 1))], axis=1)
        z = lifted[:, :-1] @ w / np.linalg.norm(lifted, axis=1) * self.steep
        plus = np.sinh(z) + 2  # constant and odd terms
        minus = (np.cosh(z) + np.cos(z) - 2) / np.where(z == 0, 1, z)  # even terms over z
        made = plus * lifted[:, -1] + minus * (lifted[:, :-1] @ w) / math.sqrt(2)
        direct = np.exp(lifted[:, :-1] @ w / math.sqrt(2)) + np.cos(
            lifted[:, :-1] @ w / math.sqrt(2)
        )
        return float(np.max(np.abs(made - direct)))


class GradientFormula(Instrument):
    """Fact C.4: the slope of ½‖y − out‖² along random displacements, by the printed formula and by
    automatic differentiation.

    `without_skip` leaves the part of f(W') that goes through the skip away.
    """

    m: int = eqx.field(static=True, default=50)
    d: int = eqx.field(static=True, default=10)
    k: int = eqx.field(static=True, default=4)
    without_skip: bool = eqx.field(static=True, default=False)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        keys = jax.random.split(key, 4)
        init = ResNetInit(
            m=self.m, w_scale=0.5, b_scale=0.5, v_scale=0.7, e_scale=0.7, a_scale=self.m**-0.5
        )
        net, moved = (
            init(self.d, outputs=self.k, key=keys[0]),
            init(self.d, outputs=self.k, key=keys[1]),
        )
        x, y = jax.random.normal(keys[2], (1, self.d)), jax.random.normal(keys[3], (1, self.k))
        groups = ("w", "b", "v", "e")

        def objective(values: Any) -> Any:
            return 0.5 * jnp.sum((y - net.put(values)(x)) ** 2)

        slopes = jax.grad(objective)(net.get(groups))
        automatic = -sum(jnp.sum(slopes[name] * value) for name, value in moved.get(groups).items())
        first, _ = net.layers(x)
        out1 = (first @ net.a)[0]
        on1 = (x @ net.first_layer.T + net.b[None, :])[0] >= 0
        on2 = net.v @ out1 + net.e >= 0
        through = net.a.T @ jnp.where(on1, moved.first_layer @ x[0] + moved.b, 0)  # A·D_W·W'(x, 1)
        f = net.a.T @ jnp.where(on2, net.v @ through, 0) + (0 if self.without_skip else through)
        g = net.a.T @ jnp.where(on2, moved.v @ out1 + moved.e, 0)
        printed = jnp.sum((y[0] - net(x)[0]) * (f + g))
        second = net.a.T @ jnp.where(on2, net.v @ out1 + net.e, 0)
        return {
            "gradient_gap": float(jnp.abs(printed - automatic) / jnp.abs(automatic)),
            "network_gap": float(
                jnp.max(jnp.abs(net(x)[0] - (0 if self.without_skip else out1) - second))
            ),
        }


class HandMade(Instrument):
    """The closed-form network for a parity of degree q at norms along the axis (in hundredths of
    √d): its error, by enumeration.

    `slip` flips the output sign of so large a share of its neurons.
    """

    q: int = eqx.field(static=True, default=6)
    m: int = eqx.field(static=True, default=192)
    hundredths: tuple[int, ...] = eqx.field(
        static=True, default=(100, 200, 400, 600, 800, 970, 1100, 1250, 1306, 1380)
    )
    slip: float = eqx.field(converter=float, default=0.0)

    @property
    def steps(self) -> tuple[int, ...]:
        return self.hundredths

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        z = corners(self.q)
        chi = np.prod(z, axis=1)
        errors, norms, formulas = [], [], []
        for place in self.hundredths:
            # Beyond the norm at which the error is zero, the spare norm is left unused.
            norm = min(place / 100, least_norm(self.q))
            w, a = parity_network(self.q, self.m, self.q, norm)
            flipped = rng.permutation(self.m)[: round(self.slip * self.m)]
            a[flipped] *= -1
            errors.append(np.mean((np.maximum(z @ w.T / math.sqrt(self.q), 0) @ a - chi) ** 2))
            norms.append(place / 100)
            formulas.append(least_error(self.q, place / 100))
        gap = np.abs(np.array(errors) - np.array(formulas))
        return {
            "error": np.array(errors),
            "norm": np.array(norms),
            "formula_gap": gap,
            "error_floor": np.maximum(errors, 1e-3),
        }
