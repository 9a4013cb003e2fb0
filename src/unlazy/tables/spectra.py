"""Diagnostics of features: a network from rich to lazy, the target in eigenvectors of kernels, and
gradients of a recursive feature machine.

They do not depend on the selected methods.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from unlazy.core.threefry import new_key
from unlazy.estimators import RecursiveFeatureMachineRegressor
from unlazy.estimators.ensembles import DistinctRows, Members, Recipe, padded
from unlazy.kernels.base import Kernel
from unlazy.kernels.catalog import kernel_named
from unlazy.kernels.finite import Tangent
from unlazy.learners.gradient import Descent
from unlazy.networks.inits import PlainInit
from unlazy.networks.scaled import ScaledInit, ScaledTwoLayer
from unlazy.solvers.exact import Solution, eigh
from unlazy.solvers.policy import fit_kernel
from unlazy.solvers.ridge import double_gram
from unlazy.tables.explain import Explanation, unit
from unlazy.tables.folds import Encoded, losses_of
from unlazy.tasks.tables.problems import Problem

#: Maximum number of training rows and of test rows of the first fold.
MAX_USED_ROWS = 1_000
#: Output scales from rich to lazy, learning rates, seeds, width, training steps, and the fractions
#: of training after which it may stop.
SCALES, RATES, SEEDS, WIDTH, STEPS = (
    (0.125, 0.5, 2.0, 8.0, 32.0, 128.0),
    (0.1, 0.03, 0.01, 0.003),
    2,
    128,
    1500,
)
STOPS = (1 / 16, 1 / 4, 1 / 2, 1.0)
#: Number of bootstrap samples of rows for the spectrum of gradients.
BOOTSTRAP = 8


class _View:
    """Encoded training and test rows of the first fold, with targets ±1 or standardized."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.data = Encoded(problem, problem.folds(0)[0])
        draw = np.random.default_rng(0)
        train, test = (
            np.sort(draw.permutation(len(y))[:MAX_USED_ROWS])
            for y in (self.data.y, self.data.y_test)
        )
        self.x, self.y = self.data.x[train], self.data.y[train]
        self.x_test, self.y_test = self.data.x_test[test], self.data.y_test[test]
        self.center, self.size = (
            (0.0, 1.0)
            if problem.kind == "classification"
            else (float(self.y.mean()), float(self.y.std()) or 1.0)
        )

    @property
    def columns(self) -> np.ndarray:
        """Targets of the training rows, one column per output."""
        if self.problem.kind == "regression":
            standardized: np.ndarray = ((self.y - self.center) / self.size)[:, None]
            return standardized
        classes = np.arange(len(self.problem.classes))
        coded = np.where(self.y[:, None] == classes, 1.0, -1.0)
        return coded if len(classes) > 2 else coded[:, 1:]

    def loss(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Return the mean loss of scores for rows with targets y."""
        if self.problem.kind == "regression":
            found = scores[:, 0] * self.size + self.center
        else:
            found = (
                (scores[:, 0] > 0).astype(int)
                if scores.shape[1] == 1
                else np.argmax(scores, axis=1)
            )
        return float(np.mean(losses_of(self.problem.kind, found, y, self.data.unit)))

    def ridge_loss(self, kernel: Kernel, x: np.ndarray, x_test: np.ndarray) -> float:
        """Return the test loss of kernel ridge regression, with the ridge by leave-one-out."""
        fit = fit_kernel(kernel, x, self.columns).fit
        return self.loss(
            Solution(kernel, x, fit.coefficients, "float64").predict(x_test) + fit.intercept,
            self.y_test,
        )


def output_scale(problem: Problem) -> Explanation:
    """Train a two-layer network from rich to lazy, and fit ridge regression on its tangent kernel
    before and after training.
    """
    view = _View(problem)
    rows = DistinctRows.of(view.x, view.columns, np.ones(len(view.x)))
    members = Members(rows, "squared", 16)
    d, padded_test = view.x.shape[1], padded(view.x_test)
    base = PlainInit(m=WIDTH, w_scale=math.sqrt(2 / d), b_scale=0.5, a_scale=WIDTH**-0.5)

    def recipe(scale: float, rate: float) -> Recipe:
        rates = dict.fromkeys(("w", "b", "a", "c"), rate / scale**2)
        return Recipe(
            ScaledInit(base, scale),
            Descent(
                rates,
                batch=min(128, len(members.repeated)),
                loss="squared",
                momentum=0.9,
                drop=0.75,
            ),
        )

    held = rows.parts(0)[0]
    weights = rows.weight.copy()
    weights[held] = 0.0
    settings = [(scale, rate, seed) for scale in SCALES for rate in RATES for seed in range(SEEDS)]
    keys = jax.random.split(new_key(0), SEEDS)[np.array([seed for _, _, seed in settings])]
    stops = [round(fraction * STEPS) for fraction in STOPS]
    networks = members.train(
        [recipe(scale, rate) for scale, rate, _ in settings],
        stops,
        np.broadcast_to(weights, (len(settings), len(weights))),
        keys,
    )
    finite = np.all(
        [
            np.isfinite(leaf).reshape(*leaf.shape[:2], -1).all(axis=2)
            for leaf in jax.tree.leaves(networks)
        ],
        axis=0,
    )
    by_scale: dict[float, list[float]] = {scale: [] for scale in SCALES}
    richest: tuple[float, ScaledTwoLayer | None] = (math.inf, None)
    for scale in SCALES:
        for seed in range(SEEDS):
            places = [
                index
                for index, setting in enumerate(settings)
                if setting[0] == scale and setting[2] == seed
            ]
            best: tuple[float, Any] = (math.inf, None)
            for place in places:
                for step in np.flatnonzero(finite[place]):
                    network = jax.tree.map(
                        lambda leaf, place=place, step=step: jnp.asarray(leaf[place, step]),
                        networks,
                    )
                    error = float(
                        np.mean(np.square(_scores(network, members.x[held]) - rows.y[held]))
                    )
                    if error < best[0]:
                        best = (error, network)
            if best[1] is not None:
                by_scale[scale].append(view.loss(_scores(best[1], padded_test), view.y_test))
                if best[0] < richest[0]:
                    richest = best
    losses = [float(np.mean(by_scale[scale])) if by_scale[scale] else math.nan for scale in SCALES]
    trained = richest[1]
    assert trained is not None
    x, x_test = padded(view.x), padded_test
    double = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), trained)
    before = view.ridge_loss(Tangent(double.start), x, x_test)
    after = view.ridge_loss(Tangent(double.unscaled), x, x_test)
    best_scale, diverged = int(np.nanargmin(losses)), int(np.sum(~finite[:, -1]))
    lazier = losses[-1] - losses[best_scale]
    says = (
        "A two-layer network trained for this measurement only (first fold): "
        f"{losses[best_scale]:.1f} {unit(problem)} at the best output scale "
        f"({SCALES[best_scale]:g}{', the smallest tried' * (not best_scale)}), {losses[-1]:.1f} "
        f"{unit(problem)} at the largest (lazy training; difference {lazier:.1f} points). Ridge "
        f"regression on its tangent kernel: {before:.1f} {unit(problem)} with the initial weights, "
        f"{after:.1f} {unit(problem)} with the trained ones."
        + (f" {diverged} of {len(settings)} training runs diverged." if diverged else "")
    )
    data = {
        "scales": list(SCALES),
        "losses": [None if math.isnan(loss) else loss for loss in losses],
        "tangent before": before,
        "tangent after": after,
        "diverged": diverged,
        "trainings": len(settings),
        "unit": unit(problem),
    }
    return Explanation("from lazy to rich", says, data)


def _scores(network: ScaledTwoLayer, x: np.ndarray) -> np.ndarray:
    """Return the outputs of a network."""
    return np.asarray(network(jnp.asarray(x)))


def kernel_alignment(problem: Problem) -> Explanation:
    """Return the fraction of the target in leading eigenvectors of fixed kernels and of a learned
    one, and the estimated risk.
    """
    view = _View(problem)
    x, d = view.x, view.x.shape[1]
    y = view.columns - view.columns.mean(axis=0)
    machine = RecursiveFeatureMachineRegressor().fit(x, y if y.shape[1] > 1 else y[:, 0])
    laplace = kernel_named("laplace", gamma=d**-0.5)
    grams = {
        "RBF kernel": double_gram(kernel_named("rbf", gamma=1 / d), x),
        "Laplace kernel": double_gram(laplace, x),
        "NTK": double_gram(kernel_named("ntk"), x),
        "learned kernel (RFM)": double_gram(laplace, x @ machine._root),
    }
    ranks = sorted(
        {max(1, round(len(x) * fraction)) for fraction in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)}
    )
    fractions, risks = {}, {}
    for name, K in grams.items():
        centered = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        values, vectors = eigh(centered)
        values, along = np.maximum(values[::-1], 0), np.square(vectors[:, ::-1].T @ y).sum(axis=1)
        # Centering makes one eigenvalue 0; it would dominate the trace in the estimated risk.
        values, along = values[:-1], along[:-1]
        along = along / along.sum()
        fractions[name] = [float(along[:rank].sum()) for rank in ranks]
        scale = float(values.sum()) / len(x)
        risks[name] = min(
            _kare(values / len(x), along, ridge * scale) for ridge in np.logspace(-6, 1, 22)
        )
    fixed = min(
        (name for name in risks if name != "learned kernel (RFM)"), key=lambda name: risks[name]
    )
    tenth = ranks.index(max(1, round(len(x) * 0.1)))
    says = (
        f"The top 10 % of eigenvectors capture {100 * fractions[fixed][tenth]:.0f} % of the target "
        f"for the {fixed} and {100 * fractions['learned kernel (RFM)'][tenth]:.0f} % for the "
        f"learned "
        f"kernel. The estimated unexplained fraction of the target is {risks[fixed]:.2f} and "
        f"{risks['learned kernel (RFM)']:.2f} (kernel alignment risk estimate, smallest over "
        f"ridges). "
        "Both numbers of the learned kernel are optimistic, since it was fitted to these labels."
    )
    return Explanation(
        "kernel alignment", says, {"ranks": ranks, "shares": fractions, "kare": risks}
    )


def _kare(values: np.ndarray, along: np.ndarray, ridge: float) -> float:
    """Return the kernel alignment risk estimate n·yᵀ(K/n + λ)⁻²y / (tr (K/n + λ)⁻¹)², ‖y‖² = 1.

    Reference: Jacot et al. (2020).
    """
    inverse = 1 / (values + ridge)
    return float(len(values) ** 2 * np.sum(along * np.square(inverse)) / np.square(np.sum(inverse)))


def gradient_spectrum(problem: Problem) -> Explanation:
    """Return eigenvalues and leading columns of the average gradient outer product of a recursive
    feature machine, over bootstrap samples of rows.
    """
    view = _View(problem)
    draw = np.random.default_rng(0)
    y = view.columns
    spectra, carried = [], []
    sources = _sources(problem, view)
    for _ in range(BOOTSTRAP):
        some = draw.integers(len(view.x), size=len(view.x))
        rows, counts = np.unique(some, return_counts=True)
        target = y[rows] if y.shape[1] > 1 else y[rows, 0]
        metric = (
            RecursiveFeatureMachineRegressor(iterations=3)
            .fit(view.x[rows], target, sample_weight=counts.astype(float))
            .metric_
        )
        spectra.append(np.sort(np.linalg.eigvalsh(metric))[::-1] / np.trace(metric))
        weight = np.bincount(sources, np.diag(metric), minlength=len(problem.names))
        carried.append(weight / weight.sum())
    spectrum, columns = np.array(spectra), np.array(carried)
    mean = spectrum.mean(axis=0)
    count = int(np.searchsorted(np.cumsum(mean), 0.9) + 1)
    top = np.argsort(-columns.mean(axis=0))[:10]
    says = (
        f"{count} of {_directions(view, problem)} carry 90 % of the average squared gradient of a "
        "recursive feature machine (RFM); the leading columns are "
        + ", ".join(
            f"{problem.names[index]} ({100 * columns.mean(axis=0)[index]:.0f} %)"
            for index in top[:3]
        )
        + "."
    )
    bands = {
        "spectrum": [float(v) for v in mean[:20]],
        "low": [float(v) for v in np.quantile(spectrum, 0.05, axis=0)[:20]],
        "high": [float(v) for v in np.quantile(spectrum, 0.95, axis=0)[:20]],
        "columns": [problem.names[index] for index in top],
        "shares": [float(columns.mean(axis=0)[index]) for index in top],
        "shares low": [float(np.quantile(columns[:, index], 0.05)) for index in top],
        "shares high": [float(np.quantile(columns[:, index], 0.95)) for index in top],
    }
    return Explanation("gradients", says, bands)


def _directions(view: _View, problem: Problem) -> str:
    """Return the number of directions, and of columns if categories are coded by several."""
    directions, columns = view.x.shape[1], len(problem.names)
    coded = f" ({columns} columns, {directions} after coding)" * (directions != columns)
    return f"{directions} directions{coded}"


def _sources(problem: Problem, view: _View) -> np.ndarray:
    """Return the index of the source column of each encoded column."""
    encoder = problem.encoder().fit(problem.X[view.data.train], view.data.y)
    columns = encoder[1]
    places: list[int] = []
    for part, transformer, which in columns.transformers_:
        if part == "numbers":
            kept = [
                place
                for place, value in zip(which, transformer.statistics_, strict=True)
                if not np.isnan(value)
            ]
            marks = (
                [which[index] for index in transformer.indicator_.features_]
                if transformer.indicator_ is not None
                else []
            )
            places += kept + marks
        elif part == "words":
            for place, name in zip(which, range(len(which)), strict=True):
                prefix = f"x{name}_"
                places += [place] * sum(
                    str(out).startswith(prefix) for out in transformer[-1].get_feature_names_out()
                )
    kept_places: np.ndarray = np.array(places)[encoder[-1].kept_]
    return kept_places
