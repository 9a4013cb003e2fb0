import numpy as np
import pytest
import scipy.optimize

from unlazy.core.errors import BadInput
from unlazy.core.threefry import new_key
from unlazy.papers.daniely2020.embeddings import (
    KINDS,
    LearnedEmbedding,
    MinimalEmbedding,
    embedding,
    growth,
    leading_basis,
    min_embedding_size,
    parities_bound,
    ridge_error,
    separable,
)
from unlazy.theory.walsh import points


def by_program(features, labels):
    rows = -labels[:, None] * features / np.maximum(np.abs(features).max(axis=0), 1e-12)
    found = scipy.optimize.linprog(
        np.zeros(features.shape[1]),
        A_ub=rows,
        b_ub=-np.ones(len(labels)),
        bounds=(None, None),
        method="highs",
    )
    return found.status == 0


def test_separability_of_known_functions():
    z = points(3)
    parity, majority = np.prod(z, axis=1), np.sign(z.sum(axis=1))
    assert separable(z, majority) and not separable(z, parity)
    assert separable(np.concatenate([z, parity[:, None]], axis=1), parity)
    assert min_embedding_size(np.concatenate([z, parity[:, None], z], axis=1), parity) == 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_the_nearest_point_of_the_hull_agrees_with_linear_programs(kind, k):
    z = points(k)
    labels = np.prod(z, axis=1)
    for seed in range(3):
        features = embedding(kind, z, 6 * 2**k, np.random.default_rng(seed))
        size = min_embedding_size(features, labels)
        assert by_program(features[:, :size], labels) and not by_program(
            features[:, : size - 1], labels
        )


def test_the_basis_omits_dependent_features():
    z = points(4)
    features = np.concatenate(
        [z, z[:, :2] + z[:, 2:], np.zeros((16, 1)), z[:, :1] * z[:, 1:2]], axis=1
    )
    basis, owners = leading_basis(features)
    assert owners.tolist() == [0, 1, 2, 3, 7]
    assert np.allclose(basis.T @ basis, np.eye(5), atol=1e-14)
    for r, owner in enumerate(owners):
        inside = basis[:, : r + 1] @ (basis[:, : r + 1].T @ features[:, : owner + 1])
        assert np.allclose(inside, features[:, : owner + 1])


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_those_of_their_kind(kind):
    z, draw = points(3), np.random.default_rng(0)
    found = embedding(kind, z, 10, draw)
    assert found.shape == (8, 10) and np.all(np.isfinite(found))
    assert kind != "fourier" or np.max(np.abs(found)) <= 1
    assert kind != "relu" or np.min(found) >= 0
    along = embedding(kind, z, 10, draw, "along the sum")
    assert kind == "tangent" or np.allclose(along[1], along[2])  # two points with one −1


def test_polynomials_of_lower_degree_never_express_a_parity():
    z = points(4)
    w, b = np.random.default_rng(0).normal(size=(4, 200)), np.random.default_rng(1).normal(size=200)
    assert not separable((z @ w + b) ** 3, np.prod(z, axis=1)) and separable(
        (z @ w + b) ** 4, np.prod(z, axis=1)
    )


def test_growth_separates_exponentials_from_polynomials():
    k = np.arange(4.0, 10)
    exponential, power, square = growth(k, 2**k), growth(k, 3 * k**2), growth(k, (k - 3) ** 2 + 1)
    assert (
        exponential["base"] == pytest.approx(2)
        and exponential["degree"] > 5
        and exponential["rise"] == pytest.approx(2.05, abs=0.1)
    )
    assert power["degree"] == pytest.approx(2) and power["rise"] == pytest.approx(0, abs=1e-9)
    assert square["degree"] > 2 and square["rise"] < 0.5
    assert growth(k, 2 ** (k / 2))["rise"] > 1


def test_parities_need_exponentially_many_features_unless_weights_lie_along_the_sum():
    found = MinimalEmbedding("relu", (3, 4, 5, 6)).measure(key=new_key(0))
    assert (
        np.all(np.diff(found["least"]) > 0)
        and found["over_forster"][-1] >= 1
        and 1.5 < found["base"][0] < 2.3
    )
    assert np.allclose(found["forster"], 2 ** (np.array([3, 4, 5, 6]) / 2))
    assert parities_bound(12) == 64
    few = MinimalEmbedding("polynomial", (3, 4, 5, 6, 7), "along the sum").measure(key=new_key(0))
    assert np.all(few["least"] <= np.array([3, 4, 5, 6, 7]) + 2)


def test_the_number_of_features_that_learn_is_bounded():
    found = LearnedEmbedding("fourier", (3, 4, 5, 6)).measure(key=new_key(1))
    assert np.all(found["least"] <= 3 * 2.0 ** np.arange(3, 7)) and found["least"][-1] > 20


def test_ridge_errors_are_those_of_plain_least_squares():
    z, labels = points(3), np.prod(points(3), axis=1)
    counts = np.full(8, 5)
    bits = ridge_error(z, np.sign(z @ [3, 1, 1]), counts, counts)
    assert bits == 0
    assert ridge_error(np.eye(8), labels, counts, counts) == 0
    unseen = np.where(np.arange(8) == 0, 0, 5)
    # A point without examples has score zero, which counts as an error.
    assert ridge_error(np.eye(8), labels, unseen, unseen) == 1 / 8


def test_invalid_input_is_rejected():
    with pytest.raises(BadInput, match="at least three values"):
        MinimalEmbedding("relu", (3, 4))
    with pytest.raises(BadInput, match="3 features do not separate the labels"):
        min_embedding_size(points(3), np.prod(points(3), axis=1))
