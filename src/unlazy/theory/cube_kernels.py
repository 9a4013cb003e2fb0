"""Kernel ridge regression on the cube, predicted: eigenvalues of dot-product kernels by degree,
learning curves, sample sizes.

A kernel k(x, z) = κ(⟨x, z⟩/d) on {±1}^d has the products of k coordinates as eigenfunctions, all
C(d, k) of them with one eigenvalue

    λ_k = E[κ(S_d/d)·φ_k],   φ_k = Krawtchouk polynomial / C(d, k),
    equally λ_k = E[(½δ)^k κ(S_{d−k}/d)],

where S_n is a sum of n fair signs and δκ(t) = κ(t + 1/d) − κ(t − 1/d). From the eigenvalues follows
the learning curve in closed form (deterministic equivalent): with κ* from n = Σ_k C(d, k)·λ_k/(λ_k
+ κ*) + ridge/κ* and L_k = λ_k/(λ_k + κ*), the part of degree k is learned to the share L_k, and MSE
= Σ_k b_k(1 − L_k)²·n/(n − Σ_k C(d, k)L_k²), where b_k is the target's weight at degree k. What is
not bias is Gaussian noise.

Reference: Simon, Dickens, Karkada, DeWeese, The eigenlearning framework, 2023; Canatar, Bordelon,
Pehlevan, 2021.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats
from jaxtyping import Array, Float

from unlazy.core.errors import BadInput, require
from unlazy.kernels.base import Kernel, ProductKernel
from unlazy.kernels.wide import WideNetwork
from unlazy.tasks.base import Family
from unlazy.tasks.multi_index import MultiIndex
from unlazy.tasks.spectrum import Spectrum, corners

#: Degrees whose eigenvalues are computed one by one; the trace of all higher ones is known exactly
#: and enters as a ridge.
DEGREES = 5


def profile(kernel: ProductKernel, t: Float[np.ndarray, " n"], d: int) -> Float[np.ndarray, " n"]:
    """κ(t) for inputs with ‖x‖² = d."""
    padded = np.zeros(
        max(256, 1 << (len(t) - 1).bit_length())
    )  # few shapes, so that few programs are compiled
    padded[: len(t)] = t
    with jax.enable_x64(True):
        return np.asarray(_profile(kernel, jnp.asarray(padded), jnp.asarray(float(d))))[: len(t)]


@eqx.filter_jit
def _profile(
    kernel: ProductKernel, t: Float[Array, " n"], d: Float[Array, ""]
) -> Float[Array, " n"]:
    square = jnp.full((1, 1), 1.0) * d
    return kernel.of_products(t[:, None] * d, square, square, d)[:, 0]


def _sign_sums(n: int, most: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Values of a sum of n fair signs and their probabilities, in double precision."""
    reach = min(n, math.ceil(6 * math.sqrt(n)) + 8)
    ups = np.arange((n - reach) // 2, (n + reach) // 2 + 1)
    if len(ups) > 2 * most:  # finer than needed: every so many values stand for their neighbours
        ups = ups[:: max(1, len(ups) // most)]
    weight = np.exp(scipy.stats.binom.logpmf(ups, n, 0.5))
    return 2.0 * ups - n, weight / np.sum(weight)


def krawtchouk_eigenvalues(
    kernel: ProductKernel, d: int, degrees: int
) -> Float[np.ndarray, " {degrees}+1"]:
    """λ_0 … λ_degrees by the recursion (d − k)·φ_{k+1} = (d − 2j)·φ_k − k·φ_{k−1}, to an absolute
    error of about 1e-16·κ(1).
    """
    j = np.arange(d + 1)
    values = np.exp(scipy.stats.binom.logpmf(j, d, 0.5)) * profile(kernel, (d - 2 * j) / d, d)
    before, now = np.zeros(d + 1), np.ones(d + 1)
    found = []
    for k in range(degrees + 1):
        found.append(float(np.sum(values * now)))
        if k < d:
            before, now = now, ((d - 2 * j) * now - k * before) / (d - k)
    return np.array(found)


def smooth_eigenvalues(
    kernel: ProductKernel, d: int, degrees: int
) -> Float[np.ndarray, " {degrees}+1"]:
    """λ_0 … λ_degrees without cancellation, for many dimensions: d^{−k}·E κ^{(k)}(t), t·d = S_{d−k}
    plus k uniform numbers in [−1, 1].

    The derivatives are those of a Chebyshev series of κ where t has its mass, |t| ≤ 8/√d. The
    uniform numbers enter by their variance, which leaves a relative error of order k/d².
    """
    reach = min(0.6, 8 / math.sqrt(d))
    nodes = reach * np.cos(np.pi * (np.arange(65) + 0.5) / 65)
    series = np.polynomial.Chebyshev.fit(
        nodes, profile(kernel, nodes, d), 28, domain=[-reach, reach]
    )
    found = []
    for k in range(degrees + 1):
        total, weight = _sign_sums(d - k)
        t = total * math.sqrt((d - k + k / 3) / (d - k)) / d
        found.append(
            float(np.sum(weight * series.deriv(k)(t) if k else weight * series(t))) / float(d) ** k
        )
    return np.array(found)


@functools.lru_cache(maxsize=256)
def eigenvalues(
    kernel: ProductKernel, d: int, degrees: int = DEGREES
) -> Float[np.ndarray, " degrees"]:
    """λ_0, λ_1, … by degree, each by the formula that is more exact: the recursion, or where it
    cancels the smooth one.
    """
    require(d > 2, f"The cube needs more than 2 dimensions, but d={d}.")
    degrees = min(degrees, d - 1)
    found = (
        krawtchouk_eigenvalues(kernel, d, degrees)
        if d <= 200
        else smooth_eigenvalues(kernel, d, degrees)
    )
    # Parts that vanish by symmetry come out as rounding errors.
    shares = (
        found
        * np.array([float(math.comb(d, k)) for k in range(degrees + 1)])
        / profile(kernel, np.ones(1), d)
    )
    return np.where(shares > 1e-7, found, 0.0)


@dataclasses.dataclass(frozen=True)
class LearningCurve:
    """The predicted learning curve of ridge regression with a kernel on d-dimensional cube data,
    for a target with the given `spectrum`.

    `spectrum` has the Fourier coefficients of the ±1 target in its hidden coordinates.
    """

    kernel: ProductKernel
    d: int
    spectrum: tuple[tuple[tuple[int, ...], float], ...]
    ridge: float = 0.0

    @functools.cached_property
    def _modes(self) -> tuple[np.ndarray, np.ndarray, float]:
        values = eigenvalues(self.kernel, self.d)
        counts = np.array([float(math.comb(self.d, k)) for k in range(len(values))])
        trace = float(profile(self.kernel, np.ones(1), self.d)[0])
        return values, counts, max(trace - float(counts @ values), 0.0) + self.ridge

    def _effective_ridge(self, n: float) -> float:
        values, counts, rest = self._modes

        def surplus(log_kappa: float) -> float:
            kappa = math.exp(log_kappa)
            return float(counts @ (values / (values + kappa))) + rest / kappa - n

        return math.exp(scipy.optimize.brentq(surplus, -80.0, 80.0))

    def learned(self, n: float) -> Float[np.ndarray, " degrees"]:
        """L_k: the share of the target's part of degree k that n examples teach."""
        values = self._modes[0]
        return values / (values + self._effective_ridge(n))

    def squared_error(self, n: float) -> float:
        """The mean squared error."""
        bias, noise = self._bias_and_noise(n)
        return bias + noise

    def _bias_and_noise(self, n: float) -> tuple[float, float]:
        L, counts = self.learned(n), self._modes[1]
        bias = sum(
            c**2 * (1 - (L[sum(index)] if sum(index) < len(L) else 0.0)) ** 2
            for index, c in self.spectrum
        )
        return bias, bias * (n / max(n - float(counts @ L**2), 1e-12) - 1)

    def error(self, n: float) -> float:
        """The share of wrong signs: over the hidden coordinates' patterns, the chance that Gaussian
        noise outweighs the mean prediction.
        """
        L, noise = self.learned(n), self._bias_and_noise(n)[1]
        points = corners(len(self.spectrum[0][0]))
        waves = [
            (c, sum(index), np.prod(points ** np.array(index), axis=1))
            for index, c in self.spectrum
        ]
        label = np.sign(sum(c * wave for c, _, wave in waves))
        mean = sum(c * (L[degree] if degree < len(L) else 0.0) * wave for c, degree, wave in waves)
        return float(np.mean(scipy.special.ndtr(-label * mean / math.sqrt(max(noise, 1e-300)))))

    def sample_size(self, target: float) -> float:
        """The number of examples at which the error falls to `target`."""
        high = 2.0 * self.d
        while self.error(high) > target:
            high *= 1.5
            require(
                high < 1e18,
                f"No feasible number of examples brings this kernel to an error of {target}.",
            )
        return float(scipy.optimize.brentq(lambda n: self.error(n) - target, 1.0, high, xtol=1e-3))


def curve(kernel: ProductKernel, d: int, spectrum: Spectrum, ridge: float = 0.0) -> LearningCurve:
    """The predicted learning curve."""
    return LearningCurve(kernel, d, tuple(sorted(spectrum.items())), ridge)


#: A ridge so small, in units of k(x, x), that it only keeps the prediction finite where n meets the
#: number of features.
RIDGELESS = 1e-6


def predicted_examples(family: Family, kernel: Kernel, target: float) -> float | None:
    """The examples that ridgeless regression with a wide network's kernel is predicted to need for
    an error; None where theory is silent.

    It speaks of hidden coordinates on a cube, whose inputs such a learner sees as they are, ±1.
    """
    if not (
        isinstance(family, MultiIndex)
        and family.distribution == "cube"
        and family.d > 2
        and isinstance(kernel, WideNetwork)
    ):
        return None
    ridge = RIDGELESS * float(kernel.diagonal(jnp.ones((1, family.d)))[0])
    try:
        return curve(kernel, family.d, family.spectrum, ridge).sample_size(target)
    except BadInput:  # no number of examples is enough
        return None
