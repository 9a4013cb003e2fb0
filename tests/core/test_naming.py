"""Descriptions of trials: keys depend on content, and names of classes on their code."""

import copy
import functools
import importlib
import os
import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from toys import Halfspace
from unlazy.core.naming import ContentHashed, Ingredients, describe, key_name, type_name
from unlazy.kernels.stationary import RBF
from unlazy.lab.registry import load_file

FILE = """
import equinox as eqx

def helper(x):
    return x + 1

class Thing(eqx.Module):
    number: int = 3

    def __call__(self, x):
        return helper(x)
"""


def name_in(folder, text=FILE, name="mine.py"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(textwrap.dedent(text))
    return type_name(load_file(folder / name).Thing)


def typed(text, name="Thing"):
    """As in a notebook: no file, no module."""
    scope = {"__name__": "nowhere"}
    exec(textwrap.dedent(text), scope)
    return scope[name]


def test_ours_is_written_by_its_own_name():
    """Names, not paths: a file of ours may move."""
    assert type_name(RBF) == "RBF" and describe(RBF(0.5)) == {"type": "RBF", "gamma": 0.5}


def test_a_file_is_known_by_its_text_and_not_by_its_place(tmp_path):
    here = name_in(tmp_path / "a")
    assert here.startswith("Thing#") and name_in(tmp_path / "b") == here
    assert name_in(tmp_path / "a", FILE.replace("return helper", "return 2 * helper")) != here
    assert name_in(tmp_path / "a", FILE.replace("x + 1", "x + 2")) != here, (
        "an edited helper must count"
    )
    assert name_in(tmp_path / "a") == here


def test_objects_created_before_an_edit_keep_their_name(tmp_path):
    """It still runs the old code, so its records must not be found under the name of the new."""
    before = name_in(tmp_path)
    old = load_file(tmp_path / "mine.py").Thing
    after = name_in(tmp_path, FILE.replace("x + 1", "x + 2"))
    new = load_file(tmp_path / "mine.py").Thing
    assert (type_name(old), type_name(new)) == (before, after) and before != after
    assert old()(0) == 1 and new()(0) == 2 and old is not new


def test_files_of_one_name_in_two_folders_are_distinct(tmp_path):
    one = name_in(tmp_path / "a")
    first = load_file(tmp_path / "a" / "mine.py").Thing
    assert name_in(tmp_path / "b", FILE.replace("x + 1", "x + 7")) != one == type_name(first)


def test_modules_next_to_a_file_count(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    names = []
    for version, change in enumerate(("x + 1", "x + 2")):
        (tmp_path / f"helpers{version}.py").write_text(f"def helper(x):\n    return {change}\n")
        names.append(
            name_in(
                tmp_path,
                FILE.replace(
                    "def helper(x):\n    return x + 1", f"from helpers{version} import helper"
                ),
                "one.py",
            )
        )
    text = FILE.replace("def helper(x):\n    return x + 1", "import helpers0")
    same = name_in(tmp_path, text, "two.py")
    (tmp_path / "helpers0.py").write_text("def helper(x):\n    return x - 1\n")
    monkeypatch.delitem(sys.modules, "helpers0")
    importlib.invalidate_caches()
    assert name_in(tmp_path, text + "\n", "two.py") != same and len({*names, same}) == 3


def test_a_package_is_known_by_all_its_files(tmp_path, monkeypatch):
    found = []
    for version, change in enumerate(("1", "2", "1")):
        package = tmp_path / str(version) / "my_package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "other.py").write_text(f"x = {change}\n")
        (package / "things.py").write_text("class Thing:\n    pass\n")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(package.parent)
            for name in [name for name in sys.modules if name.split(".")[0] == "my_package"]:
                del sys.modules[name]
            found.append(type_name(importlib.import_module("my_package.things").Thing))
    assert found[0] == found[2] != found[1]


NOTEBOOK = FILE.replace("number: int = 3", "number: int = 3\n    label = 'a'")


@pytest.mark.parametrize(
    "change",
    [
        ("x + 1", "x + 2"),
        ("return helper(x)", "return helper(x) * 2"),
        ("label = 'a'", "label = 'b'"),
        ("number: int", "number: float"),
    ],
)
def test_notebook_code_is_identified_by_its_bytecode(change):
    assert type_name(typed(NOTEBOOK)) == type_name(typed(NOTEBOOK))
    assert type_name(typed(NOTEBOOK)) != type_name(typed(NOTEBOOK.replace(*change)))


def test_bases_in_a_notebook_count():
    text = NOTEBOOK + "\nclass Below(Thing):\n    pass\n"
    assert type_name(typed(text, "Below")) != type_name(
        typed(text.replace("x + 1", "x + 3"), "Below")
    )


def test_the_name_is_the_same_in_every_process():
    """Sets have another order in each process, objects another address."""
    text = "def thing(x, y=object()):\n    return x in {'a', 'b', 'c', 'd'}\n"
    program = f"from unlazy.core.naming import type_name\nexec({text!r})\nprint(type_name(thing))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=_environment(s),
        )
        for s in "12"
    ]
    assert runs[0].stdout == runs[1].stdout and runs[0].stdout.startswith("thing#")


def _environment(seed):
    return os.environ | {"PYTHONHASHSEED": seed}


def adder(number):
    return lambda x: x + number


def test_functions_made_by_functions_are_distinct():
    one, other = (lambda x: x + 1), (lambda x: x + 2)
    assert describe(one) != describe(other)
    assert describe(adder(1)) == describe(adder(1)) != describe(adder(2))


def test_partial_functions_and_functions_of_libraries():
    small, large = (describe(functools.partial(eqx.nn.MLP, width_size=width)) for width in (8, 16))
    assert small != large and small["options"] == {"width_size": 8}
    assert describe(jax.nn.relu) == describe(jax.nn.relu) != describe(jax.nn.gelu)


def test_estimators_are_described_by_their_parameters():
    described = describe(Ridge(alpha=2.0))
    assert described["type"].startswith("Ridge#") and described["alpha"] == 2.0
    assert described != describe(Ridge(alpha=3.0))


class Option(eqx.Module):
    """A module with defaults, one of them a module itself."""

    width: int
    rate: float = 0.1
    kernel: RBF = RBF(1.0)


def test_defaults_are_omitted_from_the_brief_description():
    assert describe(Option(3), brief=True) == {"type": "Option", "width": 3}
    assert describe(Option(3, 0.1, RBF(1.0)), brief=True) == describe(Option(3), brief=True)
    other = describe(Option(3, rate=0.2, kernel=RBF(2.0)), brief=True)
    assert other["rate"] == 0.2 and other["kernel"] == {"type": "RBF", "gamma": 2.0}
    assert describe(Option(3))["rate"] == 0.1, "the full description has all"
    assert describe(Ridge(alpha=2.0), brief=True) == {"type": "Ridge", "alpha": 2.0}


class Renamed(eqx.Module):
    KEY = "Earlier"


class Below(Renamed):
    pass


def test_a_class_that_was_renamed_keeps_its_name_in_keys():
    assert key_name(Renamed) == "Earlier" and key_name(Below) == "Below", "not for subclasses"
    assert describe(Renamed(), brief=True) == {"type": "Earlier"}


class File(ContentHashed):
    """Data whose content is not in the description."""

    path: str
    content: str
    held = ("content",)

    @property
    def digest(self):
        return f"hash of {self.content}"


def test_content_of_data_is_collected_and_left_out_of_keys():
    parts = Ingredients()
    brief = describe(File("a.csv", "1,2"), brief=True, parts=parts)
    assert brief == {"type": "File", "path": "a.csv"}
    assert parts.data == {"File a.csv": "hash of 1,2"} and {File, str} <= parts.things
    assert describe(File("a.csv", "3,4"), brief=True) == brief
    assert describe(File("a.csv", "3,4"))["identity"] == "hash of 3,4"


def test_all_classes_and_functions_are_collected():
    parts = Ingredients()
    describe(((Option(3), [jax.nn.relu]), {"x": functools.partial(adder, 1)}), parts=parts)
    assert parts.things == {Option, RBF, jax.nn.relu, adder}


def test_arrays_count_by_their_numbers():
    assert describe(np.arange(3)) == describe(np.arange(3)) != describe(np.arange(4))


def test_objects_without_a_description_are_refused():
    with pytest.raises(TypeError, match="described by numbers"):
        describe(object())


def test_a_class_of_a_test_file_is_the_users():
    assert type_name(Halfspace).startswith("Halfspace#")


def test_a_copy_does_not_change_the_name_of_its_class():
    """Copying and pickling leave a mark on the class."""
    before = type_name(Halfspace)
    copy.copy(Halfspace(3))
    assert "__slotnames__" in vars(Halfspace) and type_name(Halfspace) == before
