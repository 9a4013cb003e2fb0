import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn, sampled
from unlazy.core.errors import BadInput
from unlazy.core.threefry import new_key
from unlazy.tasks.equal_bits import EqualBits


def test_the_sample_follows_the_distribution():
    task = drawn(EqualBits(d=6, k=3), new_key(0))
    distribution = task.population()
    assert float(jnp.sum(distribution.weight)) == pytest.approx(1, abs=1e-6) and np.array_equal(
        distribution.y, task.target(distribution.x)
    )
    x, y = sampled(task, 40_000, new_key(1))
    assert np.array_equal(y, task.target(x))
    places = {
        tuple(point): i for i, point in enumerate(np.sign(np.asarray(distribution.x)).astype(int))
    }
    counts = np.bincount(
        [places[tuple(point)] for point in np.sign(np.asarray(x)).astype(int)], minlength=64
    ) / len(y)
    assert np.max(np.abs(counts - np.asarray(distribution.weight))) < 4 * np.sqrt(
        np.max(distribution.weight) / 40_000
    )


def test_parts_and_correlations_are_those_of_the_paper():
    task = drawn(EqualBits(d=20, k=5), new_key(0))
    (x, y), equal = task.draw_parts(40_000, new_key(2))
    bits = np.asarray(x)[:, np.asarray(task.where)]
    assert np.all(bits[equal] == bits[equal][:, :1]) and 0.48 < np.mean(equal) < 0.52
    correlation = np.asarray(x).T @ np.asarray(y) * np.sqrt(20) / 40_000
    inside = np.isin(np.arange(20), task.where)
    assert np.allclose(correlation[inside], 0.5, atol=0.03) and np.allclose(
        correlation[~inside], 0, atol=0.03
    )
    assert np.allclose(np.linalg.norm(x, axis=1), 1, atol=1e-5) and float(
        jnp.linalg.norm(task.features)
    ) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"k": 4}, "k must be odd"),
        ({"k": 9}, "3 ≤ k ≤ d"),
        ({"structured": 2}, "structured .* must lie in"),
    ],
)
def test_invalid_parameters_are_refused(numbers, says):
    with pytest.raises(BadInput, match=says):
        EqualBits(**({"d": 8, "k": 3} | numbers))
