"""The code that an audit gives: it runs as it stands, on the table that was audited, with the
setting that won.
"""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from unlazy.estimators.catalog import AUDIT
from unlazy.tables.contest import Bout, Standings
from unlazy.tables.recipe import winner_code
from unlazy.tasks.tables import problems
from unlazy.tasks.tables.files import table_of
from unlazy.tasks.tables.problems import problem_of


def code_for(X, y, name, settings=(0,)):
    """The code where the contender chose these settings, one a fold."""
    standings = Standings(problem_of(table_of(X, y)), [name])
    for fold, setting in enumerate(settings):
        standings.add(Bout(name, 0, fold, setting, 1.0, (0,), (0.0,), 1.0))
    return winner_code(standings, name)


def model_of(code, X, y):
    """What the code makes."""
    space = {"X": X, "y": y}
    exec(code, space)
    return space["model"]


def numbers(rows=60):
    """Three columns, and a target that follows the first."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((rows, 3))
    return X, X[:, 0] + 0.3 * draw.standard_normal(rows)


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("name", AUDIT)
def test_the_code_of_every_contender_makes_what_competed(name, kind):
    X, y = numbers()
    y = y > 0 if kind == "classification" else y
    for setting, estimator in enumerate(AUDIT[name].settings(kind, 3)):
        model = model_of(code_for(X, y, name, [setting]).removesuffix(".fit(X, y)"), X, y)
        assert (
            type(model[-1]) is type(estimator) and model[-1].get_params() == estimator.get_params()
        )


@pytest.mark.parametrize("name", ["RBF kernel", "RFM", "gradient boosting"])
def test_the_code_fits(name):
    X, y = numbers()
    assert model_of(code_for(X, y > 0, name), X, y > 0).score(X, y > 0) > 0.7


def test_the_setting_is_the_one_chosen_most_often():
    X, y = numbers()
    code = code_for(X, y > 0, "linear", [1, 2, 2, 1, 2])
    assert (
        model_of(code, X, y > 0)[-1].get_params()
        == AUDIT["linear"].settings("classification", 3)[2].get_params()
    )


def test_missing_numbers_and_words_are_encoded_as_in_the_contest():
    X, y = numbers()
    holes = X.copy()
    holes[::7, 1] = np.nan
    frame = pandas.DataFrame(holes, columns=["a", "b", "c"]).assign(
        colour=np.where(y > 0, "red", "blue"), shape=["round", None, "flat"] * 20
    )
    frame["name"] = [f"row {place}" for place in range(60)]  # which a contest leaves out
    for table in (X, holes, frame):
        model = model_of(code_for(table, y > 0, "linear"), table, y > 0)
        problem = problem_of(table_of(table, y > 0))
        np.testing.assert_allclose(
            model[:-1].transform(table),
            problem.encoder().fit_transform(problem.X, problem.y),
            atol=1e-12,
        )


def test_of_many_columns_the_same_are_kept():
    X = np.random.default_rng(1).standard_normal((80, 510))
    model = model_of(code_for(X, X[:, 3] > 0, "linear"), X, X[:, 3] > 0)
    problem = problem_of(table_of(X, X[:, 3] > 0))
    kept = problem.encoder().fit(problem.X, problem.y)[-1].kept_
    assert len(kept) == problems.MOST_COLUMNS and np.array_equal(
        np.flatnonzero(model[-2].get_support()), kept
    )
