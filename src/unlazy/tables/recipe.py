"""Code for the selected method of an audit: its encoding by scikit-learn transformers, and the
setting that was selected most often.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unlazy.estimators.catalog import AUDIT
from unlazy.tables.cross_validation import CVResults
from unlazy.tasks.tables.problems import CATEGORIES, MAX_COLUMNS, Problem

_IMPUTED = 'SimpleImputer(strategy="median", add_indicator=True)'
_NUMBERS = f"""
numbers = {{selectors}}
as_floats = FunctionTransformer(as_numbers{{dates}})
numeric = make_pipeline(as_floats, {_IMPUTED})"""
_WORDS = f"""
words = {{selectors}}
coded = OneHotEncoder(
    handle_unknown="infrequent_if_exist", max_categories={CATEGORIES}, sparse_output=False
)
missing = SimpleImputer(strategy="constant", fill_value="(missing)")
coded = make_pipeline(FunctionTransformer(as_words), missing, coded)"""


def winner_code(standings: CVResults, winner: str) -> str:
    """Return code that fits the selected method to `X` and `y`.

    `X`: the audited data, as an array or a data frame as pandas reads it from the file.
    """
    problem = standings.problem
    selector = problem.encoder().fit(problem.X, problem.y)[-1]
    chosen = [fold.setting for fold in standings.of(winner)]
    estimator = AUDIT[winner].settings(problem.kind, len(selector.kept_))[
        max(sorted(set(chosen)), key=chosen.count)
    ]
    imports = {
        "sklearn.pipeline": ["make_pipeline"],
        "sklearn.preprocessing": ["FunctionTransformer", "StandardScaler"],
    }
    steps, before = ["StandardScaler()", "FunctionTransformer(soft_cut)"], ""
    about = (
        "# X: the input columns (a data frame or array); y: the target. soft_cut limits outliers.\n"
    )
    if not problem.whole:
        before, columns = _columns_code(problem, imports)
        steps = [columns, *steps]
    elif np.isnan(problem.X.astype(np.float64)).any():
        steps.insert(0, _IMPUTED)
        imports["sklearn.impute"] = ["SimpleImputer"]
    if selector.n_columns_ > MAX_COLUMNS:
        score = "f_classif" if problem.kind == "classification" else "f_regression"
        steps.append(f"SelectKBest({score}, k={MAX_COLUMNS})")
        imports["sklearn.feature_selection"] = ["SelectKBest", score]
    home = type(estimator).__module__.split(".")
    place = "unlazy.estimators" if home[0] == "unlazy" else ".".join(home[:2])
    imports.setdefault(place, []).append(type(estimator).__name__)
    imports["unlazy.tasks.tables.problems"] = ["soft_cut"]
    lines = [f"from {place} import {', '.join(names)}" for place, names in sorted(imports.items())]
    inner = "".join(f"    {step},\n" for step in (*steps, repr(estimator).replace("\n", " ")))
    return about + "\n".join(lines) + f"\n{before}\nmodel = make_pipeline(\n{inner}).fit(X, y)"


def _columns_code(problem: Problem, imports: dict[str, list[str]]) -> tuple[str, str]:
    """Return code that defines the parts of the encoding, and the step that joins them.

    Adds to `imports`.
    """
    before, parts, readers = "", [], []
    selectors = problem.selectors or problem.names
    if problem.numeric:
        formats = {
            place: problem.dates[column]
            for place, column in enumerate(problem.numeric)
            if problem.dates and problem.dates[column]
        }
        before += _NUMBERS.format(
            selectors=_listed([selectors[place] for place in problem.numeric]),
            dates=f', kw_args={{"dates": {formats}}}' if formats else "",
        )
        parts.append("(numeric, numbers)")
        readers.append("as_numbers")
    if problem.words:
        before += _WORDS.format(selectors=_listed([selectors[place] for place in problem.words]))
        parts.append("(coded, words)")
        readers.append("as_words")
        imports["sklearn.preprocessing"].insert(1, "OneHotEncoder")
    imports |= {
        "sklearn.compose": ["make_column_transformer"],
        "sklearn.impute": ["SimpleImputer"],
        "unlazy.tasks.tables.columns": readers,
    }
    return before + "\n", f"make_column_transformer({', '.join(parts)})"


def _listed(values: Sequence[str | int]) -> str:
    """Return the code of a list, in lines of at most 88 columns."""
    lines = [""]
    for text in map(repr, values):
        if lines[-1] and len(lines[-1]) + len(text) > 82:
            lines.append("")
        lines[-1] += f"{text}, "
    if len(lines) == 1:
        return f"[{lines[0][:-2]}]"
    return "[\n" + "".join(f"    {line.rstrip()}\n" for line in lines) + "]"
