"""Predicted kernel ridge regression on the cube: eigenvalues, learning curves, sample sizes.

A kernel k(x, z) = κ(⟨x, z⟩/d) on {±1}^d has the products of k coordinates as eigenfunctions, all
C(d, k) of them with one eigenvalue

    λ_k = E[κ(S_d/d)·φ_k],   φ_k = Krawtchouk polynomial / C(d, k),
    equally λ_k = E[(½δ)^k κ(S_{d−k}/d)],

where S_n is a sum of n uniform signs and δκ(t) = κ(t + 1/d) − κ(t − 1/d). The learning curve has a
closed form (deterministic equivalent). Let κ* solve n = Σ_k C(d, k)·λ_k/(λ_k + κ*) + ridge/κ*.
Then the fraction L_k = λ_k/(λ_k + κ*) of the part of degree k is learned, and MSE =
Σ_k b_k(1 − L_k)²·n/(n − Σ_k C(d, k)L_k²), where b_k is the target's weight at degree k. The error
beyond the bias is modeled as Gaussian noise.

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

#: Maximum degree with its own eigenvalue. The exact trace of all higher degrees acts as a ridge.
DEGREES = 5


def profile(kernel: ProductKernel, t: Float[np.ndarray, " n"], d: int) -> Float[np.ndarray, " n"]:
    """Return κ(t) for inputs with ‖x‖² = d."""
    # Padding to few shapes limits the number of compiled programs.
    padded = np.zeros(max(256, 1 << (len(t) - 1).bit_length()))
    padded[: len(t)] = t
    with jax.enable_x64(True):
        return np.asarray(_profile(kernel, jnp.asarray(padded), jnp.asarray(float(d))))[: len(t)]


@eqx.filter_jit
def _profile(
    kernel: ProductKernel, t: Float[Array, " n"], d: Float[Array, ""]
) -> Float[Array, " n"]:
    square = jnp.full((1, 1), 1.0) * d
    return kernel.of_products(t[:, None] * d, square, square, d)[:, 0]


def _sign_sums(n: int, max_values: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a sum of n uniform signs and their probabilities."""
    reach = min(n, math.ceil(6 * math.sqrt(n)) + 8)
    ups = np.arange((n - reach) // 2, (n + reach) // 2 + 1)
    if len(ups) > 2 * max_values:  # a coarser grid suffices
        ups = ups[:: max(1, len(ups) // max_values)]
    weight = np.exp(scipy.stats.binom.logpmf(ups, n, 0.5))
    return 2.0 * ups - n, weight / np.sum(weight)


def krawtchouk_eigenvalues(
    kernel: ProductKernel, d: int, degrees: int
) -> Float[np.ndarray, " {degrees}+1"]:
    """Return λ_0 … λ_degrees by the Krawtchouk recursion.

    The recursion is (d − k)·φ_{k+1} = (d − 2j)·φ_k − k·φ_{k−1}. The absolute error is about
    1e-16·κ(1).
    """
    j = np.arange(d + 1)
    values = np.exp(scipy.stats.binom.logpmf(j, d, 0.5)) * profile(kernel, (d - 2 * j) / d, d)
    before, now = np.zeros(d + 1), np.ones(d + 1)
    result = []
    for k in range(degrees + 1):
        result.append(float(np.sum(values * now)))
        if k < d:
            before, now = now, ((d - 2 * j) * now - k * before) / (d - k)
    return np.array(result)


def smooth_eigenvalues(
    kernel: ProductKernel, d: int, degrees: int
) -> Float[np.ndarray, " {degrees}+1"]:
    """Return λ_0 … λ_degrees without cancellation, for large d.

    λ_k = d^{−k}·E κ^{(k)}(t), where t·d is S_{d−k} plus k uniform numbers in [−1, 1]. The
    derivatives are those of a Chebyshev series of κ on |t| ≤ 8/√d, where t is concentrated. The
    uniform numbers enter by their variance, which leaves a relative error of order k/d².
    """
    reach = min(0.6, 8 / math.sqrt(d))
    nodes = reach * np.cos(np.pi * (np.arange(65) + 0.5) / 65)
    series = np.polynomial.Chebyshev.fit(
        nodes, profile(kernel, nodes, d), 28, domain=[-reach, reach]
    )
    values = []
    for k in range(degrees + 1):
        total, weight = _sign_sums(d - k)
        t = total * math.sqrt((d - k + k / 3) / (d - k)) / d
        values.append(
            float(np.sum(weight * series.deriv(k)(t) if k else weight * series(t))) / float(d) ** k
        )
    return np.array(values)


@functools.lru_cache(maxsize=256)
def eigenvalues(
    kernel: ProductKernel, d: int, degrees: int = DEGREES
) -> Float[np.ndarray, " degrees"]:
    """Return λ_0, λ_1, … by degree.

    Uses the recursion for d ≤ 200 and the smooth formula beyond, where the recursion cancels.
    """
    require(d > 2, f"d must be greater than 2, got {d}.")
    degrees = min(degrees, d - 1)
    values = (
        krawtchouk_eigenvalues(kernel, d, degrees)
        if d <= 200
        else smooth_eigenvalues(kernel, d, degrees)
    )
    # Eigenvalues that vanish by symmetry are computed as rounding errors.
    fractions = (
        values
        * np.array([float(math.comb(d, k)) for k in range(degrees + 1)])
        / profile(kernel, np.ones(1), d)
    )
    return np.where(fractions > 1e-7, values, 0.0)


@dataclasses.dataclass(frozen=True)
class LearningCurve:
    """Predicted learning curve of kernel ridge regression on the d-dimensional cube.

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
        """Return L_k, the learned fraction of the target's part of degree k."""
        values = self._modes[0]
        return values / (values + self._effective_ridge(n))

    def squared_error(self, n: float) -> float:
        """Return the mean squared error."""
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
        """Return the fraction of wrong signs.

        It is the probability that Gaussian noise outweighs the mean prediction, averaged over the
        patterns of the hidden coordinates.
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
        """Return the number of examples at which the error falls to `target`."""
        high = 2.0 * self.d
        while self.error(high) > target:
            high *= 1.5
            require(
                high < 1e18,
                f"No feasible number of examples reaches an error of {target} with this kernel.",
            )
        return float(scipy.optimize.brentq(lambda n: self.error(n) - target, 1.0, high, xtol=1e-3))


def curve(kernel: ProductKernel, d: int, spectrum: Spectrum, ridge: float = 0.0) -> LearningCurve:
    """Return the predicted learning curve."""
    return LearningCurve(kernel, d, tuple(sorted(spectrum.items())), ridge)


#: Ridge, in units of k(x, x), that keeps the prediction finite if n is the number of features.
RIDGELESS = 1e-6


def predicted_examples(family: Family, kernel: Kernel, target: float) -> float | None:
    """Return the predicted sample size of ridgeless regression with a wide-network kernel.

    The prediction is for functions of hidden coordinates on a cube with inputs ±1; None otherwise.
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
    except BadInput:  # no number of examples suffices
        return None
