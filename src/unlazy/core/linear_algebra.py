"""Matrix factorizations inside programs of many trials, one matrix at a time.

Under `vmap` JAX passes LAPACK a batch of matrices. LAPACK distributes the batch over XLA's thread
pool and waits for it on a thread of that pool. If two such calls run at once on a machine with two
cores, all threads wait and the program deadlocks. A single matrix is processed by the calling
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_Function = TypeVar("_Function", bound=Callable[..., Any])


def one_by_one(function: _Function) -> _Function:
    """Map `function` sequentially over a batch under `vmap`."""
    mapped: _Function = jax.custom_batching.sequential_vmap(function)
    return mapped


@one_by_one
def solve_positive(
    matrix: Float[Array, "m m"], right: Float[Array, "m ..."]
) -> Float[Array, "m ..."]:
    """Solve matrix · x = right for a positive definite matrix."""
    return jax.scipy.linalg.solve(matrix, right, assume_a="pos")


@one_by_one
def orthogonal_triangular(
    matrix: Float[Array, "n m"],
) -> tuple[Float[Array, "n r"], Float[Array, "r m"]]:
    """Return Q with orthonormal columns and upper triangular R with matrix = Q·R."""
    q, upper = jnp.linalg.qr(matrix)
    return q, upper


@one_by_one
def pseudo_inverse(matrix: Float[Array, "n m"]) -> Float[Array, "m n"]:
    """Return the Moore–Penrose inverse."""
    return jnp.linalg.pinv(matrix)


@one_by_one
def eigenvectors(matrix: Float[Array, "m m"]) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
    """Return the eigenvalues of a symmetric matrix, ascending, and eigenvectors as columns."""
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors
