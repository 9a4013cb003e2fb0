"""Running studies: each trial is looked up once and run once."""

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unlazy
from toys import BitCount, toy_trial
from unlazy import api
from unlazy.lab import registry
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.run import Incomplete, NullRunCallback, run, run_one
from unlazy.lab.store import Store
from unlazy.lab.study import parallel, silent
from unlazy.lab.trials import Failure, Measurement
from unlazy.studies.claim import UntilDecided, claim_study

TRIALS = [Measurement(BitCount((n,)), 0) for n in (2, 3, 4)]


@dataclasses.dataclass
class Rounds:
    """A study of given rounds; its outcome is the number of records of each round."""

    given: list
    title: str = "rounds"
    arrays = False

    def rounds(self, store, say=silent):
        counts = []
        for trials in self.given:
            records = yield trials
            assert {trial.id for trial in trials} == {*records}
            counts.append(len(records))
            say(f"{len(counts)} done")
        return counts


class Counting(LocalEngine):
    """Counts trials that are run; trials with given seeds fail."""

    def __init__(self, failing=()):
        super().__init__()
        self.ran, self.failing = [], {trial.id for trial in failing}

    def run(self, trials, callback=None):
        for record in super().run(trials, callback):
            self.ran.append(record.id)
            if record.id in self.failing:
                yield Failure(record.id, record.trial, "it was told to fail", {}, "2026")
            else:
                yield record


class Heard(NullRunCallback):
    def __init__(self):
        self.rounds, self.sentences, self.stopped = [], [], []

    def began(self, round):
        self.rounds.append(round)

    def noted(self, sentence, *, passing=False):
        self.sentences.append(sentence)

    def interrupted(self, round, saved):
        self.stopped.append(saved)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "s.sqlite") as found:
        yield found


def test_rounds_of_studies_run_together_and_shared_trials_once(store):
    one, two, three = TRIALS
    engine, heard = Counting(), Heard()
    studies = [Rounds([[one, two], [three]]), Rounds([[two]]), Rounds([])]
    assert run(studies, store, engine, callback=heard) == [[2, 1], [1], []]
    assert sorted(engine.ran) == sorted(trial.id for trial in TRIALS)
    assert [each.plan.trials for each in heard.rounds] == [2, 1]
    assert heard.sentences.count("1 done") == 2


def test_stored_trials_are_not_run_again_unless_requested(store):
    study = Rounds([TRIALS])
    run([study], store, Counting())
    again, fresh = Counting(), Counting()
    assert run([study], store, again) == [[3]] and again.ran == []
    before = {trial.id: store.get(trial.id).created for trial in TRIALS}
    run([study], store, fresh, fresh=True)
    assert len(fresh.ran) == 3 and len(store.all_ids()) == 3
    assert all(store.get(each).created > made for each, made in before.items())


def test_a_study_with_a_trial_that_fails_has_no_outcome_and_others_have(store):
    one, two, _ = TRIALS
    found = run([Rounds([[one]]), Rounds([[two]])], store, Counting(failing=[one]))
    assert isinstance(found[0], Incomplete) and "told to fail" in str(found[0]) and found[1] == [1]
    with pytest.raises(unlazy.StoreError, match="told to fail"):
        run_one(Rounds([[one]]), store, Counting(failing=[one]))
    assert run_one(Rounds([[one]]), store, Counting()) == [1]


def test_an_interrupted_run_keeps_what_is_finished_and_resumes(store):
    class Stopped(Counting):
        def run(self, trials, callback=None):
            for count, record in enumerate(super().run(trials, callback)):
                if count == 2:
                    raise KeyboardInterrupt
                yield record

    heard = Heard()
    with pytest.raises(KeyboardInterrupt):
        run([Rounds([TRIALS])], store, Stopped(), callback=heard)
    assert heard.stopped == [2]
    engine = Counting()
    assert run([Rounds([TRIALS])], store, engine) == [[3]] and len(engine.ran) == 1


def test_parallel_generators_of_rounds(store):
    one, two, three = TRIALS

    class Both(Rounds):
        def rounds(self, store, say=silent):
            inner = {"a": Rounds([[one], [two]]), "b": Rounds([[three]])}
            return (yield from parallel({k: v.rounds(store) for k, v in inner.items()}))

    assert run_one(Both([]), store, Counting()) == {"a": [1, 1], "b": [1]}


def test_one_claim_builds_its_study_once_and_asks_the_store_once(store, monkeypatch):
    claim = registry.claims()["malach2019/circuit-count"]
    built, asked = [], []

    def study(scale):
        built.append(scale)
        return claim.arms(scale)

    find = Store.find
    monkeypatch.setattr(Store, "find", lambda *a, **k: (asked.append(len(a)), find(*a, **k))[1])
    watched = dataclasses.replace(claim, study=study)
    layout = claim_study(watched, "smoke")
    assert layout.missing is None
    verdict = run_one(layout, store, LocalEngine())
    assert verdict.seen in ("holds", "undecided") and built == ["smoke"] and asked == [2]


def test_seeds_are_added_until_a_claim_is_conclusive(store):
    claim = registry.claims()["malach2019/figure1"]
    undecided = claim_study(claim, "smoke", seeds=1, first_seed=10)
    engine = Counting()
    verdict = run_one(UntilDecided(undecided, max_seeds=2), store, engine)
    assert len(verdict.seeds) == 2 and verdict.look == 2
    assert len(set(engine.ran)) == len(engine.ran)


def test_python_has_the_options_of_the_command_line(store):
    options = {"scale": "smoke", "store": store, "progress": False}
    (verdict,) = api.reproduce("malach2019/lemma8", until_decided=True, fresh=True, **options)
    assert verdict.older == 0
    assert api.reproduce("malach2019/lemma8", shuffle_labels=True, **options) == []
    (again,) = api.reproduce("malach2019/lemma8", reuse_older=True, controls=True, **options)
    assert again.control is not None and again.control.outcome != "not run"


#: Commands on a copy of the package whose RBF kernel was made constant.
COMPARE = [
    *("compare", "glasgow2023/task", "--set", "d=6", "--learner", "rbf", "--learner", "linear"),
    *("--n", "40", "--seeds", "1", "--budget", "1", "--test", "200", "--store", "s.sqlite"),
]


@pytest.mark.slow
def test_a_changed_formula_in_a_copy_of_the_package_runs_again_and_says_why(tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(Path(unlazy.__file__).parent, copy / "unlazy")

    def call():
        environment = os.environ | {"PYTHONPATH": str(copy), "COLUMNS": "200"}
        command = [sys.executable, "-m", "unlazy", *COMPARE]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def edit(name, old, new):
        path = copy / "unlazy" / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    assert "All" not in call()
    assert "2 trials, already stored." in call()
    for name in ("report/view.py", "play/presets.py", "cli/compare.py", "kernels/stationary.py"):
        edit(name, "from __future__", "# A comment.\nfrom __future__")
    assert "2 trials, already stored." in call()
    edit("kernels/stationary.py", "jnp.exp(-self.gamma * squared)", "0 * jnp.exp(-squared)")
    told = call()
    assert "Running 1 trial again" in told and "kernels.stationary" in told


def test_toys_have_identities():
    """Trials of a user's classes have the hash of their source in the fingerprint, not the key."""
    trial = toy_trial()
    assert any(name.startswith("Halfspace#") for name in trial.fingerprint.own)
    assert "#" not in str(trial._described(brief=True))
