"""Gram matrices, computed by blocks."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from unlazy.core.errors import require, require_whole
from unlazy.core.threads import in_threads
from unlazy.kernels.base import Kernel, Points, ProductKernel
from unlazy.kernels.stationary import Stationary

#: Up to this many blocks, inner products are computed on the host.
MAX_HOST_BLOCKS = 10


def gram(
    kernel: Kernel,
    x: Points,
    z: Float[Array | np.ndarray, "m d"] | None = None,
    *,
    block: int | None = None,
) -> Float[Array, "n m"]:
    """Return the matrix k(x_i, z_j) in the precision of x.

    Square blocks of `block` rows, by default `kernel.block`, keep the memory beyond the result
    linear in n and m. Without z, half of the blocks give k(x_i, x_j), exactly symmetric and with
    the exact diagonal. Under `jax.jit` and other transformations there is one block.
    """
    block = kernel.block if block is None else block
    require_whole("block", block, "rows")
    if isinstance(x, jax.core.Tracer) or isinstance(z, jax.core.Tracer):
        return _traced_gram(kernel, x, z)
    rows = _points("x", x)
    columns = rows if z is None else _points("z", z)
    sizes = rows.shape[1], columns.shape[1]
    require(
        sizes[0] == sizes[1],
        f"x and z must have equally many columns, got {sizes[0]} and {sizes[1]}.",
    )
    result = _aligned_empty((len(rows), len(columns)), rows.dtype)
    double = rows.dtype == jnp.float64
    # Pad to a power of two, so that few programs are compiled for many small matrices.
    block = min(block, max(64, 1 << (max(len(rows), len(columns)) - 1).bit_length()))
    row_blocks = _blocks(rows, block)
    column_blocks = row_blocks if z is None else _blocks(columns, block)

    corners = [
        (i, j)
        for i in range(0, len(rows), block)
        for j in range(i if z is None else 0, len(columns), block)
    ]
    make: Callable[..., Array] = (
        _from_products
        if len(corners) <= MAX_HOST_BLOCKS and isinstance(kernel, ProductKernel | Stationary)
        else _block
    )

    def fill(corner: tuple[int, int]) -> None:
        i, j = corner
        with jax.enable_x64(double):  # a setting per thread
            part = np.asarray(make(kernel, row_blocks[i // block], column_blocks[j // block]))
        part = part[: len(rows) - i, : len(columns) - j]
        if z is None and i == j:
            part = np.triu(part) + np.triu(part, 1).T
        result[i : i + block, j : j + block] = part
        if z is None and i != j:
            result[j : j + block, i : i + block] = part.T

    # XLA runs plain blocks on all cores, but not those with loops, such as quadratures.
    deque(in_threads(fill, corners), maxlen=0)
    if z is None:
        np.fill_diagonal(
            result,
            np.concatenate([np.asarray(_diagonal(kernel, part)) for part in row_blocks])[
                : len(rows)
            ],
        )
    matrix: Array = jax.device_put(result)
    return matrix


_block = eqx.filter_jit(lambda kernel, x, z: kernel(x, z))
_of_products = eqx.filter_jit(lambda kernel, xz, xx, zz, d: kernel.of_products(xz, xx, zz, d))
_of_distance = eqx.filter_jit(lambda kernel, squared: kernel.of_distance(squared))


def _from_products(
    kernel: ProductKernel | Stationary, x: np.ndarray, z: np.ndarray
) -> Float[Array, "n m"]:
    """Return the kernel from inner products computed on the host.

    The program does not depend on the number of columns, so small tables of all widths share it.
    """
    if isinstance(kernel, Stationary):
        center = z.mean(axis=0, keepdims=True)
        x, z = x - center, z - center
    xz, xx, zz = (
        x @ z.T,
        np.sum(np.square(x), axis=1)[:, None],
        np.sum(np.square(z), axis=1)[None, :],
    )
    if isinstance(kernel, Stationary):
        stationary: Array = _of_distance(kernel, np.maximum(xx + zz - 2 * xz, 0))
        return stationary
    result: Array = _of_products(kernel, xz, xx, zz, np.asarray(x.shape[1], x.dtype))
    return result


_diagonal = eqx.filter_jit(lambda kernel, x: kernel.diagonal(x))


def _traced_gram(kernel: Kernel, x: Any, z: Any) -> Float[Array, "n m"]:
    if z is not None:
        return kernel(x, z)
    whole = kernel(x, x)
    upper = jnp.triu(whole, 1)
    return upper + upper.T + jnp.diag(kernel.diagonal(x))


def _points(name: str, x: Points) -> Float[Array, "n d"]:
    """Return the points as a JAX array, or raise `BadInput`."""
    double = jnp.result_type(x) == jnp.float64
    x = jnp.asarray(x, jnp.float64 if double else jnp.float32)
    require(
        x.ndim == 2 and x.size > 0,
        f"{name} must be a nonempty matrix with one point per row, got shape {x.shape}.",
    )
    # On the host, which needs no program per shape.
    bad = int(np.sum(~np.isfinite(np.asarray(x)).all(axis=1)))
    require(bad == 0, f"{name} must be finite; {bad} of its {len(x)} rows contain NaN or infinity.")
    return x


def _blocks(x: Float[Array, "n d"], block: int) -> Float[np.ndarray, "b block d"]:
    """Return the points in blocks of equal size, for one compiled program.

    The last block is padded with the mean of its points, which keeps its center, from which
    stationary kernels compute distances.
    """
    points = np.asarray(x)
    missing = -len(points) % block
    if missing:
        last = points[len(points) + missing - block :]
        points = np.concatenate(
            [
                points,
                np.broadcast_to(last.mean(axis=0), (missing, points.shape[1])).astype(points.dtype),
            ]
        )
    return points.reshape(-1, block, points.shape[1])


def _aligned_empty(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return memory aligned to 64 bytes, which JAX can use without a copy."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
