import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import check_family
from programs import drawn
from unlazy.core.errors import BadInput
from unlazy.tasks.base import draw
from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.patterns import ParityMixture, UnstructuredPatterns, parity


def test_special_cases_are_table_1_and_no_structure():
    for structure, other in (
        (0.5, ParityMixture(d=9, D=7, k=3)),
        (0.0, UnstructuredPatterns(d=9, D=7, k=3, P=parity(3))),
    ):
        found, expected = BalancedParity(d=9, D=7, k=3, structure=structure).moments, other.moments
        np.testing.assert_allclose(found, expected, atol=1e-6)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(k=st.sampled_from([1, 3, 5]), structure=st.floats(0, 1), negative=st.floats(0.05, 0.95))
def test_moments_equal_enumeration(k, structure, negative):
    """Within each class the distribution is that of the mixture; only class weights differ."""
    mass, odd, share = {}, {}, {}
    for bits in itertools.product((0, 1), repeat=k):
        mass[bits] = (1 - structure) * 0.5**k + structure / 2 * (sum(bits) in (0, k))
        odd[bits], share[bits] = sum(bits) % 2 == 1, bits[0]
    positive = sum(m for bits, m in mass.items() if odd[bits])
    scaled = {
        bits: m * ((1 - negative) / positive if odd[bits] else negative / (1 - positive))
        for bits, m in mass.items()
    }
    p = sum(m * share[bits] for bits, m in scaled.items())
    gamma = (
        sum(m * share[bits] * (1 if odd[bits] else -1) for bits, m in scaled.items())
        - (1 - 2 * negative) * p
    )
    with jax.enable_x64(True):
        moments = BalancedParity(d=6, D=6, k=k, structure=structure, negative=negative).moments
        assert float(moments.positive) == pytest.approx(1 - negative)
        assert float(moments.relevant) == pytest.approx(p)
        assert float(moments.gamma) == pytest.approx(gamma, abs=1e-12)


@pytest.mark.slow
def test_samples_follow_the_distribution():
    family = BalancedParity(d=12, D=8, k=3, structure=0.4, negative=0.8)
    check_family(family)
    task = drawn(family, jax.random.key(0))
    z, y = draw(task.sampler, 40_000, jax.random.key(1))
    present = np.asarray(z * family.moments.sigma + task.mean[None, :])
    assert np.mean(y < 0) == pytest.approx(0.8, abs=0.01)
    np.testing.assert_allclose(present.mean(axis=0), task.mean, atol=0.012)
    count = np.round(present[:, np.asarray(task.relevant)].sum(axis=1)).astype(int)
    np.testing.assert_allclose(
        np.bincount(count, minlength=4) / 40_000, family.distribution.count_distribution, atol=0.012
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"k": 2}, "odd"),
        ({"negative": 1.0}, "fraction of class"),
        ({"structure": 1.5}, "structure .* must lie in"),
    ],
)
def test_parameters_outside_are_refused(change, says):
    with pytest.raises(BadInput, match=says):
        BalancedParity(**({"d": 6, "D": 5, "k": 3} | change))
