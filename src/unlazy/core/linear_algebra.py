"""Factorisations inside programs of many trials: one matrix after the other.

Under `vmap` JAX would hand LAPACK a batch of matrices, which it spreads over XLA's own pool of
threads and waits for, on a thread of that pool. Where two such calls run at once, as in a program
with two readouts on a machine with two cores, all threads wait and none is left to work: the
program hangs for ever. One matrix at a time is done by the thread that asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_Function = TypeVar("_Function", bound=Callable[..., Any])


def one_by_one(function: _Function) -> _Function:
    """Map `function` over a batch one element after the other under `vmap`."""
    mapped: _Function = jax.custom_batching.sequential_vmap(function)
    return mapped


@one_by_one
def solve_positive(
    matrix: Float[Array, "m m"], right: Float[Array, "m ..."]
) -> Float[Array, "m ..."]:
    """The solution of matrix · x = right for a positive definite matrix."""
    return jax.scipy.linalg.solve(matrix, right, assume_a="pos")


@one_by_one
def orthogonal_triangular(
    matrix: Float[Array, "n m"],
) -> tuple[Float[Array, "n r"], Float[Array, "r m"]]:
    """Q with orthonormal columns and an upper triangular R with matrix = Q·R."""
    q, upper = jnp.linalg.qr(matrix)
    return q, upper


@one_by_one
def pseudo_inverse(matrix: Float[Array, "n m"]) -> Float[Array, "m n"]:
    """The inverse of Moore and Penrose."""
    return jnp.linalg.pinv(matrix)


@one_by_one
def eigenvectors(matrix: Float[Array, "m m"]) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
    """Eigenvalues of a symmetric matrix, rising, and its eigenvectors as columns."""
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors
