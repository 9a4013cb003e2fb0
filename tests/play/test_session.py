"""A session without a browser: what it says, and that it stops."""

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

SMALL = {"d": 12, "D": 6, "m": 4, "T": 120, "n": 200, "seeds": 2}
WALKTHROUGH = PRESETS["shi2022"]


def network_alone(values):
    scenario = WALKTHROUGH.build(values)
    return dataclasses.replace(scenario, watched={"network": scenario.watched["network"]})


#: The story without the learners beside the network, which would be compiled too, and with one
#: value of its gap.
ALONE = dataclasses.replace(
    WALKTHROUGH, build=network_alone, gap=dataclasses.replace(WALKTHROUGH.gap, values=(3,))
)


class Page:
    """What a browser would be: it hears, and says how far it has seen."""

    def __init__(self, store=None):
        self.heard = queue.SimpleQueue()
        self.session = Session({ALONE.id: ALONE}, self.heard.put, store)
        self.session.start()

    def tell(self, do, **words):
        self.session.tell({"do": do, "preset": "shi2022", **words})

    def until(self, kind, **wanted):
        while True:
            message = self.heard.get(timeout=120)
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


def test_training_waits_for_who_watches_and_goes_back_with_them(page):
    page.tell("start", values=SMALL)
    begun = page.until("begun")
    assert begun["learners"] == ["network"] and begun["seeds"] == [10, 11]
    last = page.until("frame", index=AHEAD - 1)
    assert len(last["places"]) == 2 and len(last["errors"]["network"]) == 2
    page.tell("pause")  # obeyed after all that training may do before the page has seen more
    page.tell("seen", index=20)
    page.tell("change", index=12, values=SMALL | {"pace": 2.0}, field="pace")
    assert page.until("rewound")["index"] == 12
    assert page.until("changed")["commands"]["this view"].count("--set pace=2") == 1
    page.tell("go")
    again = page.until("frame", index=20)
    assert again["run"] == begun["run"]


@pytest.mark.slow
def test_another_size_begins_anew(page):
    page.tell("start", values=SMALL)
    first = page.until("begun")
    page.until("frame", index=3)
    page.tell("change", index=2, values=SMALL | {"m": 5}, field="m")
    assert page.until("begun")["run"] == first["run"] + 1


def test_a_wrong_number_is_refused_and_the_run_goes_on(page):
    page.tell("start", values=SMALL)
    page.until("frame", index=3)
    page.tell("change", index=3, values=SMALL | {"k": 4}, field="k")
    told = page.until("refused")
    assert told["field"] == "k" and "odd" in told["message"]
    page.tell("seen", index=10)
    page.until("frame", index=AHEAD)


def test_baselines_are_solved_in_parallel(page):
    page.tell("start", values=SMALL)
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
        page.tell("start", values=SMALL)
        errors.append(page.until("baseline")["errors"])
        page.session.stop()
        monkeypatch.setattr(LocalEngine, "run", None)
    assert errors[0] == errors[1]


def test_what_nobody_waits_for_is_abandoned(tmp_path):
    wanted = iter([True, False])
    callback = Abandoning(lambda: next(wanted))
    scenario = ALONE.scenario(SMALL)
    study = baseline(scenario, scenario.baselines["linear"])
    with Store(tmp_path / "s.sqlite") as store, pytest.raises(Abandoned):
        run_one(study, store, LocalEngine(), callback=callback)


@pytest.mark.slow
def test_the_gap_is_measured_beside(page):
    page.tell("gap", values=SMALL | {"T": 20})
    found = [page.until("gap") for _ in range(2)]
    assert [(each["at"], each["name"]) for each in found] == [("3", "network"), ("3", "linear")]
    assert all(0 <= error <= 100 for each in found for error in each["errors"])


def test_unknown_commands_and_presets_are_refused(page):
    page.tell("dance")
    assert "no command 'dance'" in page.until("refused")["message"]
    page.session.tell({"do": "start", "preset": "shi2020"})
    assert "no preset 'shi2020'" in page.until("refused")["message"]
    page.tell("go")
    assert "press start" in page.until("refused")["message"]


def test_a_stopped_session_does_no_more_work(page):
    page.tell("start", values=SMALL)
    page.until("frame", index=1)
    page.session.stop()
    assert not page.session._thread.is_alive() and not page.session._working


def test_a_recording_is_one_file_that_needs_nothing(tmp_path):
    found = record(ALONE, SMALL | {"T": 20}, baselines=False)
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
