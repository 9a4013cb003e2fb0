"""Sessions without a browser."""

import dataclasses
import queue

import pytest

from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.run import run_one
from unlazy.lab.store import Store
from unlazy.play.baselines import Abandoned, Abandoning, baseline
from unlazy.play.presets import PRESETS
from unlazy.play.recording import record, write_recording
from unlazy.play.session import AHEAD, Session

SMOKE_SIZES = {"d": 12, "D": 6, "m": 4, "T": 120, "n": 200, "seeds": 2}
WALKTHROUGH = PRESETS["shi2022"]


def network_alone(values):
    scenario = WALKTHROUGH.build(values)
    return dataclasses.replace(scenario, watched={"network": scenario.watched["network"]})


#: The walkthrough with one watched learner, to compile less, and one task size.
ALONE = dataclasses.replace(
    WALKTHROUGH, build=network_alone, gap=dataclasses.replace(WALKTHROUGH.gap, values=(3,))
)


class Page:
    """Stand-in for a browser: queues messages and sends commands."""

    def __init__(self, store=None):
        self.messages = queue.SimpleQueue()
        self.session = Session({ALONE.id: ALONE}, self.messages.put, store)
        self.session.start()

    def send(self, do, **words):
        self.session.submit({"do": do, "preset": "shi2022", **words})

    def until(self, kind, **wanted):
        while True:
            message = self.messages.get(timeout=120)
            assert message["type"] != "broken", message
            if message["type"] == kind and all(
                message[name] == value for name, value in wanted.items()
            ):
                return message


@pytest.fixture
def page():
    found = Page()
    yield found
    found.session.stop()


def test_training_waits_for_the_page_and_rewinds_with_it(page):
    page.send("start", values=SMOKE_SIZES)
    begun = page.until("begun")
    assert begun["learners"] == ["network"] and begun["seeds"] == [10, 11]
    last = page.until("frame", index=AHEAD - 1)
    assert len(last["places"]) == 2 and len(last["errors"]["network"]) == 2
    page.send("pause")  # processed after training has reached its lead
    page.send("seen", index=20)
    page.send("change", index=12, values=SMOKE_SIZES | {"pace": 2.0}, field="pace")
    assert page.until("rewound")["index"] == 12
    assert page.until("changed")["commands"]["this run"].count("--set pace=2") == 1
    page.send("go")
    again = page.until("frame", index=20)
    assert again["run"] == begun["run"]


@pytest.mark.slow
def test_another_size_restarts_training(page):
    page.send("start", values=SMOKE_SIZES)
    first = page.until("begun")
    page.until("frame", index=3)
    page.send("change", index=2, values=SMOKE_SIZES | {"m": 5}, field="m")
    assert page.until("begun")["run"] == first["run"] + 1


def test_an_invalid_value_is_refused_and_training_continues(page):
    page.send("start", values=SMOKE_SIZES)
    page.until("frame", index=3)
    page.send("change", index=3, values=SMOKE_SIZES | {"k": 4}, field="k")
    refusal = page.until("refused")
    assert refusal["field"] == "k" and "odd" in refusal["message"]
    page.send("seen", index=10)
    page.until("frame", index=AHEAD)


def test_baselines_are_solved_in_parallel(page):
    page.send("start", values=SMOKE_SIZES)
    found = page.until("baseline")
    assert (
        found["name"] == "linear"
        and len(found["errors"]) == 2
        and all(0 <= error <= 100 for error in found["errors"])
    )


def test_a_second_visit_is_answered_by_the_store(tmp_path, monkeypatch):
    errors = []
    for _ in range(2):
        page = Page(tmp_path / "s.sqlite")
        page.send("start", values=SMOKE_SIZES)
        errors.append(page.until("baseline")["errors"])
        page.session.stop()
        monkeypatch.setattr(LocalEngine, "run", None)
    assert errors[0] == errors[1]


def test_a_run_that_is_not_needed_is_abandoned(tmp_path):
    wanted = iter([True, False])
    callback = Abandoning(lambda: next(wanted))
    scenario = ALONE.scenario(SMOKE_SIZES)
    study = baseline(scenario, scenario.baselines["linear"])
    with Store(tmp_path / "s.sqlite") as store, pytest.raises(Abandoned):
        run_one(study, store, LocalEngine(), callback=callback)


@pytest.mark.slow
def test_errors_by_task_size_are_measured_in_the_background(page):
    page.send("gap", values=SMOKE_SIZES | {"T": 20})
    found = [page.until("gap") for _ in range(2)]
    assert [(each["at"], each["name"]) for each in found] == [("3", "network"), ("3", "linear")]
    assert all(0 <= error <= 100 for each in found for error in each["errors"])


def test_unknown_commands_and_presets_are_refused(page):
    page.send("dance")
    assert "Unknown command 'dance'" in page.until("refused")["message"]
    page.session.submit({"do": "start", "preset": "shi2020"})
    assert "Unknown preset 'shi2020'" in page.until("refused")["message"]
    page.send("go")
    assert "Press Start" in page.until("refused")["message"]


def test_a_stopped_session_does_not_train(page):
    page.send("start", values=SMOKE_SIZES)
    page.until("frame", index=1)
    page.session.stop()
    assert not page.session._thread.is_alive() and not page.session._working


def test_a_recording_is_one_self_contained_file(tmp_path):
    found = record(ALONE, SMOKE_SIZES | {"T": 20}, baselines=False)
    frames = [message for message in found["messages"] if message["type"] == "frame"]
    assert [frame["index"] for frame in frames] == list(range(frames[0]["count"])) and frames[-1][
        "step"
    ] == 20
    write_recording(found, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    assert (
        "http://" not in text.replace("ws://", "").replace("http://www.w3.org", "")
        and "https://" not in text
    )
    assert '"values":{"d":12' in text and "@recording@" not in text
