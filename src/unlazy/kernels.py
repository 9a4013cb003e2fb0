"""Kernels: fixed features, given by their inner products, and their Gram matrices by blocks.

A kernel follows the precision of its inputs: float32, or float64 inside `jax.enable_x64(True)`. All of the kernels here see their inputs
only through inner products, so an orthogonal map of the inputs changes nothing. Kernels of infinitely wide networks are in
`unlazy.infinite_width`.

Rounding: angles and distances between nearly equal points come from differences of products and are known to about √eps only (3e-4 in
single, 1e-8 in double precision). What depends on them linearly (`Laplace`, `ArcCosine(0)`, the slope part of a ReLU tangent kernel) has
that error at near-duplicates; everything else has errors of order eps. The diagonal of a Gram matrix is always exact.
"""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from unlazy.errors import require

#: One point a row, as JAX or as NumPy holds it.
Points = Float[Array, "n d"] | Float[np.ndarray, "n d"]

#: Rows and columns of a block of a Gram matrix: a few blocks fit into a core's cache, and a block is long enough to keep it busy.
BLOCK = 512


class Kernel(eqx.Module):
    """A symmetric, positive semi-definite function k(x, z)."""

    @abstractmethod
    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """k(x_i, z_j) for all pairs, all at once; `gram` does large ones by blocks."""

    @abstractmethod
    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """k(x_i, x_i), without the rounding errors of ⟨x_i, x_i⟩ taken from a matrix product."""


class ProductKernel(Kernel):
    """A kernel that is a function of ⟨x, z⟩, ‖x‖² and ‖z‖²."""

    @abstractmethod
    def of_products(self, xz: Float[Array, "n m"], xx: Float[Array, "n 1"], zz: Float[Array, "1 m"], d: int) -> Float[Array, "n m"]:
        """The kernel from inner products `xz` and squared norms `xx`, `zz` of inputs of size d."""

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """k(x_i, z_j) for all pairs."""
        return self.of_products(x @ z.T, squared_norm(x)[:, None], squared_norm(z)[None, :], x.shape[1])


def squared_norm(x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """‖x_i‖²."""
    return jnp.sum(jnp.square(x), axis=1)


def inverse_root(q: Float[Array, "..."]) -> Float[Array, "..."]:
    """1/√q, and 0 at q = 0: a zero vector is taken to be orthogonal to all others."""
    positive = q > 0
    return jnp.where(positive, jax.lax.rsqrt(jnp.where(positive, q, 1)), 0)


def cosine(c: Float[Array, "n m"], qx: Float[Array, "n 1"], qz: Float[Array, "1 m"]) -> Float[Array, "n m"]:
    """c/√(qx·qz), kept within [−1, 1] against rounding."""
    return jnp.clip(c * inverse_root(qx) * inverse_root(qz), -1, 1)


#: arcsin(t) = t + t·z·P(z)/Q(z) with z = t² for |t| ≤ ½: the coefficients of Sun's fdlibm (asin, error below 1 ulp) and, for single
#: precision, of Moshier's Cephes (asinf, a polynomial).
_ASIN_P = (
    3.47933107596021167570e-05,
    7.91534994289814532176e-04,
    -4.00555345006794114027e-02,
    2.01212532134862925881e-01,
    -3.25565818622400915405e-01,
    1.66666666666666657415e-01,
)
_ASIN_Q = (7.70381505559019352791e-02, -6.88283971605453293030e-01, 2.02094576023350569471, -2.40339491173441421878, 1.0)
_ASIN_SINGLE = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)


def arcsin(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """arcsin(t) for |t| ≤ 1 to rounding. Branch-free, and several times faster on processors than `jnp.arcsin`."""
    # Above ½ by arcsin(t) = π/2 − 2·arcsin(√((1 − t)/2)).
    size = jnp.abs(t)
    far = size > 0.5
    z = jnp.where(far, (1 - size) / 2, size * size)
    root = jnp.where(far, jnp.sqrt(z), size)
    if t.dtype == jnp.float32:
        value = root + root * z * _horner(_ASIN_SINGLE, z)
    else:
        value = root + root * z * _horner(_ASIN_P, z) / _horner(_ASIN_Q, z)
    return jnp.copysign(jnp.where(far, math.pi / 2 - 2 * value, value), t)


def _horner(coefficients: tuple[float, ...], z: Float[Array, "..."]) -> Float[Array, "..."]:
    value = jnp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        value = value * z + c
    return value


class Linear(ProductKernel):
    """k(x, z) = ⟨x, z⟩."""

    def of_products(self, xz: Float[Array, "n m"], xx: Float[Array, "n 1"], zz: Float[Array, "1 m"], d: int) -> Float[Array, "n m"]:
        """The inner products."""
        return xz

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """‖x‖²."""
        return squared_norm(x)


class Polynomial(ProductKernel):
    """k(x, z) = (⟨x, z⟩ + offset)^degree."""

    degree: int = eqx.field(static=True)
    offset: float = eqx.field(converter=float, default=1.0)

    def __check_init__(self) -> None:
        """Refuse what is no kernel."""
        require(isinstance(self.degree, int) and self.degree > 0, f"degree must be a positive whole number, but is {self.degree!r}.")
        require(0 <= self.offset < math.inf, f"offset must be a finite number ≥ 0, or the kernel is indefinite, but is {self.offset}.")

    def of_products(self, xz: Float[Array, "n m"], xx: Float[Array, "n 1"], zz: Float[Array, "1 m"], d: int) -> Float[Array, "n m"]:
        """The shifted inner products to a power."""
        return (xz + self.offset) ** self.degree

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """(‖x‖² + offset)^degree."""
        return (squared_norm(x) + self.offset) ** self.degree


class Stationary(Kernel):
    """A kernel of the distance r = ‖x − z‖₂ that is 1 at r = 0."""

    gamma: float = eqx.field(converter=float)

    def __check_init__(self) -> None:
        """Refuse what is no kernel."""
        require(0 < self.gamma < math.inf, f"gamma must be a finite number > 0, but is {self.gamma}.")

    @abstractmethod
    def of_distance(self, squared: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """The kernel from squared distances."""

    def __call__(self, x: Float[Array, "n d"], z: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """k(x_i, z_j) for all pairs."""
        # Far from the origin, ‖x‖² + ‖z‖² − 2⟨x, z⟩ would lose the distance to rounding; distances do not mind the shift.
        centre = jnp.mean(z, axis=0)
        x, z = x - centre, z - centre
        return self.of_distance(jnp.maximum(squared_norm(x)[:, None] + squared_norm(z)[None, :] - 2 * (x @ z.T), 0))

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """1."""
        return jnp.ones_like(x, shape=(len(x),))


class RBF(Stationary):
    """k(x, z) = exp(−gamma·‖x − z‖₂²)."""

    def of_distance(self, squared: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """The Gaussian of the distance."""
        return jnp.exp(-self.gamma * squared)


class Laplace(Stationary):
    """k(x, z) = exp(−gamma·‖x − z‖₂), with the Euclidean distance (scikit-learn's `laplacian_kernel` takes ‖·‖₁)."""

    def of_distance(self, squared: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """The exponential of the distance."""
        return jnp.exp(-self.gamma * jnp.sqrt(squared))


class ArcCosine(ProductKernel):
    """k(x, z) = 2·E[σ(⟨g, x⟩)·σ(⟨g, z⟩)] for g ~ N(0, I) and σ(t) = max(t, 0)^order; at order 0, σ is a step with σ(0) = ½.

    With θ the angle between x and z, k = (‖x‖‖z‖)^order·J(θ)/π, where J is π − θ, sin θ + (π − θ)·cos θ and
    3·sin θ·cos θ + (π − θ)(1 + 2·cos² θ) at the orders 0, 1 and 2.

    Reference: Cho and Saul, Kernel methods for deep learning, 2009.
    """

    order: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        """Refuse other orders."""
        require(self.order in (0, 1, 2), f"order must be 0, 1 or 2, but is {self.order!r}.")

    def of_products(self, xz: Float[Array, "n m"], xx: Float[Array, "n 1"], zz: Float[Array, "1 m"], d: int) -> Float[Array, "n m"]:
        """The kernel from the angle and the norms."""
        t = cosine(xz, xx, zz)
        rest = 0.5 + arcsin(t) / math.pi  # 1 − θ/π
        if self.order == 0:
            return rest
        sine = jnp.sqrt((1 - t) * (1 + t)) / math.pi
        if self.order == 1:
            return jnp.sqrt(xx) * jnp.sqrt(zz) * (sine + rest * t)
        return xx * zz * (3 * sine * t + rest * (1 + 2 * t * t))

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """(1, 1, 3)·‖x‖^{2·order}."""
        q = squared_norm(x)
        if self.order == 0:
            return jnp.where(q > 0, jnp.ones_like(q), 0.5)
        return q if self.order == 1 else 3 * q * q


class ArcSine(ProductKernel):
    """k(x, z) = E[erf(⟨g, x⟩ + h)·erf(⟨g, z⟩ + h)] for g ~ N(0, w_variance·I) and h ~ N(0, b_variance).

    With s(x, z) = w_variance·⟨x, z⟩ + b_variance it is (2/π)·arcsin(2·s(x, z)/√((1 + 2·s(x, x))·(1 + 2·s(z, z)))).

    Reference: Williams, Computing with infinite networks, 1996.
    """

    w_variance: float = eqx.field(converter=float, default=1.0)
    b_variance: float = eqx.field(converter=float, default=0.0)

    def __check_init__(self) -> None:
        """Refuse negative variances."""
        require_variances(self.w_variance, self.b_variance)

    def of_products(self, xz: Float[Array, "n m"], xx: Float[Array, "n 1"], zz: Float[Array, "1 m"], d: int) -> Float[Array, "n m"]:
        """The arcsine of a cosine in a space with one dimension more."""
        c, qx, qz = (self.w_variance * product + self.b_variance for product in (xz, xx, zz))
        return arcsin(cosine(2 * c, 1 + 2 * qx, 1 + 2 * qz)) * (2 / math.pi)

    def diagonal(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        """(2/π)·arcsin(2s/(1 + 2s))."""
        s = self.w_variance * squared_norm(x) + self.b_variance
        return arcsin(2 * s / (1 + 2 * s)) * (2 / math.pi)


def require_variances(w_variance: float, b_variance: float) -> None:
    """Raise `BadInput` unless both are variances and the weights are random at all."""
    require(0 < w_variance < math.inf, f"w_variance must be a finite number > 0, but is {w_variance}.")
    require(0 <= b_variance < math.inf, f"b_variance must be a finite number ≥ 0, but is {b_variance}.")


def gram(kernel: Kernel, x: Points, z: Points | None = None, *, block: int = BLOCK) -> Float[Array, "n m"]:
    """The matrix k(x_i, z_j), made by square blocks in memory that beyond the result is linear in n and m.

    Without z it is k(x_i, x_j) from half of the blocks: exactly symmetric, with the exact diagonal. It has the precision of x. Under
    `jax.jit` and the like, where nothing can be written in place, it is made at once.
    """
    require(isinstance(block, int) and block > 0, f"block must be a positive whole number of rows, but is {block!r}.")
    if isinstance(x, jax.core.Tracer) or isinstance(z, jax.core.Tracer):
        return _traced_gram(kernel, x, z)
    rows = _points("x", x)
    columns = rows if z is None else _points("z", z)
    sizes = rows.shape[1], columns.shape[1]
    require(sizes[0] == sizes[1], f"x and z must have as many columns, but x has {sizes[0]} and z has {sizes[1]}.")
    result = _aligned_empty((len(rows), len(columns)), rows.dtype)
    double = rows.dtype == jnp.float64
    # Up to a power of two, so that few programs are compiled where many small matrices are made.
    block = min(block, max(64, 1 << (max(len(rows), len(columns)) - 1).bit_length()))
    row_blocks = _blocks(rows, block)
    column_blocks = row_blocks if z is None else _blocks(columns, block)

    def fill(corner: tuple[int, int]) -> None:
        i, j = corner
        with jax.enable_x64(double):  # which is a setting of each thread
            part = np.asarray(_block(kernel, row_blocks[i // block], column_blocks[j // block]))
        part = part[: len(rows) - i, : len(columns) - j]
        if z is None and i == j:
            part = np.triu(part) + np.triu(part, 1).T
        result[i : i + block, j : j + block] = part
        if z is None and i != j:
            result[j : j + block, i : i + block] = part.T

    corners = [(i, j) for i in range(0, len(rows), block) for j in range(i if z is None else 0, len(columns), block)]
    if len(corners) == 1:
        fill(corners[0])
    else:
        # XLA spreads plain blocks over the cores by itself, but not those that loop, as quadratures do.
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for _ in threads.map(fill, corners):
                pass
    if z is None:
        np.fill_diagonal(result, np.concatenate([np.asarray(_diagonal(kernel, part)) for part in row_blocks])[: len(rows)])
    return jax.device_put(result)


_block = eqx.filter_jit(lambda kernel, x, z: kernel(x, z))
_diagonal = eqx.filter_jit(lambda kernel, x: kernel.diagonal(x))


def _traced_gram(kernel: Kernel, x: Any, z: Any) -> Float[Array, "n m"]:
    if z is not None:
        return kernel(x, z)
    whole = kernel(x, x)
    upper = jnp.triu(whole, 1)
    return upper + upper.T + jnp.diag(kernel.diagonal(x))


def _points(name: str, x: Points) -> Float[Array, "n d"]:
    """A batch of points as a JAX array, or an error that says what is wrong with it."""
    x = jnp.asarray(x, jnp.result_type(x, jnp.float32))
    require(x.ndim == 2 and x.size > 0, f"{name} must be a matrix of points, one a row, but has the shape {x.shape}.")
    bad = int(np.sum(~np.isfinite(np.asarray(x)).all(axis=1)))  # on the host: no program for each shape
    require(bad == 0, f"{name} must be finite, but {bad} of its {len(x)} rows hold NaN or infinity.")
    return x


def _blocks(x: Float[Array, "n d"], block: int) -> Float[np.ndarray, "b block d"]:
    """The points cut into blocks, the last filled up: one shape, so that one program is compiled.

    It is filled with the mean of its points, which leaves its centre where it is: distances are taken from there, against rounding.
    """
    points = np.asarray(x)
    missing = -len(points) % block
    if missing:
        last = points[len(points) + missing - block :]
        points = np.concatenate([points, np.broadcast_to(last.mean(axis=0), (missing, points.shape[1])).astype(points.dtype)])
    return points.reshape(-1, block, points.shape[1])


def _aligned_empty(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Memory that JAX can take over without a copy, for which it must start at a multiple of 64 bytes."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
