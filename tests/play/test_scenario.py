"""Numbers and their limits, the scenes made of them, and the commands that do the same."""

import dataclasses
import shlex

import pytest

from unlazy.cli.main import main
from unlazy.core.errors import BadInput
from unlazy.lab import registry
from unlazy.play.own import task_preset
from unlazy.play.presets import PRESETS
from unlazy.play.scenario import Slider, WrongNumber
from unlazy.play.training import is_live

WALKTHROUGHS = list(PRESETS.values())
TASKS = sorted(registry.tasks())


@pytest.mark.parametrize("preset", WALKTHROUGHS, ids=lambda preset: preset.id)
def test_a_story_is_whole(preset):
    scenario = preset.scenario({})
    assert all(is_live(learner, scenario.family) for learner in scenario.watched.values())
    assert scenario.baselines and not any(
        is_live(learner, scenario.family) for learner in scenario.baselines.values()
    )
    shares = [share for share, _ in preset.walkthrough]
    assert shares == sorted(shares) and shares[0] == 0.0
    assert all(claim in registry.claims() for claim in preset.claims)
    assert preset.id in {claim.partition("/")[0] for claim in preset.claims}


@pytest.mark.parametrize("preset", WALKTHROUGHS, ids=lambda preset: preset.id)
def test_every_number_of_a_story_changes_its_scene(preset):
    """A slider that does nothing would be a lie; each is moved a little, within its limits."""

    def bare(values):
        return repr(dataclasses.replace(preset.scenario(values), commands={}))

    before = bare({})
    for slider in preset.all_sliders:
        if slider.kind == "choice":
            other = next(choice for choice in slider.choices if choice != slider.default)
        elif slider.kind == "switch":
            other = not slider.default
        else:
            other = (
                slider.default + slider.step
                if slider.default + slider.step <= slider.high
                else slider.default - slider.step
            )
        assert bare({slider.name: other}) != before, slider.name


@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_played(name):
    preset = task_preset(name)
    scenario = preset.scenario({})
    assert all(is_live(learner, scenario.family) for learner in scenario.watched.values())
    assert any(slider.name.startswith("task.") for slider in preset.sliders)


@pytest.mark.parametrize(
    "preset", [*WALKTHROUGHS, task_preset("parity")], ids=lambda preset: preset.id
)
def test_the_commands_are_commands(preset):
    """They are parsed as the command line does it, and the view leads to the same scene."""
    slider = next(slider for slider in preset.sliders if slider.kind in ("whole", "number"))
    moved = slider.low if slider.default != slider.low else slider.high
    try:
        scenario = preset.scenario({slider.name: moved})
    except WrongNumber:
        scenario = preset.scenario({})
    for command in scenario.commands.values():
        program, verb, *words = shlex.split(command)
        assert program == "unlazy"
        with main.commands[verb].make_context(verb, words) as context:
            if verb == "play":
                given = dict(change.split("=") for change in context.params["changes"])
                assert repr(preset.scenario(given)) == repr(scenario)
            if verb == "compare":
                registry.family_of(context.params["task"], context.params["changes"])
                assert all(name in registry.learners() for name in context.params["names"])
            if verb == "reproduce":
                assert registry.find_claims(context.params["ids"])


def refused(preset, field, value):
    with pytest.raises(WrongNumber) as caught:
        PRESETS[preset].scenario({field: value}, field)
    return caught.value


def test_what_cannot_be_is_refused_beside_its_slider():
    assert refused("shi2022", "k", 4).field == "k" and "odd" in str(refused("shi2022", "k", 4))
    assert refused("shi2022", "D", 70).field == "D"
    assert "between 12 and 200" in str(refused("shi2022", "d", 5))
    assert "whole number" in str(refused("shi2022", "d", 20.5))
    assert "a number, such as 60" in str(refused("shi2022", "d", "many"))
    assert "between" in str(refused("shi2022", "pace", "nan"))
    assert refused("allenzhu2019", "d", 7).field == "d"
    assert "cube, gaussian" in str(refused("glasgow2023", "distribution", "sphere"))
    assert "true or false" in str(refused("glasgow2023", "rotated", "perhaps"))


def test_what_the_family_itself_refuses_is_told_beside_the_slider_that_was_moved():
    with pytest.raises(WrongNumber, match="3 ≤ k ≤ d") as caught:
        PRESETS["daniely2020"].scenario({"d": 6, "k": 9}, "d")
    assert caught.value.field == "d"
    with pytest.raises(WrongNumber, match="power of two") as caught:
        task_preset("malach2019/task-generative").scenario({"task.n": 12}, "task.n")
    assert caught.value.field == "task.n"


def test_an_unknown_number_is_refused():
    with pytest.raises(BadInput, match="no number 'width' in shi2022"):
        PRESETS["shi2022"].scenario({"width": 3})


def test_sliders_read_what_the_page_sends():
    assert Slider("d", "d", 4, 1, 9).read("5") == 5 and isinstance(
        Slider("d", "d", 4, 1, 9).read(5.0), int
    )
    assert Slider("x", "x", 0.5).read("0.25") == 0.25
    assert Slider("b", "b", False).read("true") is True
