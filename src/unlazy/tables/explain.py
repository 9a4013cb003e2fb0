"""Diagnostics of an audit: computations that explain its answer, each with a sentence and data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from sklearn.base import BaseEstimator

from unlazy.core.threefry import new_key
from unlazy.estimators import RecursiveFeatureMachineRegressor
from unlazy.estimators.catalog import GROUPS, Group
from unlazy.estimators.ensembles import DistinctRows, Members, Recipe, padded
from unlazy.kernels.base import Kernel
from unlazy.kernels.finite import Tangent
from unlazy.kernels.shelf import kernel_named
from unlazy.lab.trials import DETAILS, Instrument
from unlazy.learners.gradient import Descent
from unlazy.networks.inits import PlainInit
from unlazy.networks.scaled import ScaledInit, ScaledTwoLayer
from unlazy.solvers.exact import Solution, eigh
from unlazy.solvers.policy import fit_kernel
from unlazy.solvers.ridge import double_gram
from unlazy.tables.folds import Encoded, TableData, losses_of
from unlazy.tasks.tables.problems import Problem

#: Rows that instruments look at: training and test rows of the first fold, at most so many each.
LOOKED_AT = 1_000
#: Output scales from rich to lazy, step sizes that each may take, seeds, the width and length of
#: training, and where it may end.
SCALES, RATES, SEEDS, WIDTH, STEPS = (
    (0.125, 0.5, 2.0, 8.0, 32.0, 128.0),
    (0.1, 0.03, 0.01, 0.003),
    2,
    128,
    1500,
)
STOPS = (1 / 16, 1 / 4, 1 / 2, 1.0)
#: Resamplings of the rows for the spectrum of the gradients.
BOOTSTRAP = 8
#: Shares of the training rows at which learning curves are looked at.
SHARES = (1 / 8, 1 / 4, 1 / 2)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What an instrument found: a sentence, and numbers for the page."""

    name: str
    says: str
    data: Mapping[str, Any]


class SelectedFold(eqx.Module):
    """A fold of a table, the estimator that tuning chose there, and its mean test loss."""

    repeat: int = eqx.field(static=True)
    fold: int = eqx.field(static=True)
    estimator: BaseEstimator = eqx.field(static=True)
    loss: float = eqx.field(static=True)

    def rows(self, problem: Problem) -> np.ndarray:
        """Return its test rows."""
        return problem.folds(self.repeat)[self.fold]


class Selected(eqx.Module):
    """The method that was selected for a group, with its first folds."""

    group: Group = eqx.field(static=True)
    method: str = eqx.field(static=True)
    folds: tuple[SelectedFold, ...]

    @property
    def loss(self) -> float:
        """Mean test loss over these folds."""
        return float(np.mean([fold.loss for fold in self.folds]))


#: The selected method of each group, fixed features first.
Selection = tuple[Selected, ...]


class Diagnostic(Instrument):
    """A computation that helps to explain what an audit found.

    `function` computes it from the table and the selected methods.
    """

    data: TableData
    function: Callable[[Problem, Selection], Explanation] = eqx.field(static=True)
    selected: Selection

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Return a sentence and its data."""
        found = self.function(self.data.problem, self.selected)
        return {DETAILS: {"name": found.name, "says": found.says, "data": _finite(found.data)}}

    @property
    def work(self) -> float:
        """A rough number of multiply-adds, as for a kernel on the rows it uses."""
        return float(min(len(self.data.problem), LOOKED_AT)) ** 3


def _finite(value: Any) -> Any:
    """Return plain data without NaN and infinity, which JSON does not have."""
    if isinstance(value, Mapping):
        return {str(name): _finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _View:
    """Training and test rows of the first fold as numbers, with targets as columns of ±1 or
    standardised.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.data = Encoded(problem, problem.folds(0)[0])
        draw = np.random.default_rng(0)
        train, test = (
            np.sort(draw.permutation(len(y))[:LOOKED_AT]) for y in (self.data.y, self.data.y_test)
        )
        self.x, self.y = self.data.x[train], self.data.y[train]
        self.x_test, self.y_test = self.data.x_test[test], self.data.y_test[test]
        self.centre, self.size = (
            (0.0, 1.0)
            if problem.kind == "classification"
            else (float(self.y.mean()), float(self.y.std()) or 1.0)
        )

    @property
    def columns(self) -> np.ndarray:
        """Targets of the training rows."""
        if self.problem.kind == "regression":
            result: np.ndarray = ((self.y - self.centre) / self.size)[:, None]
            return result
        classes = np.arange(len(self.problem.classes))
        coded = np.where(self.y[:, None] == classes, 1.0, -1.0)
        return coded if len(classes) > 2 else coded[:, 1:]

    def loss(self, scores: np.ndarray, y: np.ndarray) -> float:
        """Mean loss of scores for rows with targets y."""
        if self.problem.kind == "regression":
            found = scores[:, 0] * self.size + self.centre
        else:
            found = (
                (scores[:, 0] > 0).astype(int)
                if scores.shape[1] == 1
                else np.argmax(scores, axis=1)
            )
        return float(np.mean(losses_of(self.problem.kind, found, y, self.data.unit)))

    def ridge_loss(self, kernel: Kernel, x: np.ndarray, x_test: np.ndarray) -> float:
        """Test loss of ridge regression with a kernel, the ridge by leave-one-out."""
        fit = fit_kernel(kernel, x, self.columns).fit
        return self.loss(
            Solution(kernel, x, fit.coefficients, "float64").predict(x_test) + fit.intercept,
            self.y_test,
        )


def _unit(problem: Problem) -> str:
    return "% wrong" if problem.kind == "classification" else "% of the variance left"


def learning_curves(problem: Problem, selected: Selection) -> Explanation:
    """Test loss of the best of each side with fewer training rows."""
    curves: dict[str, dict[str, Any]] = {}
    for chosen in selected:
        sizes, losses = [], []
        for share in SHARES:
            found, rows = [], 0
            for each in chosen.folds:
                data = Encoded(problem, each.rows(problem))
                order = np.lexsort(
                    [
                        np.random.default_rng(each.fold).random(len(data.y)),
                        np.arange(len(data.y)) % round(1 / share),
                    ]
                )
                some = order[: max(10, int(share * len(data.y)))]
                if problem.kind == "classification" and len(np.unique(data.y[some])) < len(
                    np.unique(data.y)
                ):
                    continue
                rows = len(some)
                found.append(float(np.mean(data.losses(each.estimator, some))))
            if found:
                sizes.append(rows)
                losses.append(float(np.mean(found)))
        full = len(problem) - len(chosen.folds[0].rows(problem))
        curves[chosen.group] = {
            "name": chosen.method,
            "rows": [*sizes, full],
            "losses": [*losses, chosen.loss],
        }
    fixed, learned = curves["fixed"], curves["learned"]
    gaps = [
        fixed["losses"][fixed["rows"].index(rows)] - learned["losses"][learned["rows"].index(rows)]
        for rows in learned["rows"]
        if rows in fixed["rows"]
    ]
    most = int(np.argmax(gaps))
    sizes = [rows for rows in learned["rows"] if rows in fixed["rows"]]
    says = (
        f"With {sizes[0]:,} training rows the lead of learned features is {gaps[0]:+.1f} "
        f"points, with {sizes[-1]:,} it is {gaps[-1]:+.1f}"
        + (
            f"; it is greatest, {gaps[most]:+.1f}, with {sizes[most]:,}."
            if 0 < most < len(gaps) - 1
            else "."
        )
    )
    return Explanation("learning curves", says, {"curves": curves, "unit": _unit(problem)})


def output_scale(problem: Problem, selected: Selection) -> Explanation:
    """The same two-layer network trained from rich to lazy, and ridge regression on its tangent
    kernel before and after training.
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
    stops = [round(share * STEPS) for share in STOPS]
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
                        lambda leaf, place=place, step=step: leaf[place, step], networks
                    )
                    error = float(
                        np.mean(np.square(np.asarray(network(members.x[held])) - rows.y[held]))
                    )
                    if error < best[0]:
                        best = (error, network)
            if best[1] is not None:
                by_scale[scale].append(view.loss(np.asarray(best[1](padded_test)), view.y_test))
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
        f"One two-layer network, trained from rich to lazy: {losses[best_scale]:.1f} "
        f"{_unit(problem)} at its best output scale, "
        f"{losses[-1]:.1f} when it is lazy, {'a loss of' if lazier > 0.5 else 'no loss beyond'} "
        f"{max(lazier, 0.5):.1f} points for not "
        f"moving its features. Ridge regression on its tangent kernel: {before:.1f} before "
        f"training, {after:.1f} after."
        + (
            f" Of the {len(settings)} trainings with all step sizes {diverged} diverged."
            if diverged
            else ""
        )
    )
    data = {
        "scales": list(SCALES),
        "losses": losses,
        "tangent before": before,
        "tangent after": after,
        "diverged": diverged,
        "trainings": len(settings),
        "unit": _unit(problem),
    }
    return Explanation("from lazy to rich", says, data)


def kernel_alignment(problem: Problem, selected: Selection) -> Explanation:
    """How much of the target lies along the leading eigenvectors of fixed kernels and of a learned
    one, and the risk that follows.
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
        {max(1, round(len(x) * share)) for share in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)}
    )
    shares, risks = {}, {}
    for name, K in grams.items():
        centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        values, vectors = eigh(centred)
        values, along = np.maximum(values[::-1], 0), np.square(vectors[:, ::-1].T @ y).sum(axis=1)
        along = along / along.sum()
        shares[name] = [float(along[:rank].sum()) for rank in ranks]
        scale = float(values.sum()) / len(x)
        risks[name] = min(
            _kare(values / len(x), along, ridge * scale) for ridge in np.logspace(-6, 1, 22)
        )
    fixed = min(
        (name for name in risks if name != "learned kernel (RFM)"), key=lambda name: risks[name]
    )
    tenth = ranks.index(max(1, round(len(x) * 0.1)))
    says = (
        f"A tenth of the eigenvectors of the {fixed} carries {shares[fixed][tenth]:.0%} of the "
        "target, of the learned kernel "
        f"{shares['learned kernel (RFM)'][tenth]:.0%}; predicted share of the target left "
        f"(KARE) {risks[fixed]:.2f} and "
        f"{risks['learned kernel (RFM)']:.2f}. The learned kernel has seen these labels, so its "
        "numbers flatter it."
    )
    return Explanation("kernel alignment", says, {"ranks": ranks, "shares": shares, "kare": risks})


def _kare(values: np.ndarray, along: np.ndarray, ridge: float) -> float:
    """The kernel alignment risk estimate of Jacot et al. (2020): yᵀ(K/n + λ)⁻²y over (tr (K/n +
    λ)⁻¹)², times n, for ‖y‖² = 1.
    """
    inverse = 1 / (values + ridge)
    return float(len(values) ** 2 * np.sum(along * np.square(inverse)) / np.square(np.sum(inverse)))


def gradient_spectrum(problem: Problem, selected: Selection) -> Explanation:
    """Eigenvalues of the average gradient outer product of a feature machine, and the columns that
    carry it, over resampled rows.
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
        f"{count} of {view.x.shape[1]} directions carry 90 % of the gradients of a learned "
        "kernel; the columns that carry most are "
        + ", ".join(
            f"{problem.names[index]} ({columns.mean(axis=0)[index]:.0%})" for index in top[:3]
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


def _sources(problem: Problem, view: _View) -> np.ndarray:
    """For each encoded column, the place of the column that it came from."""
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
    result: np.ndarray = np.array(places)[encoder[-1].kept_]
    return result


def rotation(problem: Problem, selected: Selection) -> Explanation:
    """The best of each side again, on inputs turned by a random rotation: which side needs the
    columns as they are?
    """
    found: dict[Group, dict[str, Any]] = {}
    for chosen in selected:
        rotated = []
        for each in chosen.folds:
            data = Encoded(problem, each.rows(problem), rotation=each.fold)
            rotated.append(float(np.mean(data.losses(each.estimator))))
        found[chosen.group] = {
            "name": chosen.method,
            "as they are": chosen.loss,
            "rotated": float(np.mean(rotated)),
        }
    ahead = [min(found, key=lambda side: found[side][way]) for way in ("as they are", "rotated")]
    says = f"On rotated columns {GROUPS[ahead[1]]} ({found[ahead[1]]['name']}) are ahead" + (
        ", as before."
        if ahead[0] == ahead[1]
        else f"; on the columns as they are it was {GROUPS[ahead[0]]}: the columns themselves "
        "matter."
    )
    return Explanation("rotation", says, {"sides": found, "unit": _unit(problem)})


def permuted_labels(problem: Problem, selected: Selection) -> Explanation:
    """The best of fixed and learned features on permuted targets: what the contest says where there
    is nothing to learn.
    """
    y = np.random.default_rng(0).permutation(problem.y)
    losses: dict[str, float] = {}
    for chosen in selected:
        if chosen.group in ("fixed", "learned"):
            each = chosen.folds[0]
            data = Encoded(problem, each.rows(problem), y=y)
            losses[chosen.group] = float(np.mean(data.losses(each.estimator)))
    gap = losses["fixed"] - losses["learned"]
    says = (
        f"With permuted targets the gap between the sides is {gap:+.1f} points, and stands for "
        "chance alone."
    )
    return Explanation("permuted labels", says, {"losses": losses, "unit": _unit(problem)})


@dataclasses.dataclass(frozen=True)
class Planned:
    """A diagnostic, and about how many seconds it takes on a table of n rows."""

    function: Callable[[Problem, Selection], Explanation]
    base: float
    by_rows: float = 0.0

    def seconds(self, rows: int) -> float:
        """Return a rough estimate."""
        return self.base + self.by_rows * rows


#: In the order in which they are run while there is time.
DIAGNOSTICS: dict[str, Planned] = {
    "learning curves": Planned(learning_curves, 15.0, 0.01),
    "gradients": Planned(gradient_spectrum, 15.0),
    "from lazy to rich": Planned(output_scale, 20.0),
    "kernel alignment": Planned(kernel_alignment, 8.0),
    "rotation": Planned(rotation, 10.0, 0.01),
    "permuted labels": Planned(permuted_labels, 8.0, 0.005),
}
