"""Estimators on one table of 8,000 rows and 10 columns: versus one Cholesky factorization,
scikit-learn's network, and xRFM.

xRFM is measured if it is installed (`pip install xrfm`). Notes contain the accuracies on 4,000
other rows.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.neural_network import MLPClassifier

from benchmarks.timing import Comparison, interleaved
from unlazy.estimators import (
    DeepMLPClassifier,
    NTKClassifier,
    RecursiveFeatureMachineClassifier,
    ThreeLayerResNetClassifier,
    TwoLayerClassifier,
)

ROWS, COLUMNS, TESTED = 8_000, 10, 4_000


def made_table(seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return labels of a smooth function of three directions in ten columns, with noise."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((ROWS + TESTED, COLUMNS))
    u = np.linalg.qr(draw.standard_normal((COLUMNS, 3)))[0]
    first, second, third = (1.5 * x @ u).T
    y = (
        np.tanh(first) * np.sin(second)
        + 0.4 * np.abs(third)
        - 0.3
        + 0.2 * draw.standard_normal(len(x))
        > 0
    ).astype(int)
    return x[:ROWS], y[:ROWS], x[ROWS:], y[ROWS:]


def fitting(
    make: Callable[[], Any], notes: dict[str, float | str], name: str
) -> Callable[[], float]:
    """Return the seconds of a fit; its accuracy is added to the notes."""
    x, y, x_test, y_test = made_table()

    def run() -> float:
        machine = make()
        begin = time.perf_counter()
        machine.fit(x, y)
        taken = time.perf_counter() - begin
        notes[f"accuracy of {name}"] = round(
            100 * float(np.mean(machine.predict(x_test) == y_test)), 2
        )
        return taken

    return run


def cholesky_time() -> float:
    """Run one factorization in double precision."""
    matrix = np.eye(ROWS) * ROWS + np.random.default_rng(0).standard_normal((ROWS, 1)) ** 2
    matrix = (matrix + matrix.T) / 2
    begin = time.perf_counter()
    scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
    return time.perf_counter() - begin


class _XRFM:
    """xRFM as in its documentation, with a fifth of the rows for validation."""

    def fit(self, x: np.ndarray, y: np.ndarray) -> None:
        """Fit on four fifths."""
        from xrfm import xRFM

        cut = len(x) * 4 // 5
        self.machine = xRFM(device="cpu", tuning_metric="accuracy")
        self.machine.fit(x[:cut].astype(np.float32), y[:cut], x[cut:].astype(np.float32), y[cut:])

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Return the predicted classes."""
        return np.asarray(self.machine.predict(x.astype(np.float32))).ravel()


def against(
    what: str,
    ours: Callable[[], Any],
    peer: Callable[[], float] | Callable[[], Any],
    target: float,
    rounds: int = 2,
) -> Comparison:
    """Compare our fit with a factorization (a function that times itself) or a peer's fit."""
    notes: dict[str, float | str] = {}
    other = cholesky_time if peer is cholesky_time else fitting(peer, notes, "peer")
    mine = fitting(ours, notes, "ours")
    mine()  # compiled
    times = interleaved({"ours": mine, "peer": other}, rounds, what)  # type: ignore[dict-item]
    return Comparison(what, "fit", times["ours"], times["peer"], target, "lower", notes)


def run() -> list[Comparison]:
    size = f"{ROWS:,} × {COLUMNS}"
    found = [
        against(
            f"NTKClassifier / one Cholesky factorization: {size}", NTKClassifier, cholesky_time, 8.0
        )
    ]
    for network in (TwoLayerClassifier, ThreeLayerResNetClassifier, DeepMLPClassifier):
        what = f"{network.__name__} / MLPClassifier: {size}"
        found.append(
            against(
                what,
                lambda network=network: network(random_state=0),
                lambda: MLPClassifier(random_state=0),
                1.5,
            )
        )
    if importlib.util.find_spec("xrfm") is not None:
        found.append(
            against(
                f"RFM / xRFM: {size}",
                lambda: RecursiveFeatureMachineClassifier(random_state=0),
                _XRFM,
                1.0,
            )
        )
    return found
