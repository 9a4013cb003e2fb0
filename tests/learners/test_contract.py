"""The learner contract for every claim at smoke scale and the catalog on all kinds of outputs."""

import re

import jax
import jax.numpy as jnp
import pytest

from contracts import check_computation, check_learner
from smoke import smoke_trials
from toys import BitCount, Blobs, Halfspace, Products, small_learner
from unlazy.core.errors import BadInput
from unlazy.lab.trials import Measurement, Trial
from unlazy.learners import catalog
from unlazy.learners.gradient import GradientDescent
from unlazy.tasks.images.families import ImageFamily

TRIALS = smoke_trials()
CATALOG = {name: entry.value for name, entry in catalog.LEARNERS.items()}
#: Tasks of every kind of outputs, and with how many examples they are tried.
KINDS = {
    "signs": (Halfspace(6), 60),
    "classes": (Blobs(), 80),
    "reals": (Products(), 60),
    "one real": (Products(scalar=True), 60),
    "images": (Blobs(side=8), 80),
}


#: Computes longer than its work message.
LONG = "daniely2020/theorem2"
#: The one trial on images that `make test` runs: images have teachers and large programs.
ON_IMAGES = "shi2022/figures17-19: MNIST, usual start 0"


def shape(trial):
    """Return a description without numbers; trials of equal shape run the same code."""
    numbers = re.sub(r"[-+]?\d[\d.e+-]*", "#", re.sub(r"\s", "", repr(trial)))
    return re.sub(r"#(,#)+,?|#,(?=\))", "#", numbers)


def classes(trial):
    """Return the names of the classes in a trial's description."""
    return frozenset(re.findall(r"[A-Za-z]\w*(?=\()", repr(trial)))


def on_images(name):
    return isinstance(TRIALS[name], Trial) and isinstance(TRIALS[name].family, ImageFamily)


def cost(name):
    """Return the rank of a trial: without images, without long computations, little work first."""
    return on_images(name), name.startswith(LONG), TRIALS[name].work


def one_of_each(kind, of):
    """Return the cheapest trial for each value of `of`."""
    names = sorted((name for name in TRIALS if isinstance(TRIALS[name], kind)), key=cost)
    return sorted({of(TRIALS[name]): name for name in reversed(names)}.values())


def learners_of_claims():
    """Return one trial per set of classes; `make test-slow` runs one per shape."""
    of_classes = one_of_each(Trial, lambda trial: classes(trial.learner))
    quick = {name for name in of_classes if not on_images(name)} | {ON_IMAGES}
    every = quick.union(of_classes, one_of_each(Trial, lambda trial: shape(trial.learner)))
    return [
        name if name in quick else pytest.param(name, marks=pytest.mark.slow)
        for name in sorted(every)
    ]


@pytest.mark.parametrize("name", learners_of_claims())
def test_learners_of_claims_satisfy_the_contract(name):
    trial = TRIALS[name]
    check_learner(trial.learner, trial.family, trial.n)


#: Computations of seconds; the tests of their formulas have smaller sizes.
LONG_INSTRUMENTS = ("Complexities", "SpreadVectors")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow)
        if type(TRIALS[name].computation).__name__ in LONG_INSTRUMENTS
        else name
        for name in one_of_each(Measurement, lambda trial: type(trial.computation))
    ],
)
def test_computations_of_claims_satisfy_the_contract(name):
    check_computation(TRIALS[name].computation)


#: A learner with a direct solution, a trained one, and one of another library. `make test` runs
#: these on all kinds of outputs, and the others on signs.
SORTS = ("linear", "network", "random-forest")
CASES = [
    pytest.param(name, kind, marks=() if quick else pytest.mark.slow)
    for name in CATALOG
    for kind in KINDS
    if (
        quick := name in SORTS or kind == "signs" or not CATALOG[name].suits(KINDS[kind][0].outputs)
    )
    or kind not in ("one real", "images")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_catalog_satisfies_the_contract_on_all_outputs(name, kind):
    """Unsupported outputs are refused before anything runs."""
    family, n = KINDS[kind]
    learner = CATALOG[name]
    if learner.suits(family.outputs):
        check_learner(learner.suited(family), family, n)
        return
    with pytest.raises(
        BadInput, match=f"{type(learner).__name__} cannot learn {family.outputs.kind}"
    ):
        Trial(family, learner, n, 0, ())


def test_few_learners_do_not_support_all_outputs():
    refused = {
        (name, kind)
        for name in CATALOG
        for kind in KINDS
        if not CATALOG[name].suits(KINDS[kind][0].outputs)
    }
    machines = {
        (name, kind)
        for name in ("logistic", "rbf-svm", "ntk-svm")
        for kind in ("reals", "one real")
    }
    histograms = {
        (f"{name}-histogram", kind)
        for name in ("mean", "principal")
        for kind in ("classes", "reals", "images")
    }
    streams = {
        (name, kind)
        for name in ("sgd", "sgd-frozen", "sgd-bias")
        for kind in KINDS
        if kind != "signs"
    }
    hinge = {("one-step-network", kind) for kind in KINDS if kind != "signs"}
    assert refused == machines | histograms | streams | hinge
    with pytest.raises(BadInput, match="LogisticRegression cannot learn reals of 15"):
        Trial(Products(), CATALOG["logistic"], 60, 0, ())


@pytest.mark.parametrize("name", CATALOG)
@pytest.mark.parametrize("budget", [1, 2, 6, 24])
def test_tuning_keeps_to_its_budget(name, budget):
    """Settings are distinct and within the budget, and paths split into single settings."""
    tried = [
        option
        for learner in CATALOG[name].suited(Halfspace(6)).tuning(budget)
        for option in learner.options(60).values()
    ]
    assert 1 <= len(tried) <= budget
    assert len({repr(option) for option in tried}) == len(tried)
    assert all(option.settings and len(option.options(60)) == 1 for option in tried)
    assert budget < 24 or len(tried) >= 12, "a budget of 24 is left unused"


class Greedy(GradientDescent):
    """Draws more examples than allowed."""

    def fit(self, sampler, n, *, key):
        sampler.draw(n, key)
        return super().fit(sampler, n, key=key)


class Forgetful(GradientDescent):
    """Reports steps that it did not record."""

    def recorded(self, n):
        return (*super().recorded(n), 10**6)


class Exploding(GradientDescent):
    """Diverges."""

    def fit(self, sampler, n, *, key):
        return jax.tree.map(lambda leaf: leaf * jnp.inf, super().fit(sampler, n, key=key))


@pytest.mark.parametrize(
    ("kind", "message"),
    [(Greedy, "64 examples were drawn"), (Forgetful, "recorded step"), (Exploding, "not finite")],
)
def test_the_contract_catches(kind, message):
    good = small_learner()
    check_learner(good, Halfspace(3), 32)
    with pytest.raises(AssertionError, match=message):
        check_learner(kind(good.init, good.stages, record=good.record), Halfspace(3), 32)


def test_the_contract_of_computations_catches():
    check_computation(BitCount((1, 10)))
    for broken, message in (
        (BitCount((1, 10), short=True), "one per step"),
        (BitCount((10, 1)), "do not increase"),
    ):
        with pytest.raises((AssertionError, ValueError), match=message):
            check_computation(broken)
