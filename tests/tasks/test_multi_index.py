import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_family
from programs import drawn, fitted, sampled
from unlazy.core.errors import BadInput
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import PopulationGradients
from unlazy.networks.inits import SphereInit
from unlazy.papers.glasgow2023.gradients import population_gradient
from unlazy.tasks.multi_index import XOR, MultiIndex, product, staircase


@pytest.mark.parametrize("distribution", ["cube", "gaussian"])
@pytest.mark.parametrize("polynomial", [XOR, product(3), staircase(1, 1, 1)])
def test_families_keep_the_contract(distribution, polynomial):
    check_family(MultiIndex(d=10, polynomial=polynomial, distribution=distribution))


def test_a_rotated_cube_keeps_the_contract():
    check_family(MultiIndex(d=9, rotated=True))


def test_xor_is_the_papers():
    """y = −x₁x₂; ±μ₁ = ±(e₁ − e₂) has the label +1, ±μ₂ = ±(e₁ + e₂) the label −1."""
    task = drawn(MultiIndex(d=5, where=(0, 1)), jax.random.key(0))
    x, y = sampled(task, 200, jax.random.key(1))
    np.testing.assert_array_equal(y, -x[:, 0] * x[:, 1])
    first, second = np.sqrt(2) * np.asarray(task.features)
    np.testing.assert_allclose(np.abs(first[:2] @ [1, -1]), 2, atol=1e-6)
    np.testing.assert_allclose(np.abs(second[:2] @ [1, 1]), 2, atol=1e-6)
    np.testing.assert_array_equal(
        task.target(np.stack([first, -first, second, -second]) + np.eye(5)[4]), [1, 1, -1, -1]
    )


@pytest.mark.parametrize(
    ("polynomial", "leap", "exponent"),
    [
        (XOR, 2, 2),
        (product(3), 3, 3),
        (product(4), 4, 4),
        (staircase(1, 1, 1), 1, 1),
        (staircase(2, 1, 1), 2, 2),
        (staircase(1, 1, 2), 2, 1),
    ],
)
def test_leap_and_information_exponent(polynomial, leap, exponent):
    family = MultiIndex(d=8, polynomial=polynomial)
    assert (family.leap, family.information_exponent) == (leap, exponent)


def test_on_gaussian_inputs_xor_has_the_coefficient_of_two_signs():
    """E[sign(−u₀u₁)·u₀u₁] = −(E|u|)² = −2/π."""
    spectrum = MultiIndex(d=4, distribution="gaussian").spectrum
    assert spectrum[1, 1] == pytest.approx(-2 / np.pi, rel=0.05)
    assert all((i + j) % 2 == 0 for i, j in spectrum)


def test_a_fixed_pair_and_a_rotation_are_kept():
    task = drawn(MultiIndex(d=6, where=(4, 2)), jax.random.key(3))
    assert list(np.flatnonzero(np.abs(task.features[0]) > 0)) == [2, 4]
    rotated = drawn(MultiIndex(d=6, rotated=True), jax.random.key(3))
    x, y = sampled(rotated, 50, jax.random.key(4))
    np.testing.assert_allclose(np.abs(x @ rotated.rotation.T), 1, atol=1e-5)
    np.testing.assert_array_equal(rotated.target(x), y)


def test_the_population_of_a_small_cube_is_all_its_points():
    task = drawn(MultiIndex(d=5, rotated=True), jax.random.key(3))
    distribution = task.population()
    assert (
        distribution.x.shape == (32, 5)
        and len(np.unique(distribution.x, axis=0)) == 32
        and float(jnp.sum(distribution.weight)) == 1
    )
    np.testing.assert_array_equal(distribution.y, task.target(distribution.x @ task.basis))
    assert drawn(MultiIndex(d=15), jax.random.key(0)).population is None
    assert drawn(MultiIndex(d=5, distribution="gaussian"), jax.random.key(0)).population is None


def test_the_first_gradient_on_the_population_is_that_of_the_enumeration():
    """While |f| < 1 the hinge loss is 1 − y·f, whose gradient −E[y·∇f] is exact in closed form;
    without labels it would be another.
    """
    task = drawn(MultiIndex(d=8, where=(0, 1)), jax.random.key(0))
    stage = Descent({"w": 1.0}, steps=1, loss="hinge")
    with jax.enable_x64(True):
        learner = GradientDescent(
            SphereInit(p=4, radius=0.5),
            (stage,),
            record=(0,),
            source=PopulationGradients(),
            precision=64,
        )
        models = fitted(learner, task.sampler, 1, jax.random.key(1)).models
        w, moved = np.asarray(models.w)
        a = np.asarray(models.a)[0]
    for j in range(4):
        first, second = (
            np.array([1, -1]) * (w[j, 0] - w[j, 1]) / 2,
            np.full(2, (w[j, 0] + w[j, 1]) / 2),
        )
        signal, opposite = (first, second) if a[j] > 0 else (second, first)
        exact = population_gradient(
            float(np.linalg.norm(signal)), float(np.linalg.norm(opposite)), w[j, 2:], a[j]
        )
        step = moved[j] - w[j]
        assert signal @ step[:2] == pytest.approx(exact.signal, abs=1e-9)
        assert opposite @ step[:2] == pytest.approx(exact.opposite, abs=1e-9)
        np.testing.assert_allclose(w[j, 2:] * step[2:], exact.coordinates, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"d": 1}, "d must be"),
        ({"d": 4, "distribution": "ball"}, "distribution must be"),
        ({"d": 4, "where": (0, 0)}, "distinct coordinates"),
        ({"d": 4, "polynomial": ()}, "non-constant"),
        ({"d": 4, "polynomial": ((1.0, (0,)), (1.0, (1,)))}, "zero at any corner"),
        (
            {
                "d": 4,
                "polynomial": ((2.0, (0, 1)), (1.0, (0,)), (0.5, (1,))),
                "distribution": "gaussian",
            },
            "odd under some sign flip",
        ),
        ({"d": 4, "polynomial": ((1.0, (0, 0)),)}, "each coordinate only once"),
    ],
)
def test_invalid_parameters_are_refused(options, says):
    with pytest.raises(BadInput, match=says):
        MultiIndex(**options)


def test_an_even_staircase_is_refused():
    with pytest.raises(BadInput, match="odd number"):
        staircase(1, 1)
