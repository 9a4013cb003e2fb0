"""Logs for other tools: what is written to them, with the tools replaced by what only keeps."""

import sys
import types

import pytest

from unlazy import LocalEngine, MultiIndex, Performance, Trial
from unlazy.core.errors import BadInput
from unlazy.learners.shelf import LEARNERS
from unlazy.report.logging import log_records


@pytest.fixture(scope="module")
def records():
    linear = LEARNERS["linear"].thing
    return list(
        LocalEngine().run(
            [Trial(MultiIndex(d=4), linear, 20, seed, (Performance(50),)) for seed in (10, 11)]
        )
    )


class Kept:
    """A writer of TensorBoard's kind."""

    all: dict = {}  # noqa: RUF012

    def __init__(self, folder):
        self.rows = self.all.setdefault(folder, [])

    def add_scalar(self, tag, data, step):
        self.rows.append((tag, data, step))

    def close(self):
        self.rows.append("closed")


def test_tensorboard_gets_a_run_a_trial(records, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
    monkeypatch.setitem(sys.modules, "tensorboard.summary", types.SimpleNamespace(Writer=Kept))
    assert log_records(records, [], "tensorboard", tmp_path) == 2
    assert len(Kept.all) == 2 and all(str(tmp_path) in folder for folder in Kept.all)
    for rows, record in zip(Kept.all.values(), records, strict=True):
        assert ("test_accuracy", record.value("test_accuracy"), record.steps[-1]) in rows and rows[
            -1
        ] == "closed"


def test_weights_and_biases_get_the_same(records, tmp_path, monkeypatch):
    logged, finished = [], []

    def init(**settings):
        assert settings["mode"] == "offline" and settings["config"]["seed"] in (10, 11)
        return types.SimpleNamespace(
            log=logged.append, finish=lambda: finished.append(settings["name"])
        )

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    assert log_records(records, [], "wandb", tmp_path) == 2
    assert (
        len(finished) == 2
        and {"test_accuracy": records[0].value("test_accuracy"), "step": records[0].steps[-1]}
        in logged
    )


@pytest.mark.parametrize("kind", ["tensorboard", "wandb"])
def test_what_is_not_installed_is_named(kind, records, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, kind, None)
    monkeypatch.setitem(sys.modules, f"{kind}.summary", None)
    with pytest.raises(BadInput, match=rf"pip install 'unlazy\[{kind}\]'"):
        log_records(records, [], kind, tmp_path)
