import dataclasses

import jax
import numpy as np
import pytest

from toys import CoinCount, Halfspace, small_learner, toy_trial
from unlazy.core.errors import BadInput
from unlazy.lab.engines import local as engines
from unlazy.lab.engines.local import LocalEngine, plan
from unlazy.lab.provenance import source_hash
from unlazy.lab.trials import Measurement, Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.readout import RidgeReadout
from unlazy.probes.neurons import Silhouette
from unlazy.probes.performance import Performance


def by_key(records):
    return {record.key: record for record in records}


def agree(a, b):
    assert a.keys() == b.keys()
    for key in a:
        for name, series in a[key].measurements.items():
            np.testing.assert_allclose(series, b[key].measurements[name], rtol=1e-4, atol=1e-4)


def test_trials_that_differ_in_numbers_share_one_program():
    trials = [toy_trial(seed, rate) for seed in range(3) for rate in (0.1, 0.5)]
    assert len(plan(trials).groups) == 1
    assert len(plan([*trials, toy_trial(steps=7), toy_trial(d=4), toy_trial(n=16)]).groups) == 4
    engine = LocalEngine()
    records = list(engine.run(trials))
    assert engine.compiled == 1 and engine.compile_seconds > 0
    assert [record.key for record in records] == [trial.key for trial in trials]


def test_numbers_that_are_not_floats_are_never_shared():
    """A whole number given where a float belongs is taken as one; any other leaf makes a program of its own."""
    assert toy_trial(rate=1).key == toy_trial(rate=1.0).key
    rates = [toy_trial(rate=rate) for rate in (1, 2)]
    losses = {record.value("train_loss") for record in LocalEngine().run(rates)}
    assert len(plan(rates).groups) == 1 and len(losses) == 2
    wild = [dataclasses.replace(toy_trial(), family=LooseFamily(3, k)) for k in (1, 2)]
    assert len(plan(wild).groups) == 2


class LooseFamily(Halfspace):
    k: int  # not static, and not a float


def test_two_probes_may_not_measure_the_same_name():
    trial = dataclasses.replace(toy_trial(), probes=(Performance(64), Performance(32)))
    with pytest.raises(BadInput, match="same names"):
        list(LocalEngine().run([trial]))


def test_a_sweep_equals_its_trials_run_alone():
    trials = [toy_trial(seed, rate) for seed in range(2) for rate in (0.1, 0.5)]
    together = by_key(LocalEngine().run(trials))
    alone = by_key(record for trial in trials for record in LocalEngine().run([trial]))
    agree(together, alone)
    assert len({record.measurements["test_loss"] for record in together.values()}) == 4


def test_a_record_tells_all():
    trial = dataclasses.replace(toy_trial(seed=4), probes=(Performance(64), Silhouette(3)))
    (record,) = LocalEngine().run([trial])
    assert record.key == trial.key and record.trial == trial.describe() and record.seed == 4
    assert record.status == "ok" and record.steps == (0, 3, 6) and record.seconds > 0
    assert {"loss", "test_accuracy", "train_accuracy", "test_loss", "train_loss"} == set(record.measurements)
    assert all(len(series) == 3 for series in record.measurements.values())
    assert record.arrays["neurons"].shape == (3, 3, 3) and record.arrays["directions"].shape == (3, 1, 3)
    assert record.provenance["source"] == source_hash() and record.provenance["jax"] == jax.__version__
    assert record.value("test_accuracy") == record.measurements["test_accuracy"][-1]
    assert record.value("test_accuracy", step=0) == 50  # a mirrored network decides nothing


def test_chunks_follow_the_memory_budget(monkeypatch):
    trials = [toy_trial(seed) for seed in range(5)]
    expected = by_key(LocalEngine().run(trials))
    sizes = []
    monkeypatch.setattr(engines, "_memory", lambda program: 1000 * len(jax.tree.leaves(program.in_avals)[-1:]) * _batch(program))
    engine = LocalEngine(memory=2500, watcher=Recorder(sizes))
    agree(by_key(engine.run(trials)), expected)
    assert sizes == [2, 2, 1], "five trials in chunks of two"


def _batch(program):
    return jax.tree.leaves(program.in_avals)[-1].shape[0]


class Recorder:
    def __init__(self, sizes):
        self.sizes, self.done = sizes, 0

    def compiling(self, programs):
        pass

    def running(self, trials):
        self.sizes.append(trials)

    def finished(self, trial, seconds):
        self.done += 1


def test_too_little_memory_says_how_much_is_needed():
    with pytest.raises(BadInput, match=r"needs .* GiB of memory, and .* GiB are allowed.*--memory"):
        list(LocalEngine(memory=1).run([toy_trial()]))


def test_large_trials_run_one_by_one(monkeypatch):
    monkeypatch.setattr(engines, "CHUNK_WORK", 1.0)
    sizes = []
    list(LocalEngine(watcher=Recorder(sizes)).run([toy_trial(seed) for seed in range(3)]))
    assert sizes == [1, 1, 1]


def test_the_default_memory_is_sensible():
    assert 0 < engines.default_memory() <= 2 << 30


def test_training_that_leaves_the_finite_numbers_is_marked_and_kept():
    wild = Descent({"w": 1e30, "b": 1e30, "a": 1e30}, steps=6, batch=8, loss="squared")
    trial = Trial(Halfspace(3), GradientDescent(small_learner().init, (wild,), record=(0,)), 32, 0, (Performance(64),))
    (record,) = LocalEngine().run([trial])
    assert record.status == "diverged"
    assert record.value("test_accuracy", step=0) == 50 and record.value("test_accuracy") == 0
    assert np.isnan(record.value("test_loss")) and np.isnan(record.value("train_loss"))


def test_double_precision_is_a_property_of_the_learner():
    learner = GradientDescent(small_learner().init, (RidgeReadout(),), precision=64)
    (record,) = LocalEngine().run([Trial(Halfspace(3), learner, 64, 0, (Performance(64), Silhouette(2)))])
    assert record.arrays["neurons"].dtype == np.float64
    assert not jax.config.jax_enable_x64


def test_the_plan_estimates_time():
    small, large = plan([toy_trial()]), plan([toy_trial(seed) for seed in range(10)])
    assert large.trials == 10 and large.work == pytest.approx(10 * small.work)
    assert 0 < small.seconds[0] < small.seconds[1]


def test_nothing_to_do():
    assert list(LocalEngine().run([])) == [] and plan([]).trials == 0


class OnHost(GradientDescent):
    """The same learner, but it says that it cannot be traced."""

    @property
    def on_host(self):
        return True


def test_a_learner_on_the_host_runs_alone_and_finds_the_same():
    trials = [toy_trial(seed) for seed in range(2)]
    alone = [
        dataclasses.replace(trial, learner=OnHost(trial.learner.init, trial.learner.stages, record=trial.learner.record))
        for trial in trials
    ]
    planned = plan([*trials, *alone])
    assert len(planned.groups) == 1 and planned.alone == alone and planned.trials == 4
    for expected, found in zip(LocalEngine().run(trials), LocalEngine().run(alone), strict=True):
        assert found.steps == expected.steps and found.status == "ok" and found.key != expected.key
        for name, series in expected.measurements.items():
            np.testing.assert_allclose(found.measurements[name], series, rtol=1e-4, atol=1e-4)


def test_an_experiment_gives_a_record():
    trial = Measurement(CoinCount((1, 100)), 3)
    (record,) = LocalEngine().run([trial])
    assert record.key == trial.key and record.steps == (1, 100) and record.seed == 3 and record.status == "ok"
    assert 30 < 100 * record.value("heads") < 70 and record.arrays["coins"].shape == (2, 2)
    assert Measurement(CoinCount((1, 100)), 4).key != trial.key
    with pytest.raises(BadInput, match="A seed is a whole number"):
        Measurement(CoinCount((1,)), -1)
