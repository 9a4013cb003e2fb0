"""Code for the winner of an audit: the contest's encoding by scikit-learn's transformers, and the
setting that was chosen most often.
"""

from __future__ import annotations

import numpy as np

from unlazy.estimators.catalog import AUDIT
from unlazy.tables.contest import Standings
from unlazy.tasks.tables.problems import CATEGORIES, MOST_COLUMNS

_NUMBERS = 'SimpleImputer(strategy="median", add_indicator=True)'
_MIXED = f"""
numbers = [{{numbers}}]
words = [{{words}}]
coded = OneHotEncoder(
    handle_unknown="infrequent_if_exist", max_categories={CATEGORIES}, sparse_output=False
)
columns = make_column_transformer(
    ({_NUMBERS}, numbers),
    (make_pipeline(SimpleImputer(strategy="constant", fill_value="(missing)"), coded), words),
)"""


def winner_code(standings: Standings, winner: str) -> str:
    """Lines that fit the winner to `X` and `y`, `X` being a data frame where columns hold words."""
    problem = standings.problem
    telling = problem.encoder().fit(problem.X, problem.y)[-1]
    chosen = [bout.setting for bout in standings.of(winner)]
    estimator = AUDIT[winner].settings(problem.kind, len(telling.kept_))[
        max(sorted(set(chosen)), key=chosen.count)
    ]
    imports = {
        "sklearn.pipeline": ["make_pipeline"],
        "sklearn.preprocessing": ["FunctionTransformer", "StandardScaler"],
    }
    steps, before = ["StandardScaler()", "FunctionTransformer(soft_cut)"], ""
    if problem.words:
        named = {"numbers": problem.numeric, "words": problem.words}
        before = _MIXED.format(
            **{
                kind: ", ".join(repr(problem.names[place]) for place in places)
                for kind, places in named.items()
            }
        )
        steps = ["columns", *steps]
        imports |= {
            "sklearn.compose": ["make_column_transformer"],
            "sklearn.impute": ["SimpleImputer"],
        }
        imports["sklearn.preprocessing"].insert(1, "OneHotEncoder")
    elif np.isnan(problem.X.astype(np.float64)).any():
        steps.insert(0, _NUMBERS)
        imports["sklearn.impute"] = ["SimpleImputer"]
    if telling.n_columns_ > MOST_COLUMNS:
        score = "f_classif" if problem.kind == "classification" else "f_regression"
        steps.append(f"SelectKBest({score}, k={MOST_COLUMNS})")
        imports["sklearn.feature_selection"] = ["SelectKBest", score]
    home = type(estimator).__module__.split(".")
    place = "unlazy.estimators" if home[0] == "unlazy" else ".".join(home[:2])
    imports.setdefault(place, []).append(type(estimator).__name__)
    imports["unlazy.tasks.tables.problems"] = ["soft_cut"]
    lines = [f"from {place} import {', '.join(names)}" for place, names in sorted(imports.items())]
    inner = "".join(f"    {step},\n" for step in (*steps, repr(estimator).replace("\n", " ")))
    return "\n".join(lines) + f"\n{before}\nmodel = make_pipeline(\n{inner}).fit(X, y)"
