import math

import jax
import numpy as np
import pytest
import scipy.linalg

from unlazy.core.errors import BadInput
from unlazy.kernels.gram import gram
from unlazy.kernels.products import Polynomial
from unlazy.kernels.wide import NNGP, NTK
from unlazy.tasks.spectrum import corners
from unlazy.theory.cube_kernels import (
    curve,
    eigenvalues,
    krawtchouk_eigenvalues,
    smooth_eigenvalues,
)

PAIR = {(1, 1): -1.0}


@pytest.mark.parametrize("kernel", [NTK(), NNGP(), Polynomial(2, 0.0)])
def test_eigenvalues_are_those_of_the_whole_gram_matrix(kernel):
    d = 8
    with jax.enable_x64(True):
        K = np.asarray(gram(kernel, corners(d)))
    expected = np.sort(np.linalg.eigvalsh(K))[::-1] / 2**d
    found = krawtchouk_eigenvalues(kernel, d, d)
    row = np.sort(
        np.concatenate([np.full(math.comb(d, k), value) for k, value in enumerate(found)])
    )[::-1]
    np.testing.assert_allclose(row, expected, atol=1e-10 * expected[0])


@pytest.mark.parametrize("kernel", [NTK(), NNGP()])
def test_the_formula_for_many_dimensions_continues_the_exact_one(kernel):
    exact, smooth = krawtchouk_eigenvalues(kernel, 300, 4), smooth_eigenvalues(kernel, 300, 4)
    np.testing.assert_allclose(smooth[[0, 1, 2, 4]], exact[[0, 1, 2, 4]], rtol=1e-6)
    # ReLU kernels have no odd part above degree 1.
    assert eigenvalues(kernel, 300)[3] == 0
    # d²·λ₂ has a limit, which cancellation would spoil at 10⁶.
    far = eigenvalues(kernel, 10**6)[2] * 10**12
    assert far == pytest.approx(eigenvalues(kernel, 10**5)[2] * 10**10, rel=1e-3)


def test_the_quadratic_kernel_needs_three_quarters_of_its_features():
    """In many dimensions only ρ = n/C(d, 2) counts: error Φ(−√(ρ/(1 − ρ))), which is 5 % at ρ =
    0.73.
    """
    d = 10_000
    found = curve(Polynomial(2, 0.0), d, PAIR).sample_size(0.05) / math.comb(d, 2)
    assert found == pytest.approx(1.645**2 / (1 + 1.645**2), abs=0.002)


def test_predicted_errors_are_those_of_regressions():
    d, n, kernel = 24, 220, NTK()
    predicted = curve(kernel, d, PAIR, 1e-3)
    rng = np.random.default_rng(0)
    wrong, squared = [], []
    with jax.enable_x64(True):
        for _ in range(6):
            x, z = (2.0 * rng.integers(0, 2, (size, d)) - 1 for size in (n, 1500))
            alpha = scipy.linalg.solve(
                np.asarray(gram(kernel, x)) + 1e-3 * np.eye(n), -x[:, 0] * x[:, 1]
            )
            score = np.asarray(gram(kernel, z, x)) @ alpha
            wrong.append(np.mean(score * -z[:, 0] * z[:, 1] <= 0))
            squared.append(np.mean((score + z[:, 0] * z[:, 1]) ** 2))
    assert predicted.error(n) == pytest.approx(np.mean(wrong), abs=0.02)
    assert predicted.squared_error(n) == pytest.approx(np.mean(squared), rel=0.05)


def test_more_examples_teach_more_and_a_ridge_teaches_less():
    one, ridged = curve(NTK(), 64, PAIR), curve(NTK(), 64, PAIR, 0.5)
    errors = [one.error(n) for n in (100, 500, 2000, 8000)]
    assert errors == sorted(errors, reverse=True) and errors[0] < 0.5
    assert ridged.learned(2000)[2] < one.learned(2000)[2]
    assert one.error(one.sample_size(0.1)) == pytest.approx(0.1, abs=1e-4)


def test_unreachable_errors_are_refused():
    """A quadratic kernel has no part of degree 3."""
    with pytest.raises(BadInput, match="No feasible number"):
        curve(Polynomial(2, 0.0), 20, {(1, 1, 1): 1.0}).sample_size(0.05)
