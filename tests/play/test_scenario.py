"""Parameters and their ranges, scenarios built from them, and their commands."""

import dataclasses
import shlex

import pytest

from unlazy.cli.main import main
from unlazy.core.errors import BadInput
from unlazy.lab import registry
from unlazy.play.own import task_preset
from unlazy.play.presets import PRESETS
from unlazy.play.scenario import InvalidValue, Slider
from unlazy.play.training import is_live

WALKTHROUGHS = list(PRESETS.values())
TASKS = sorted(registry.tasks())


@pytest.mark.parametrize("preset", WALKTHROUGHS, ids=lambda preset: preset.id)
def test_a_walkthrough_is_complete(preset):
    scenario = preset.scenario({})
    assert all(is_live(learner, scenario.family) for learner in scenario.watched.values())
    assert scenario.baselines and not any(
        is_live(learner, scenario.family) for learner in scenario.baselines.values()
    )
    assert set(scenario.fixed) <= set(scenario.watched) - {next(iter(scenario.watched))}
    fractions = [fraction for fraction, _ in preset.walkthrough]
    assert fractions == sorted(fractions) and fractions[0] == 0.0
    assert all(claim in registry.claims() for claim in preset.claims)
    assert preset.id in {claim.partition("/")[0] for claim in preset.claims}


@pytest.mark.parametrize("preset", WALKTHROUGHS, ids=lambda preset: preset.id)
def test_each_parameter_changes_the_scenario(preset):
    """Each slider is moved by one step within its range."""

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
    """They parse, and `unlazy play` builds the same scenario."""
    slider = next(slider for slider in preset.sliders if slider.kind in ("integer", "number"))
    moved = slider.low if slider.default != slider.low else slider.high
    try:
        scenario = preset.scenario({slider.name: moved})
    except InvalidValue:
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


def invalid(preset, field, value):
    with pytest.raises(InvalidValue) as caught:
        PRESETS[preset].scenario({field: value}, field)
    return caught.value


def test_invalid_values_are_reported_at_their_slider():
    assert invalid("shi2022", "k", 4).field == "k" and "odd" in str(invalid("shi2022", "k", 4))
    assert invalid("shi2022", "D", 70).field == "D"
    assert "between 12 and 200, got 5" in str(invalid("shi2022", "d", 5))
    assert "an integer, got 20.5" in str(invalid("shi2022", "d", 20.5))
    assert "a number, such as 60" in str(invalid("shi2022", "d", "many"))
    assert "between" in str(invalid("shi2022", "pace", "nan"))
    assert "between" in str(invalid("shi2022", "d", "nan"))
    assert invalid("allenzhu2019", "d", 7).field == "d"
    assert "cube, gaussian" in str(invalid("glasgow2023", "distribution", "sphere"))
    assert "true or false" in str(invalid("glasgow2023", "rotated", "perhaps"))


def test_errors_of_the_family_are_reported_at_the_slider_that_was_moved():
    with pytest.raises(InvalidValue, match="3 ≤ k ≤ d") as caught:
        PRESETS["daniely2020"].scenario({"d": 6, "k": 9}, "d")
    assert caught.value.field == "d"
    with pytest.raises(InvalidValue, match="power of two") as caught:
        task_preset("malach2019/task-generative").scenario({"task.n": 12}, "task.n")
    assert caught.value.field == "task.n"


def test_an_unknown_parameter_is_refused():
    with pytest.raises(BadInput, match="shi2022 has no parameter 'width'"):
        PRESETS["shi2022"].scenario({"width": 3})


def test_a_task_parameter_may_be_named_without_its_prefix():
    preset = task_preset("parity")
    assert preset.full_names({"d": "40", "n": "60"}) == {"task.d": "40", "n": "60"}
    assert preset.scenario({"d": "40"}).family.d == 40
    circuit = task_preset("malach2019/task-generative")  # has a slider n and a parameter n
    assert circuit.full_names({"n": 60}) == {"n": 60}
    with pytest.raises(BadInput, match=r"`task.d` is given twice"):
        preset.scenario({"d": 40, "task.d": 40})


def test_sliders_read_what_the_page_sends():
    assert Slider("d", "d", 4, 1, 9).read("5") == 5 and isinstance(
        Slider("d", "d", 4, 1, 9).read(5.0), int
    )
    assert Slider("x", "x", 0.5).read("0.25") == 0.25
    assert Slider("b", "b", False).read("true") is True
