import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toys import BitCount, Halfspace, HalfspaceTask, small_learner, toy_trial
from unlazy.core.errors import BadInput
from unlazy.lab.engines import local, programs
from unlazy.lab.engines.local import LocalEngine, groups_of
from unlazy.lab.provenance import source_hash
from unlazy.lab.trials import Measurement, Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.readout import RidgeReadout
from unlazy.probes.base import Probe
from unlazy.probes.neurons import Silhouette
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Batch


def by_key(records):
    return {record.id: record for record in records}


def agree(a, b):
    assert a.keys() == b.keys()
    for key in a:
        for name, series in a[key].measurements.items():
            np.testing.assert_allclose(series, b[key].measurements[name], rtol=1e-4, atol=1e-4)


def test_trials_that_differ_in_numbers_share_their_programs():
    trials = [toy_trial(seed, rate) for seed in range(3) for rate in (0.1, 0.5)]
    assert len(groups_of(trials)[0]) == 1
    assert len(groups_of([*trials, toy_trial(steps=7), toy_trial(d=4), toy_trial(n=16)])[0]) == 4
    callback = Recorder()
    records = list(LocalEngine().run(trials, callback))
    assert callback.programs == 5 and callback.seconds > 0, "draw, begin, one stage, end, probes"
    assert [record.id for record in records] == [trial.id for trial in trials]


def test_learners_share_the_parts_that_are_equal():
    """Another number of steps, another second stage, another probe: only what differs is compiled
    again.
    """
    one, callback, engine = toy_trial(), Recorder(), LocalEngine()
    list(engine.run([one], callback))
    longer = dataclasses.replace(one, learner=small_learner(steps=9, record=(0, 4)))
    list(engine.run([longer], again := Recorder()))
    assert again.programs == 2, (
        "its lengths are numbers: the end and the looks alone know its steps"
    )
    more = GradientDescent(
        one.learner.init, (*one.learner.stages, Descent({"a": 0.1}, steps=2)), record=(0, 3)
    )
    list(engine.run([dataclasses.replace(one, learner=more)], third := Recorder()))
    assert third.programs == 3, "the new stage, the end and the looks"


def test_programs_are_shared_across_families_of_one_shape():
    """A stage depends on a network and a sample, not on their family."""
    one, engine = toy_trial(d=3), LocalEngine()
    list(engine.run([one]))
    other = dataclasses.replace(one, family=Shifted(3))
    list(engine.run([other], callback := Recorder()))
    assert callback.programs == 3, (
        "draw, begin and probes depend on the task; the stage and the end do not"
    )


class Shifted(Halfspace):
    """Another family with inputs and tasks of the same shape."""

    def task(self, *, key):
        return ShiftedTask(super().task(key=key).u)


class ShiftedTask(HalfspaceTask):
    def draw(self, n, key):
        x, _ = super().draw(n, key)
        return Batch(x + 1, self.target(x + 1))


def test_numbers_that_are_not_floats_are_never_shared():
    """An integer instead of a float is converted; any other leaf needs its own program."""
    assert toy_trial(rate=1).key == toy_trial(rate=1.0).key
    rates = [toy_trial(rate=rate) for rate in (1, 2)]
    losses = {record.value("train_loss") for record in LocalEngine().run(rates)}
    assert len(groups_of(rates)[0]) == 1 and len(losses) == 2
    wild = [dataclasses.replace(toy_trial(), family=LooseFamily(3, k)) for k in (1, 2)]
    assert len(groups_of(wild)[0]) == 2


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


def test_a_record_is_complete():
    trial = dataclasses.replace(toy_trial(seed=4), probes=(Performance(64), Silhouette(3)))
    (record,) = LocalEngine().run([trial])
    assert record.id == trial.id and record.trial == trial.describe() and record.seed == 4
    assert record.status == "ok" and record.steps == (0, 3, 6) and record.seconds > 0
    assert {"loss", "test_accuracy", "train_accuracy", "test_loss", "train_loss"} == set(
        record.measurements
    )
    assert all(len(series) == 3 for series in record.measurements.values())
    assert record.arrays["neurons"].shape == (3, 3, 3) and record.arrays["directions"].shape == (
        3,
        1,
        3,
    )
    assert (
        record.provenance["source"] == source_hash() and record.provenance["jax"] == jax.__version__
    )
    assert record.value("test_accuracy") == record.measurements["test_accuracy"][-1]
    assert record.value("test_accuracy", step=0) == 50  # an antisymmetric network has output 0


def test_chunks_follow_the_memory_budget(monkeypatch):
    trials = [toy_trial(seed) for seed in range(5)]
    expected = by_key(LocalEngine().run(trials))
    sizes = []
    monkeypatch.setattr(
        programs, "memory_of", lambda program: 1000 * jax.tree.leaves(program.in_avals)[-1].shape[0]
    )
    agree(by_key(LocalEngine(memory=2500).run(trials, Recorder(sizes))), expected)
    assert sizes == [2, 2, 1], "five trials in chunks of two"


class Recorder:
    def __init__(self, sizes=None):
        self.sizes, self.done, self.programs, self.seconds = (
            [] if sizes is None else sizes,
            0,
            0,
            0.0,
        )

    def compiling(self, programs):
        pass

    def compiled(self, programs, seconds):
        self.programs, self.seconds = programs, seconds

    def running(self, trials):
        self.sizes.append(trials)

    def finished(self, trial, seconds):
        self.done += 1

    def staffed(self, workers):
        self.workers = workers


def test_too_little_memory_is_reported():
    with pytest.raises(BadInput, match=r"needs .* GiB of memory; the limit is .* GiB.*--memory"):
        list(LocalEngine(memory=1).run([toy_trial()]))


def test_large_trials_run_one_by_one(monkeypatch):
    for name in ("CHUNK_WORK", "SEEDS_WORK"):
        monkeypatch.setattr(local, name, 1.0)
    sizes = []
    list(LocalEngine().run([toy_trial(seed) for seed in range(3)], Recorder(sizes)))
    assert sizes == [1, 1, 1]


def test_the_default_memory_is_sensible():
    assert 0 < local.default_memory() <= 2 << 30


def test_training_that_diverges_is_marked_and_kept():
    wild = Descent({"w": 1e30, "b": 1e30, "a": 1e30}, steps=6, batch=8, loss="squared")
    trial = Trial(
        Halfspace(3),
        GradientDescent(small_learner().init, (wild,), record=(0,)),
        32,
        0,
        (Performance(64),),
    )
    (record,) = LocalEngine().run([trial])
    assert record.status == "diverged"
    assert record.value("test_accuracy", step=0) == 50 and record.value("test_accuracy") == 0
    assert np.isnan(record.value("test_loss")) and np.isnan(record.value("train_loss"))


def test_double_precision_is_a_property_of_the_learner():
    learner = GradientDescent(small_learner().init, (RidgeReadout(),), precision=64)
    (record,) = LocalEngine().run(
        [Trial(Halfspace(3), learner, 64, 0, (Performance(64), Silhouette(2)))]
    )
    assert record.arrays["neurons"].dtype == np.float64
    assert not jax.config.jax_enable_x64


def test_the_plan_estimates_time():
    engine = LocalEngine()
    small, large = engine.plan([toy_trial()]), engine.plan([toy_trial(seed) for seed in range(10)])
    assert (
        large.trials == 10
        and large.shapes == 1
        and large.cost_of_all == pytest.approx(10 * small.cost_of_all)
    )
    assert (
        0 < small.seconds < large.seconds
        and large.compile_seconds > 0
        and large.memory == engine.memory
    )


def test_nothing_to_do():
    assert list(LocalEngine().run([])) == [] and LocalEngine().plan([]).trials == 0


class OnHost(GradientDescent):
    """The same learner, declared as not traceable."""

    @property
    def on_host(self):
        return True


def test_a_learner_on_the_host_runs_alone_and_finds_the_same():
    trials = [toy_trial(seed) for seed in range(2)]
    alone = [
        dataclasses.replace(
            trial,
            learner=OnHost(trial.learner.init, trial.learner.stages, record=trial.learner.record),
        )
        for trial in trials
    ]
    groups, waiting = groups_of([*trials, *alone])
    assert len(groups) == 1 and waiting == alone
    for expected, found in zip(LocalEngine().run(trials), LocalEngine().run(alone), strict=True):
        assert found.steps == expected.steps and found.status == "ok" and found.key != expected.key
        for name, series in expected.measurements.items():
            np.testing.assert_allclose(found.measurements[name], series, rtol=1e-4, atol=1e-4)


def test_an_exact_computation_gives_a_record():
    trial = Measurement(BitCount((1, 100)), 3)
    (record,) = LocalEngine().run([trial])
    assert (
        record.key == trial.key
        and record.steps == (1, 100)
        and record.seed == 3
        and record.status == "ok"
    )
    assert 30 < 100 * record.value("heads") < 70 and record.arrays["bits"].shape == (2, 2)
    assert Measurement(BitCount((1, 100)), 4).key != trial.key
    with pytest.raises(BadInput, match="`seed` must be an integer"):
        Measurement(BitCount((1,)), -1)


def test_closing_the_iterator_stops_the_engine():
    """No further chunk starts, and the engine can be used again."""
    trials = [toy_trial(seed, steps=steps) for steps in (4, 5, 6) for seed in range(2)]
    engine, callback = LocalEngine(), Recorder()
    records = engine.run(trials, callback)
    next(records)
    records.close()
    assert callback.sizes == [2]
    assert len(list(engine.run(trials))) == 6


class Span(Probe):
    """Distance of the first layer from the first recorded step, and an earlier measurement."""

    def __call__(self, task, trace, *, found, key):
        moved = jnp.linalg.norm(
            (trace.models.w - trace.models.w[:1]).reshape(len(trace.steps), -1), axis=1
        )
        return {"span": moved, "before": found["test_accuracy"]}


def test_a_probe_sees_the_whole_trace_and_what_was_found_before():
    trials = [
        dataclasses.replace(toy_trial(seed), probes=(Performance(64), Span())) for seed in range(3)
    ]
    records = list(LocalEngine().run(trials))
    for record in records:
        assert record.measurements["span"][0] == 0 and record.measurements["span"][1] > 0
        assert record.measurements["before"] == record.measurements["test_accuracy"]
    assert len({record.value("span") for record in records}) == 3


def test_parallel_chunks_give_the_same_records_in_the_same_order(monkeypatch):
    monkeypatch.setattr(local, "CHUNK_WORK", 0.0)
    trials = [toy_trial(rate=rate, seed=seed) for rate in (0.1, 0.2, 0.3) for seed in (0, 1)]
    found = {}
    for parallel in (1, 2):
        monkeypatch.setattr(local, "PARALLEL_CHUNKS", parallel)
        found[parallel] = list(LocalEngine().run(trials))
    assert (
        [record.key for record in found[1]]
        == [record.key for record in found[2]]
        == [trial.key for trial in trials]
    )
    for one, other in zip(*found.values(), strict=True):
        np.testing.assert_equal(one.measurements, other.measurements)


def test_programs_that_fill_the_memory_run_one_at_a_time():
    engine = LocalEngine(memory=1000)
    engine._programs.largest = 600
    assert engine._parallel == 1


def test_a_group_of_some_work_is_cut_for_several_cores(monkeypatch):
    group = [toy_trial(seed) for seed in range(5)]
    assert [size for _, size in local.chunks_of(group, 10)] == [5]
    monkeypatch.setattr(local, "SPLIT_WORK", 0.0)
    chunks = local.chunks_of(group, 10)
    assert [len(chunk) for chunk, _ in chunks] == [3, 2] and {size for _, size in chunks} == {3}
