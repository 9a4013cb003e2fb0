"""Rows of a table as a family: what is held back, how targets become labels, and the way from the
command line to the page.
"""

import jax
import numpy as np
import pytest
from click.testing import CliRunner

from unlazy.cli import main
from unlazy.core.errors import BadInput
from unlazy.core.threefry import new_key
from unlazy.lab.registry import family_of
from unlazy.lab.trials import Trial
from unlazy.learners.catalog import LEARNERS
from unlazy.play.own import task_preset
from unlazy.play.recording import record
from unlazy.probes.performance import Performance


@pytest.fixture
def table(tmp_path):
    """Three numbers, one of them missing at times, and a word; the targets follow from the first
    two.
    """
    draw = np.random.default_rng(0)
    x = draw.normal(size=(120, 3))
    word = draw.choice(["red", "green"], 120)
    lines = ["a,b,c,word,sign,class,number"]
    for index, (row, color) in enumerate(zip(x, word, strict=True)):
        third = "" if index % 10 == 0 else f"{row[2]:.4f}"
        kind = "low" if row[0] < -0.5 else "high" if row[0] > 0.5 else "mid"
        lines.append(
            f"{row[0]:.4f},{row[1]:.4f},{third},{color},{'yes' if row[0] > 0 else 'no'},"
            f"{kind},{3 * row[1] + 10:.4f}"
        )
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def drawn(family, n, seed=0, *, test=False):
    task = family.task(key=new_key(seed))
    return (task.test if test else task.draw)(n, jax.random.key(seed))


@pytest.mark.parametrize(
    ("target", "kind", "count"),
    [("sign", "signs", None), ("class", "classes", 3), ("number", "reals", None)],
)
def test_targets_become_labels(table, target, kind, count):
    family = family_of(f"{table}:{target}")
    assert (family.outputs.kind, family.outputs.count) == (kind, count)
    x, y = drawn(family, family.most_examples)
    assert x.shape == (family.most_examples, family.dimension)
    if kind == "signs":
        assert set(np.unique(y)) == {-1.0, 1.0}
    elif kind == "classes":
        assert y.shape[1] == 3 and np.allclose(np.sum(y, axis=1), 1)
    else:
        assert abs(np.mean(y)) < 1e-5 and abs(np.std(y) - 1) < 1e-5


def test_a_fifth_is_held_back_and_never_learned_from(table):
    family = family_of(f"{table}:sign")
    rows = {
        tuple(row)
        for seed in range(3)
        for row in np.round(np.asarray(drawn(family, family.most_examples, seed).x), 5)
    }
    held = {tuple(row) for row in np.round(np.asarray(drawn(family, 1000, test=True).x), 5)}
    assert len(rows) == 96 and len(held) == 24 and not rows & held


def test_held_rows_do_not_shape_the_encoding(table):
    family = family_of(f"{table}:number")
    x, _ = drawn(family, family.most_examples)
    # Standardized on the training rows: before soft clipping the mean is zero.
    numbers = np.asarray(x, np.float64)
    uncut = numbers / np.sqrt(1 - np.square(numbers / 4))
    assert np.allclose(uncut.mean(axis=0), 0, atol=1e-4)


def test_an_edited_table_is_another_trial(table):
    probes = (Performance(100),)
    before = Trial(family_of(f"{table}:sign"), LEARNERS["linear"].value, 50, 10, probes).id
    assert before == Trial(family_of(f"{table}:sign"), LEARNERS["linear"].value, 50, 10, probes).id
    table.write_text(table.read_text().replace("red", "blue"))
    assert before != Trial(family_of(f"{table}:sign"), LEARNERS["linear"].value, 50, 10, probes).id


@pytest.mark.parametrize(
    ("name", "says"), [("absent.csv:y", "There is no file absent.csv"), ("{table}:sing", "sign")]
)
def test_missing_files_and_columns_are_named(table, name, says):
    with pytest.raises(BadInput, match=says):
        family_of(name.format(table=table))


def test_more_rows_than_there_are_is_refused(table):
    with pytest.raises(BadInput, match="96 training rows, but 97"):
        drawn(family_of(f"{table}:sign"), 97)


def test_a_contest_on_a_table(table, tmp_path):
    words = [
        "compare",
        f"{table}:sign",
        "--learner",
        "linear",
        "--learner",
        "rbf",
        "--n",
        "40",
        "--seeds",
        "2",
    ]
    found = CliRunner().invoke(
        main, [*words, "--store", str(tmp_path / "s.sqlite"), "--budget", "2"]
    )
    assert found.exit_code == 0, found.output
    assert "linear" in found.output and "rbf" in found.output


def test_a_table_can_be_watched(table):
    preset = task_preset(f"{table}:sign")
    assert "120 rows" in preset.about
    found = record(preset, {"n": 60, "width": 20, "steps": 50, "seeds": 1}, baselines=False)
    frames = [message for message in found["messages"] if message["type"] == "frame"]
    assert frames[-1]["ground_truth"] is False and frames[-1]["hidden"] == 2
    assert len(frames[-1]["tiles"][0]) == family_of(f"{table}:sign").dimension
    assert "hidden direction" not in frames[-1]["summary"]
    assert frames[-1]["errors"]["network"][0] < frames[0]["errors"]["network"][0]
