"""The public namespace: names are imported on first use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import unlazy

TREE = ast.parse(Path(unlazy.__file__).read_text(encoding="utf-8"))


def test_importing_is_fast():
    """Neither JAX nor NumPy are imported with the package, nor by asking what it offers."""
    text = (
        "import sys, unlazy; dir(unlazy); print([m for m in ('jax', 'numpy', 'equinox', "
        "'scipy', 'sklearn', 'click') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "name", [name for name in unlazy.__all__ if name not in ("compare", "reproduce", "scaling")]
)
def test_every_name_exists(name):
    assert getattr(unlazy, name) is not None and name in dir(unlazy)


def test_functions_are_public():
    assert callable(unlazy.compare) and callable(unlazy.reproduce) and callable(unlazy.scaling)


def test_type_checkers_have_the_same_names():
    """Imports for type checkers, `_HOMES` and `__all__` have the same names."""
    (block,) = (node for node in TREE.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == unlazy._HOMES
    assert sorted(unlazy.__all__) == sorted({*imported, "__version__"})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("Familly", "Family"), ("ntk", "NTK"), ("KernelRigde", "KernelRidge"), ("learner", "Learner")],
)
def test_a_wrong_name_suggests_the_nearest(wrong, right):
    with pytest.raises(AttributeError, match=f"no attribute '{wrong}'. Did you mean '{right}'"):
        getattr(unlazy, wrong)


def test_an_unknown_name_is_refused_without_a_suggestion():
    with pytest.raises(AttributeError, match=r"no attribute 'zzzzqqq'\.$"):
        _ = unlazy.zzzzqqq
    assert not hasattr(unlazy, "__path_of_nothing__")


def test_layers_are_attributes():
    assert unlazy.lab.__name__ == "unlazy.lab"
