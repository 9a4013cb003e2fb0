"""Definitions reachable from a root: only code that can change a number counts."""

import pytest

from unlazy.core import source_code
from unlazy.core.source_code import is_computing, module_of, reached

FILES = {
    "core/base.py": """
SCALE = 2.0

def helper(x: float) -> float:
    \"""Say something.\"""
    return SCALE * x

def unused(x):
    return x
""",
    "learners/__init__.py": "from unlazy.learners.net import Net\n",
    "learners/net.py": """
from unlazy.core import base
from unlazy.core.base import helper
from unlazy.report.page import show

class Net:
    width: int = 3

    def fit(self, x):
        # A comment.
        from unlazy.core.lazy import late
        show(x)
        return helper(x) + late(x)

class Other:
    def fit(self, x):
        return base.unused(x)
""",
    "core/lazy.py": "def late(x):\n    return x\n",
    "report/page.py": "def show(x):\n    print(x)\n",
}
ROOTS = [("unlazy.learners", "Net")]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in the place of ours; a change is a file and two texts."""
    monkeypatch.setattr(source_code, "ROOT", tmp_path)

    def found(name="", old="", new="", roots=ROOTS):
        for file, text in FILES.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            assert file != name or old in text
            (tmp_path / file).write_text(text.replace(old, new) if file == name else text)
        module_of.cache_clear()
        return reached(roots)

    yield found
    module_of.cache_clear()


def test_the_reach_follows_imports_within_the_computing_folders(package):
    names = {"unlazy.core.base", "unlazy.core.lazy", "unlazy.learners.net"}
    assert package().keys() == names
    assert package(roots=[("unlazy.learners.net", "Other")]).keys() == {
        "unlazy.core.base",
        "unlazy.learners.net",
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "module"),
    [
        ("core/base.py", "SCALE * x", "SCALE + x", "core.base"),
        ("core/base.py", "2.0", "3.0", "core.base"),
        ("core/lazy.py", "return x", "return -x", "core.lazy"),
        ("learners/net.py", "= 3", "= 4", "learners.net"),
        ("core/base.py", "SCALE = 2.0", "SCALE = 2.0\nSCALE += 1", "core.base"),
        ("core/base.py", "SCALE = 2.0", "SCALE = 2.0\nprint(1)", "core.base"),
    ],
)
def test_code_that_can_change_a_number_counts(package, name, old, new, module):
    before, after = package(), package(name, old, new)
    assert {each for each in after if after[each] != before[each]} == {f"unlazy.{module}"}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("core/base.py", "Say something.", "Say something else."),
        ("core/base.py", "x: float", "x: int"),
        ("core/base.py", "return x\n", "return 2 * x\n"),
        ("learners/net.py", "# A comment.", "# Another."),
        ("learners/net.py", "width: int", "width: float"),
        ("learners/net.py", "base.unused(x)", "x"),
        ("learners/__init__.py", "from", "\n\nfrom"),
        ("report/page.py", "print(x)", "print(2 * x)"),
    ],
)
def test_code_that_changes_no_number_does_not_count(package, name, old, new):
    assert package(name, old, new) == package()


def test_folders_that_report_and_run_do_not_compute():
    computing = ("learners.gradient", "papers.shi2022.constants", "lab.engines.local", "studies.x")
    assert all(is_computing(f"unlazy.{name}") for name in computing)
    others = ("cli.main", "report.view", "play.scenario", "lab.store", "lab.run", "api", "__main__")
    assert not any(is_computing(f"unlazy.{name}") for name in others)
    assert not is_computing("numpy.linalg") and not is_computing("unlazy")
    for name in (*source_code.NOT_COMPUTING, *source_code.COMPUTING):
        place = source_code.ROOT.joinpath(*name.split("."))
        assert place.is_dir() or place.with_suffix(".py").is_file(), f"{name} does not exist"
