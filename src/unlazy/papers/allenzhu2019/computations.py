"""Exact computations of allenzhu2019: complexities, gradients and constructed networks."""

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
from unlazy.lab.trials import ExactComputation
from unlazy.networks.inits import ResNetInit
from unlazy.tasks.hierarchy import HardInstance, PairHierarchy, SmoothHierarchy
from unlazy.tasks.spectrum import corners
from unlazy.theory.minimal_norm import min_error, min_norm, parity_network
from unlazy.theory.smooth_complexity import log_sample_complexity, slope_complexity, tail

#: Functions of Example 4.1 whose C_ε is o(1/ε).
ENTIRE: dict[str, TaylorSeries] = {
    "exp": exponential(),
    "sin": sine(2.0),
    "cos": cosine(),
    "cubic": polynomial_series(1.0, -2.0, 0.0, 0.5),
}
#: Functions whose series is truncated, with the degree in units of log(1/ε).
CUT = {"tanh": (TANH, 3), "sigmoid": (SIGMOID, 1)}


class HierarchyFacts(ExactComputation):
    """Errors of the base signal alone, Fourier weight of the composite signal, and norms.

    Each quantity is defined in quantities.csv.
    """

    alpha: float = eqx.field(converter=float, default=0.3)
    order: int = eqx.field(static=True, default=4)
    examples: int = eqx.field(static=True, default=4096)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        key_task, key_data = jax.random.split(key)
        pairs = PairHierarchy(alpha=self.alpha, order=self.order).task(key=key_task)
        x, y = pairs.sample(self.examples, key=key_data)
        left = y - pairs.base_signal(x)
        # Enumerate the eight coordinates on which the first output of G(F) depends.
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


class Complexities(ExactComputation):
    """Example 4.1: log C_ε/log(1/ε) for very small ε, and C_s/C*, of common functions.

    `flat` replaces e^z − 1 by the geometric series and truncates all series at degree 1.
    """

    log_inverse: float = eqx.field(converter=float, default=1e6)
    cut_inverse: float = eqx.field(converter=float, default=100.0)
    flat: bool = eqx.field(static=True, default=False)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        entire = dict(ENTIRE)
        if self.flat:  # all coefficients are 1: 1/(1 − z)
            entire["exp"] = TaylorSeries("geometric", lambda z: 1 / (1 - z), np.zeros)
        measured: dict[str, Any] = {
            "entire_exponent": max(
                log_sample_complexity(series, self.log_inverse) / self.log_inverse
                for series in entire.values()
            ),
            "entire_slope": max(slope_complexity(series, 1.0) for series in entire.values()),
        }
        exponents, tails = [], []
        for series, factor in CUT.values():
            for log_inverse in (self.cut_inverse, 4 * self.cut_inverse):
                degree = 1 if self.flat else int(factor * log_inverse)
                exponents.append(
                    log_sample_complexity(series, log_inverse, degree=degree) / log_inverse
                )
                tails.append(math.log(max(tail(series, degree), 1e-300)) / log_inverse)
        measured["cut_exponent"], measured["cut_tail_exponent"] = max(exponents), max(tails)
        measured["cut_exponent_growth"] = max(
            exponents[1] / exponents[0], exponents[3] / exponents[2]
        )
        measured["cut_slope"] = max(slope_complexity(series, 1.0) for series, _ in CUT.values())
        return measured


class GeneralClass(ExactComputation):
    """Fact A.3 on random functions of Definition A.1.

    Maximum norms and Lipschitz ratios over random points, ÷ their bounds with C* = 1, the smallest
    constant: C_s = Σ(i + 1)|c_i|. `steep` scales the neurons without changing the bounds.
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
        # Equal directions add up. Random ones would be far from the worst case of the bound.
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
        }


class SphereClass(ExactComputation):
    """Lemma A.2: a function of Concept 1 and its form in Concept 2 on the unit sphere.

    F = e^z + cos z, whose series has constant, odd and even terms. `steep` scales z in one form.
    """

    d: int = eqx.field(static=True, default=6)
    steep: float = eqx.field(converter=float, default=1.0)

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        w = rng.normal(size=self.d)
        w /= np.linalg.norm(w)
        x = rng.normal(size=(500, self.d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        lifted = np.concatenate([x, np.ones((500, 1))], axis=1)
        z = lifted[:, :-1] @ w / np.linalg.norm(lifted, axis=1) * self.steep
        plus = np.sinh(z) + 2  # constant and odd terms
        minus = (np.cosh(z) + np.cos(z) - 2) / np.where(z == 0, 1, z)  # even terms over z
        lemma = plus * lifted[:, -1] + minus * (lifted[:, :-1] @ w) / math.sqrt(2)
        direct = np.exp(lifted[:, :-1] @ w / math.sqrt(2)) + np.cos(
            lifted[:, :-1] @ w / math.sqrt(2)
        )
        return {"lemma_a2_gap": float(np.max(np.abs(lemma - direct)))}


class GradientFormula(ExactComputation):
    """Fact C.4: directional derivative of ½‖y − out‖² by formula and automatic differentiation.

    `without_skip` omits the part of f(W') from the skip connection.
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

        gradient = jax.grad(objective)(net.get(groups))
        automatic = -sum(
            jnp.sum(gradient[name] * value) for name, value in moved.get(groups).items()
        )
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


class HandMade(ExactComputation):
    """Error of the closed-form network for a parity of degree q; the axis is 100·‖W‖_F/√d.

    `error`: mean squared error over all inputs. `norm`: bound on ‖W‖_F/√d. `formula_gap`:
    difference to the closed-form error. `wrong_signs`: fraction of neurons with flipped output.
    """

    q: int = eqx.field(static=True, default=6)
    m: int = eqx.field(static=True, default=192)
    hundredths: tuple[int, ...] = eqx.field(
        static=True, default=(100, 200, 400, 600, 800, 970, 1100, 1250, 1306, 1380)
    )
    wrong_signs: float = eqx.field(converter=float, default=0.0, metadata={"key": "slip"})

    axis = "hundredths"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        z = corners(self.q)
        chi = np.prod(z, axis=1)
        errors, norms, formulas = [], [], []
        for hundredth in self.hundredths:
            # The error is zero at `min_norm`, so a larger norm is not used.
            norm = min(hundredth / 100, min_norm(self.q))
            w, a = parity_network(self.q, self.m, self.q, norm)
            flipped = rng.permutation(self.m)[: round(self.wrong_signs * self.m)]
            a[flipped] *= -1
            errors.append(np.mean((np.maximum(z @ w.T / math.sqrt(self.q), 0) @ a - chi) ** 2))
            norms.append(hundredth / 100)
            formulas.append(min_error(self.q, hundredth / 100))
        gap = np.abs(np.array(errors) - np.array(formulas))
        return {
            "error": np.array(errors),
            "norm": np.array(norms),
            "formula_gap": gap,
            "error_floor": np.maximum(errors, 1e-3),
        }
