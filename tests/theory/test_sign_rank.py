import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.papers.malach2019.computations import all_inputs
from unlazy.tasks.circuits.examples import and_of_ors, parity_circuit
from unlazy.theory.sign_rank import (
    forster_bound,
    least_width,
    lemma23_bound,
    network_matrix,
    razborov_sherstov_bound,
    sign_matrix,
)


def test_the_matrix_of_a_function_has_x_as_rows_and_y_as_columns():
    matrix = sign_matrix(and_of_ors(1, 2))
    bits = all_inputs(2)
    expected = [[1 if np.any(x & y) else -1 for y in bits] for x in bits]
    np.testing.assert_array_equal(matrix, expected)
    with pytest.raises(BadInput, match="at most 20"):
        sign_matrix(and_of_ors(4, 4))  # 32 inputs


def test_bounds_for_known_sign_ranks():
    bits = all_inputs(4).astype(int)
    hadamard = 1 - 2 * (bits @ bits.T % 2)
    assert forster_bound(hadamard) == pytest.approx(4)
    assert razborov_sherstov_bound(hadamard) >= 4 - 1e-9
    product = sign_matrix(parity_circuit(4, [0, 1]))  # sign(x)·sign(y): rank one
    assert (
        forster_bound(product) == pytest.approx(1) and razborov_sherstov_bound(product) <= 1 + 1e-9
    )


def test_bounds_never_exceed_the_rank_of_a_matrix_of_these_signs():
    rng = np.random.default_rng(0)
    for rank in (1, 2, 3):
        signs = np.sign(rng.normal(size=(32, rank)) @ rng.normal(size=(rank, 32)))
        assert max(forster_bound(signs), razborov_sherstov_bound(signs)) <= rank + 1e-9


def test_networks_satisfy_lemma_23():
    rng = np.random.default_rng(1)
    w, v, b, u = (
        rng.integers(-1, 2, (2, 6)),
        rng.integers(-1, 2, (2, 6)),
        np.array([0, 1]),
        np.array([1.0, -0.5]),
    )
    matrix = network_matrix(w, v, b, u)
    assert (
        matrix.shape == (64, 64) and np.linalg.matrix_rank(matrix) <= lemma23_bound(1, 2, 6) == 48
    )
    points = np.where(all_inputs(6), 1, -1)
    x, y = points[5], points[40]
    assert matrix[5, 40] == pytest.approx(float(u @ np.maximum(w @ x + v @ y + b, 0)))


def test_the_width_bound_grows_with_the_root_of_the_sign_rank():
    assert least_width(400.0, 1.0, 8, 1.0) == pytest.approx(2 * least_width(100.0, 1.0, 8, 1.0))
