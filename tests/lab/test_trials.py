import dataclasses

import pytest

from toys import Halfspace, small_learner, toy_trial
from unlazy.core.errors import BadInput
from unlazy.core.naming import describe
from unlazy.lab.trials import Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks import AntisymmetricInit
from unlazy.probes.performance import Performance
from unlazy.tasks.multi_index import MultiIndex


def test_the_key_is_the_content():
    assert toy_trial().key == toy_trial().key
    others = [
        toy_trial(seed=1),
        toy_trial(rate=0.2),
        toy_trial(n=33),
        toy_trial(d=4),
        toy_trial(steps=7),
        toy_trial(record=(0,)),
        toy_trial(smoothing=0.1),
        dataclasses.replace(toy_trial(), probes=(Performance(64),)),
        dataclasses.replace(
            toy_trial(), learner=dataclasses.replace(small_learner(), precision=64)
        ),
    ]
    assert len({trial.key for trial in [toy_trial(), *others]}) == len(others) + 1


def test_the_key_is_pinned():
    """Records are found by this key: a change makes all stored records outdated."""
    learner = GradientDescent(
        AntisymmetricInit(m=4, w_scale=1.0, b_scale=0.3, a_scale=1.0),
        (Descent({"w": 0.1}, steps=6, batch=8),),
        record=(0,),
    )
    trial = Trial(MultiIndex(d=4), learner, 32, 7, (Performance(64),))
    assert trial.key == "11ab64f018e9bd65372aa5cb485cdf43"


def test_the_order_of_named_numbers_does_not_matter():
    assert describe(Descent({"w": 1.0, "a": 2.0}, steps=1)) == describe(
        Descent({"a": 2.0, "w": 1.0}, steps=1)
    )


def test_only_plain_values_describe_a_trial():
    with pytest.raises(TypeError, match="described by numbers"):
        describe(object())


@pytest.mark.parametrize(("n", "seed"), [(0, 1), (-3, 1), (2.5, 1), (3, -1), (3, 2**32)])
def test_trials_that_cannot_be_run_are_refused(n, seed):
    with pytest.raises(BadInput):
        Trial(Halfspace(3), small_learner(), n, seed, ())
