"""The code of an audit: it runs on the audited table, with the selected setting."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from unlazy.estimators.catalog import AUDIT
from unlazy.tables.cross_validation import CVResults, FoldResult
from unlazy.tables.recipe import winner_code
from unlazy.tasks.tables import problems
from unlazy.tasks.tables.files import read_table, table_of
from unlazy.tasks.tables.problems import problem_of


def code_for(X, y, name, settings=(0,)):
    """Return the code if the method selected these settings, one per fold."""
    return code_of(table_of(X, y), name, settings)


def code_of(table, name, settings=(0,)):
    """Return the code for a table."""
    standings = CVResults(problem_of(table), [name])
    for fold, setting in enumerate(settings):
        standings.add(FoldResult(name, 0, fold, setting, 1.0, (0,), (0.0,), 1.0))
    return winner_code(standings, name)


def model_of(code, X, y):
    """Run the code and return the model."""
    space = {"X": X, "y": y}
    exec(code, space)
    return space["model"]


def numbers(rows=60):
    """Return three columns, and a target that depends on the first."""
    draw = np.random.default_rng(0)
    X = draw.standard_normal((rows, 3))
    return X, X[:, 0] + 0.3 * draw.standard_normal(rows)


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("name", AUDIT)
def test_the_code_of_every_method_builds_the_same_model(name, kind):
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


def test_missing_numbers_and_words_are_encoded_as_in_the_audit():
    X, y = numbers()
    holes = X.copy()
    holes[::7, 1] = np.nan
    frame = pandas.DataFrame(holes, columns=["a", "b", "c"]).assign(
        color=np.where(y > 0, "red", "blue"), shape=["round", None, "flat"] * 20
    )
    frame["name"] = [f"row {place}" for place in range(60)]  # which an audit drops
    for table in (X, holes, frame):
        model = model_of(code_for(table, y > 0, "linear"), table, y > 0)
        problem = problem_of(table_of(table, y > 0))
        np.testing.assert_allclose(
            model[:-1].transform(table),
            problem.encoder().fit_transform(problem.X, problem.y),
            atol=1e-12,
        )


def same_encoding(code, X, y, problem):
    """Return whether the encoding of the code is that of the audit."""
    model = model_of(code, X, y)
    np.testing.assert_allclose(
        model[:-1].transform(X), problem.encoder().fit_transform(problem.X, problem.y), atol=1e-9
    )
    assert len(model.predict(X.iloc[:5] if hasattr(X, "iloc") else X[:5])) == 5


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y"])
def test_the_code_reads_dates_and_marks_of_missing_values_from_a_file(tmp_path, form):
    X, y = numbers(80)
    when = pandas.date_range("2023-12-01", periods=80).strftime(form)
    frame = pandas.DataFrame({"a": X[:, 0], "when": when, "b": X[:, 1].astype(object)})
    frame.loc[::9, "b"], frame.loc[5, "when"] = "?", None
    frame = frame.assign(constant=1, id=[f"row {place}" for place in range(80)])
    for kept in (frame, frame.assign(color=["red", "blue"] * 40)):
        path = tmp_path / "t.csv"
        kept.assign(y=np.where(y > 0, "yes", "no")).to_csv(path, index=False)
        table = read_table(path, "y")
        read = pandas.read_csv(path)
        labels = read.pop("y")
        same_encoding(code_of(table, "linear"), read, labels, problem_of(table))


def test_the_code_takes_a_file_without_names(tmp_path):
    X, y = numbers()
    frame = pandas.DataFrame({0: y > 0, 1: X[:, 0], 2: 1.0, 3: X[:, 1]})
    frame.to_csv(tmp_path / "t.csv", index=False, header=False)
    table = read_table(tmp_path / "t.csv", "1")
    read = pandas.read_csv(tmp_path / "t.csv", header=None)
    labels = read.pop(0)
    same_encoding(code_of(table, "linear"), read, labels, problem_of(table))


def test_the_code_takes_a_data_frame_with_every_dtype():
    X, y = numbers()
    frame = pandas.DataFrame(
        {
            "a": X[:, 0],
            "count": pandas.array([None, *range(59)], dtype="Int64"),
            "flag": pandas.array([True, False, None] * 20, dtype="boolean"),
            "grade": pandas.Categorical([1, 2, 3] * 20),
            "when": pandas.date_range("2024-01-01", periods=60, tz="UTC"),
            "y": y > 0,
        }
    )
    table = table_of(frame, "y")
    same_encoding(code_of(table, "linear"), frame.drop(columns="y"), frame["y"], problem_of(table))


def test_the_code_leaves_out_columns_of_an_array_and_of_a_frame_without_names():
    X, y = numbers()
    X = np.column_stack([X[:, 0], np.ones(60), X[:, 1], y > 0])
    for given in (X, pandas.DataFrame(X), pandas.DataFrame(X, columns=[3, 5, 7, 9])):
        table = table_of(given, y > 0)
        same_encoding(code_of(table, "linear"), given, y > 0, problem_of(table))


def test_of_many_columns_the_same_are_kept():
    X = np.random.default_rng(1).standard_normal((80, 510))
    model = model_of(code_for(X, X[:, 3] > 0, "linear"), X, X[:, 3] > 0)
    problem = problem_of(table_of(X, X[:, 3] > 0))
    kept = problem.encoder().fit(problem.X, problem.y)[-1].kept_
    assert len(kept) == problems.MAX_COLUMNS and np.array_equal(
        np.flatnonzero(model[-2].get_support()), kept
    )


def test_long_lists_of_columns_are_wrapped():
    rows, draw = 40, np.random.default_rng(0)
    frame = pandas.DataFrame({f"a column {i}": draw.standard_normal(rows) for i in range(30)})
    frame["words"] = ["a", "b"] * (rows // 2)
    y = frame["a column 0"] > 0
    code = code_of(table_of(frame.assign(y=y), "y"), "linear")
    assert max(map(len, code.splitlines())) <= 88 and "'a column 29'" in code
    assert model_of(code, frame, y).score(frame, y) > 0.7
