"""The contract of learners, over every arm of every claim at smoke scale; and planted failures that it must catch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from contracts import check_experiment, check_learner
from toys import CoinCount, Halfspace, small_learner
from unlazy.lab import registry as catalogue
from unlazy.lab.claims import Arm
from unlazy.lab.trials import Instrument
from unlazy.learners import rivals
from unlazy.learners.gradient import GradientDescent

ARMS = {f"{claim.id}: {name}": arm for claim in catalogue.claims().values() for name, arm in claim.study("smoke").items()}
RIVALS = {name: entry.thing for name, entry in rivals.LEARNERS.items()}
EXPERIMENTS = [name for name, arm in ARMS.items() if isinstance(arm, Instrument)]


def shape(learner):
    """All but the numbers: learners of one shape run the same code, so that one of them speaks for all."""
    return jax.tree.structure(learner), repr(eqx.filter(learner, lambda leaf: isinstance(leaf, float), inverse=True))


LEARNERS = list({shape(arm.learner): name for name, arm in ARMS.items() if isinstance(arm, Arm)}.values())


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_of_claims_keep_the_contract(name):
    arm = ARMS[name]
    check_learner(arm.learner, arm.family, arm.n)


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_keep_the_contract(name):
    check_learner(RIVALS[name], Halfspace(6), 60)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("budget", [1, 2, 6, 24])
def test_tuning_keeps_to_its_budget(name, budget):
    """Distinct settings, no more than allowed; a path falls apart into learners of one setting each, which say what they are."""
    tried = [option for learner in RIVALS[name].tuning(budget) for option in learner.options(60).values()]
    assert 1 <= len(tried) <= budget
    assert len({repr(option) for option in tried}) == len(tried)
    assert all(option.settings and len(option.options(60)) == 1 for option in tried)
    assert budget < 24 or len(tried) >= 12, "a budget of 24 is left unused"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_of_claims_keep_the_contract(name):
    check_experiment(ARMS[name].experiment)


class Greedy(GradientDescent):
    """Draws more than it may."""

    def fit(self, sampler, n, *, key):
        sampler.draw(n, key)
        return super().fit(sampler, n, key=key)


class Forgetful(GradientDescent):
    """Says it recorded other steps than it did."""

    def recorded(self, n):
        return (*super().recorded(n), 10**6)


class Exploding(GradientDescent):
    """Leaves the finite numbers."""

    def fit(self, sampler, n, *, key):
        return jax.tree.map(lambda leaf: leaf * jnp.inf, super().fit(sampler, n, key=key))


@pytest.mark.parametrize(("kind", "says"), [(Greedy, "64 examples were drawn"), (Forgetful, "recorded step"), (Exploding, "not finite")])
def test_the_contract_catches(kind, says):
    good = small_learner()
    check_learner(good, Halfspace(3), 32)
    with pytest.raises(AssertionError, match=says):
        check_learner(kind(good.init, good.stages, record=good.record), Halfspace(3), 32)


def test_the_contract_of_experiments_catches():
    check_experiment(CoinCount((1, 10)))
    for broken, says in ((CoinCount((1, 10), short=True), "one entry for each of 2 steps"), (CoinCount((10, 1)), "do not increase")):
        with pytest.raises((AssertionError, ValueError), match=says):
            check_experiment(broken)
