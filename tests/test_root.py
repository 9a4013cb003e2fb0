"""The public namespace: names are imported on first use."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

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


# Calls of people who do not know the classes of this package

SMALL = {"seeds": 2, "budget": 1, "test": 50, "progress": False}


def test_scikit_learn_estimators_and_mappings_are_accepted():
    outcome = unlazy.compare("parity", [SVC(), "linear"], n=(20, 40), set={"d": 4}, **SMALL)
    text = str(outcome)
    assert "SVC" in text and "\x1b" not in text and max(map(len, text.splitlines())) <= 100
    frame = outcome.to_dataframe()
    assert {"SVC", "linear"} <= {*frame["series"]} and frame["y"].between(0, 100).all()


@pytest.mark.parametrize(
    ("task", "learners", "options", "message"),
    [
        ("parity", [SVC], {}, r"got the class SVC. Give an instance: SVC\(\)"),
        ("parity", [3], {}, "must be a name, a Learner or a scikit-learn estimator, got an object"),
        (np.ones((9, 2)), "linear", {}, r"got an object of type ndarray.*audit\(X, y\)"),
        (unlazy.Family, "linear", {}, "must be a name or a Family, got the class Family"),
        ("parity", "linear", {"n": 1e2}, r"`n` must be a positive integer, got 100.0"),
        ("parity", "linear", {"n": [10, 0]}, "`n` must be a positive integer, got 0"),
        ("parity", "linear", {"seeds": 0}, "`seeds` must be a positive integer, got 0"),
        ("parity", "linear", {"first_seed": -1}, "`first_seed` must be an integer ≥ 0, got -1"),
        ("parity", "linear", {"set": {"dd": 4}}, "no parameter of parity named 'dd'"),
        ("parity", "linear", {"set": {"d": "x"}}, "`d` must be an integer"),
    ],
)
def test_errors_say_what_was_expected(task, learners, options, message):
    with pytest.raises(unlazy.BadInput, match=message):
        unlazy.compare(task, learners, **({"n": 20} | SMALL | options))
