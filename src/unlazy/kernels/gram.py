"""Gram matrices by blocks."""

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

#: A matrix of at most so many blocks is made from inner products that are taken on the host.
FEW = 10


def gram(
    kernel: Kernel,
    x: Points,
    z: Float[Array | np.ndarray, "m d"] | None = None,
    *,
    block: int | None = None,
) -> Float[Array, "n m"]:
    """The matrix k(x_i, z_j), made by square blocks in memory that beyond the result is linear in n
    and m.

    Without z it is k(x_i, x_j) from half of the blocks: exactly symmetric, with the exact diagonal.
    It has the precision of x. Under `jax.jit` and the like, where nothing can be written in place,
    it is made at once. A `block` has as many rows as the kernel asks for.
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
        f"x and z must have as many columns, but x has {sizes[0]} and z has {sizes[1]}.",
    )
    result = _aligned_empty((len(rows), len(columns)), rows.dtype)
    double = rows.dtype == jnp.float64
    # Up to a power of two, so that few programs are compiled where many small matrices are made.
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
        if len(corners) <= FEW and isinstance(kernel, ProductKernel | Stationary)
        else _block
    )

    def fill(corner: tuple[int, int]) -> None:
        i, j = corner
        with jax.enable_x64(double):  # which is a setting of each thread
            part = np.asarray(make(kernel, row_blocks[i // block], column_blocks[j // block]))
        part = part[: len(rows) - i, : len(columns) - j]
        if z is None and i == j:
            part = np.triu(part) + np.triu(part, 1).T
        result[i : i + block, j : j + block] = part
        if z is None and i != j:
            result[j : j + block, i : i + block] = part.T

    # XLA spreads plain blocks over the cores by itself, but not those that loop, as quadratures do.
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
    """The kernel from inner products that are taken on the host: its program knows nothing of the
    number of columns.

    Small tables of many widths then share one program, which takes longer to compile than they take
    to fit.
    """
    if isinstance(kernel, Stationary):
        centre = z.mean(axis=0, keepdims=True)
        x, z = x - centre, z - centre
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
    """A batch of points as a JAX array, or an error that says what is wrong with it."""
    x = jnp.asarray(x, jnp.result_type(x, jnp.float32))
    require(
        x.ndim == 2 and x.size > 0,
        f"{name} must be a matrix of points, one a row, but has the shape {x.shape}.",
    )
    bad = int(
        np.sum(~np.isfinite(np.asarray(x)).all(axis=1))
    )  # on the host: no program for each shape
    require(
        bad == 0, f"{name} must be finite, but {bad} of its {len(x)} rows hold NaN or infinity."
    )
    return x


def _blocks(x: Float[Array, "n d"], block: int) -> Float[np.ndarray, "b block d"]:
    """The points cut into blocks, the last filled up: one shape, so that one program is compiled.

    It is filled with the mean of its points, which leaves its centre where it is: distances are
    taken from there, against rounding.
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
    """Memory that JAX can take over without a copy: it starts at a multiple of 64 bytes."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
