"""Computations on the data, the update rule and probabilities, with their negative controls."""

import jax
import numpy as np
import pytest
import scipy.stats

from selection import slow_but_first
from unlazy.papers.shi2022.probability import ENERGY, BackgroundSums, TypicalInitialization
from unlazy.papers.shi2022.setting import (
    Assumptions,
    GeneralAssumptions,
    UpdateRule,
    all_bits,
    mixture,
)
from unlazy.tasks.dictionary.incoherent import GeneralParity

KEY = jax.random.key(3)


def test_the_mixture_is_a_probability_distribution():
    bits = all_bits(6)
    for po, skew in ((0.5, 0.0), (0.2, 0.0), (0.5, 0.3)):
        assert mixture(bits, 3, po, skew).sum() == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("structured", slow_but_first([True, False]))
def test_assumptions_hold_and_fail(structured):
    with jax.enable_x64(True):
        right, wrong = (
            Assumptions(6, 3, structured=structured, skew=skew, examples=20_000).measure(key=KEY)
            for skew in (0.0, 0.3)
        )
    for name in ("rate", "dependence", "agreement"):
        assert right[name] < 1e-9 < 1e-3 < wrong[name]
    assert right["drawn"] < 5 < wrong["drawn"] and right["gamma"] == pytest.approx(
        0.25 * structured
    )


@pytest.mark.slow
def test_the_general_setting():
    with jax.enable_x64(True):
        right, wrong = (
            GeneralAssumptions(GeneralParity(d=24, D=10, k=3), 20_000, error).measure(key=KEY)
            for error in (0.0, 0.2)
        )
    assert (
        right["length"] < 1e-9
        and right["gamma"] < 1e-9
        and right["drawn"] < 5
        and right["corrected"] < 0.02
    )
    assert (
        wrong["length"] > 0.1
        and wrong["gamma"] > 0.1
        and wrong["drawn"] > 5
        and wrong["variance"] > 0.1
    )


@pytest.mark.slow
def test_the_update_rule():
    with jax.enable_x64(True):
        right, wrong = (UpdateRule(5, 3, 3, 4, *how).measure(key=KEY) for how in ((), (0.1, True)))
    for name in ("weights", "biases", "second"):
        assert right[name] < 1e-12 and wrong[name] > 1e-4


def test_typical_initialization():
    right, wrong = (
        TypicalInitialization((50, 100), wider=wider).measure(key=KEY) for wider in (1.0, 1.5)
    )
    for name in ("largest", "energy", "bias", "all_largest", "all_bias"):
        assert right[name][-1] <= 1 < wrong[name][-1]
    # The rate of the upper tail of χ².
    rates = [-np.log(scipy.stats.chi2.sf(1.5 * n, n)) / n for n in (1000, 5000)]
    assert ENERGY < rates[1] < rates[0] < 1.1 * ENERGY


def test_background_sums():
    right, wrong = (
        BackgroundSums((8, 10), together=together).measure(key=KEY) for together in (False, True)
    )
    assert (
        np.all(right["shift"] < 1) and np.all(right["tail"] < 0.3) and np.all(right["least"] > 0.1)
    )
    assert wrong["shift"][-1] > right["shift"][-1]
