import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_family
from programs import drawn, sampled
from unlazy.core.errors import BadInput
from unlazy.tasks.dictionary.codes import HiddenRepresentations
from unlazy.tasks.gaussians import CubeGaussians


@pytest.mark.slow
def test_gaussians_lie_around_the_vertices():
    family = CubeGaussians(d=20, k=3, spread=0.5)
    check_family(family)
    task = drawn(family, jax.random.key(0))
    x, y = sampled(task, 20_000, jax.random.key(1))
    assert task.features.shape == (8, 20)
    nearest = np.argmax(x @ task.features.T, axis=1)
    assert np.bincount(nearest).min() > 2000
    for vertex in range(8):
        mine = x[nearest == vertex]
        np.testing.assert_allclose(mine.mean(axis=0), np.sqrt(3) * task.features[vertex], atol=0.05)
        assert len(np.unique(y[nearest == vertex])) == 1
    noise = x - np.sqrt(3) * task.features[nearest]
    assert np.mean(np.sum(noise**2, axis=1)) == pytest.approx(0.25 * 3, rel=0.03)
    # Neighbors differ in one sign, and so in their label.
    cosines = np.asarray(task.features @ task.features.T)
    labels = np.asarray(task.target(task.features))
    neighbors = np.isclose(cosines, 1 / 3, atol=1e-5)
    assert neighbors.sum() == 24 and np.all(np.outer(labels, labels)[neighbors] == -1)


@pytest.mark.slow
def test_representations_carry_their_labels():
    family = HiddenRepresentations(d=30, D=20, k=10, codes=4)
    check_family(family)
    task = drawn(family, jax.random.key(0))
    x, y = sampled(task, 20_000, jax.random.key(1))
    assert np.mean(np.sum(x**2, axis=1)) == pytest.approx(1, rel=0.02)
    first = np.asarray(y) @ np.asarray(x)
    assert first @ np.asarray(task.features[0]) / np.linalg.norm(first) > 0.99, (
        "E[yx] lies along the hidden direction"
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: CubeGaussians(d=3, k=4), "k ≤ d"),
        (lambda: CubeGaussians(d=30, k=11), "at most 10"),
        (lambda: CubeGaussians(d=5, k=2, spread=-1), "negative"),
        (lambda: HiddenRepresentations(d=5, D=6, k=2, codes=1), "D ≤ d"),
        (lambda: HiddenRepresentations(d=8, D=6, k=2, codes=0), "codes must be positive"),
    ],
)
def test_parameters_outside_are_refused(make, says):
    with pytest.raises(BadInput, match=says):
        make()


@pytest.mark.parametrize(("k", "sign"), [(1, 1), (2, 1), (3, 0), (4, -1), (5, 0)])
def test_one_neuron_per_center_with_the_sign_of_its_label_gives_a_known_sign(k, sign):
    """Σ_c y_c·ReLU⟨c, x⟩ at the centers: zero for odd k > 1, and the label with the wrong sign for
    k = 4.
    """
    task = drawn(CubeGaussians(d=6, k=k), jax.random.key(0))
    centers = task.features
    labels = task.target(centers)
    score = jnp.maximum(centers @ centers.T, 0) @ labels
    np.testing.assert_allclose(score, sign * labels, atol=1e-5)
