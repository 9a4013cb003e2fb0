import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from unlazy.core.linear_algebra import (
    eigenvectors,
    orthogonal_triangular,
    pseudo_inverse,
    solve_positive,
)

SOURCE = Path(__file__).parents[2] / "src" / "unlazy"
FACTORIZATIONS = {
    "qr",
    "svd",
    "eigh",
    "eig",
    "solve",
    "cholesky",
    "inv",
    "pinv",
    "lstsq",
    "cho_factor",
    "cho_solve",
    "solve_triangular",
}


def test_batched_results_equal_single_results():
    x = jax.random.normal(jax.random.key(0), (3, 6, 4))
    square = jnp.einsum("bnm,bnk->bmk", x, x) + jnp.eye(4)[None]
    solved = jax.vmap(solve_positive)(square, x[:, 0])
    assert np.allclose(jnp.einsum("bmk,bk->bm", square, solved), x[:, 0], atol=1e-4)
    q, upper = jax.vmap(orthogonal_triangular)(x)
    assert np.allclose(q @ upper, x, atol=1e-5) and np.allclose(upper, np.triu(upper))
    assert np.allclose(x @ jax.vmap(pseudo_inverse)(x) @ x, x, atol=1e-4)
    values, vectors = jax.vmap(eigenvectors)(square)
    assert np.allclose(square @ vectors, vectors * values[:, None], atol=1e-4) and np.all(
        np.diff(values, axis=1) >= 0
    )


def test_programs_leave_batches_of_matrices_to_this_module():
    """Batched LAPACK factorizations in a program can deadlock, so only this module uses them."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in FACTORIZATIONS
                and path.name != "linear_algebra.py"
            ):
                name = ast.unparse(node)
                found += (
                    [f"{path.relative_to(SOURCE)}: {name}"]
                    if name.startswith(("jnp.linalg", "jax.scipy.linalg", "jax.numpy"))
                    else []
                )
    assert found == []
