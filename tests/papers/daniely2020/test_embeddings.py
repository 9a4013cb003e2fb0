import numpy as np
import pytest

from unlazy.core.threefry import new_key
from unlazy.papers.daniely2020.embeddings import LeastEmbedding, embedding, least_embedding, separable
from unlazy.theory.walsh import points


def test_separability_is_told_by_linear_programming():
    z = points(3)
    parity, majority = np.prod(z, axis=1), np.sign(z.sum(axis=1))
    assert separable(z, majority) and not separable(z, parity)
    assert separable(np.concatenate([z, parity[:, None]], axis=1), parity)
    assert least_embedding(np.concatenate([z, parity[:, None], z], axis=1), parity) == 4


@pytest.mark.parametrize("kind", ["relu", "fourier", "tangent"])
def test_features_are_those_of_their_kind(kind):
    z, draw = points(3), np.random.default_rng(0)
    found = embedding(kind, z, 10, draw)
    assert found.shape == (8, 10) and np.all(np.isfinite(found))
    assert kind != "fourier" or np.max(np.abs(found)) <= 1
    assert kind != "relu" or np.min(found) >= 0


def test_parities_need_exponentially_many_features_and_single_bits_do_not():
    found = LeastEmbedding("relu", (3, 4, 5, 6)).measure(key=new_key(0))
    assert np.all(np.diff(found["least"]) > 0) and found["over_forster"][-1] >= 1 and 0.6 < found["bits"][0] < 1.2
    assert np.allclose(found["forster"], 2 ** (np.array([3, 4, 5, 6]) / 2))
    few = LeastEmbedding("relu", (3, 4, 5, 6), "first bit").measure(key=new_key(0))
    assert few["bits"][0] < 0.5 and few["least"][-1] < found["least"][-1] / 2
