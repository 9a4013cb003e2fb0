"""Adapter for scikit-learn estimators."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import require
from unlazy.core.metrics import Outputs
from unlazy.learners.base import Learner, Trace, keys_of
from unlazy.networks.base import Model, Scores
from unlazy.tasks.base import Family, Sampler, draw

#: Lower bound on probabilities, so that logarithms are finite.
MIN_PROBABILITY = 1e-6
Grid = tuple[tuple[str, tuple[Any, ...]], ...]


class HostModel(Model):
    """A model scores = function(x) of NumPy arrays, on the host."""

    stacked: ClassVar[bool] = False
    function: Callable[[np.ndarray], np.ndarray] = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n *d"]) -> Scores:
        return jnp.asarray(self.function(np.asarray(x)))

    def at(self, index: int) -> Self:
        return self

    def scores(
        self, x: Float[Array, "n *d"], basis: Float[Array, "r d"] | None = None
    ) -> Float[Array, "s n ..."]:
        return self(x if basis is None else x @ basis)[None]


class ScikitLearner(Learner):
    """A scikit-learn estimator as a learner.

    Classifiers get class labels, regressors numbers. Scores are `decision_function`, the logarithm
    of `predict_proba`, or `predict`, whichever exists first. `regressor` replaces the estimator for
    real outputs. The key sets each `random_state`. Inputs are flattened and not scaled. `grid` are
    the values that tuning tries, and `shown` the names of tuned parameters.
    """

    estimator: Any = eqx.field(static=True)
    regressor: Any = eqx.field(static=True, default=None, kw_only=True)
    grid: Grid = eqx.field(static=True, default=(), kw_only=True)
    shown: tuple[str, ...] = eqx.field(static=True, default=(), kw_only=True)

    @classmethod
    def of(
        cls,
        estimator: Any,
        *,
        regressor: Any = None,
        grid: Mapping[str, Sequence[Any]] | None = None,
    ) -> Self:
        """Return a learner with a grid such as {"C": [0.1, 1, 10]}."""
        return cls(
            estimator,
            regressor=regressor,
            grid=tuple((name, tuple(values)) for name, values in (grid or {}).items()),
        )

    def __check_init__(self) -> None:
        for each in (self.estimator, self.regressor):
            if each is not None:
                missing = [
                    name
                    for name in ("fit", "predict", "get_params", "set_params")
                    if not callable(getattr(each, name, None))
                ]
                require(
                    not missing and not isinstance(each, type),
                    "An estimator must be an instance with fit, predict, get_params and "
                    f"set_params, got {each!r}.",
                )
                invalid = sorted({name for name, _ in self.grid} - set(each.get_params()))
                require(
                    not invalid,
                    f"{type(each).__name__} has no parameter {' or '.join(invalid)}.",
                )
        require(
            all(values for _, values in self.grid),
            "Every entry of grid must have at least one value.",
        )

    @property
    def on_host(self) -> bool:
        return True

    def suited(self, family: Family) -> Learner:
        return self.suited_to_outputs(family.outputs)

    def suited_to_outputs(self, outputs: Outputs) -> Learner:
        if outputs.kind != "reals" or self.regressor is None:
            return self
        return dataclasses.replace(self, estimator=self.regressor, regressor=None)

    def suits(self, outputs: Outputs) -> bool:
        return (
            outputs.kind != "reals" or self.regressor is not None or not _classifies(self.estimator)
        )

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Return the settings of the grid, or evenly spaced ones if the budget is smaller."""
        names = tuple(name for name, _ in self.grid)
        settings = list(itertools.product(*(values for _, values in self.grid)))
        if len(settings) > budget:
            settings = [
                settings[(2 * index + 1) * len(settings) // (2 * budget)] for index in range(budget)
            ]
        return (
            tuple(self._with(dict(zip(names, chosen, strict=True))) for chosen in settings)
            if names
            else (self,)
        )

    def _with(self, chosen: dict[str, Any]) -> ScikitLearner:
        from sklearn.base import clone

        changed = [
            None if each is None else clone(each).set_params(**chosen)
            for each in (self.estimator, self.regressor)
        ]
        return dataclasses.replace(
            self, estimator=changed[0], regressor=changed[1], grid=(), shown=tuple(chosen)
        )

    @property
    def settings(self) -> Mapping[str, float | str]:
        parameters = self.estimator.get_params()
        return {
            name: value if isinstance(value := parameters[name], (int, float)) else str(value)
            for name in self.shown
        }

    def work(self, n: int, r: int) -> float:
        """Estimate a few thousand passes over the sample."""
        return 3000.0 * n * r

    def prediction_work(self, d: int) -> float:
        """Estimate about a hundred trees."""
        return 1000.0 + d

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        suited = self.suited_to_outputs(sampler.outputs)
        assert isinstance(suited, ScikitLearner)
        key_init, key_data, _ = keys_of(key)
        sample = draw(sampler, n, key_data)
        x = np.asarray(sample.x if sampler.basis is None else sample.x @ sampler.basis)
        fitted = _fitted(
            suited.estimator,
            x.reshape(n, -1),
            np.asarray(sample.y),
            sampler.outputs,
            _seed(key_init),
        )
        return Trace.of(HostModel(fitted), sample)


def _classifies(estimator: Any) -> bool:
    from sklearn.base import is_classifier

    try:
        return bool(is_classifier(estimator))
    except AttributeError:  # without tags
        return False


def _seed(key: PRNGKeyArray) -> int:
    return int(jax.random.bits(key, (), jnp.uint32)) >> 1


def _seeded(estimator: Any, seed: int) -> Any:
    """Return a clone with every nested `random_state` set."""
    from sklearn.base import clone

    fresh = clone(estimator)
    states = [name for name in fresh.get_params() if name.split("__")[-1] == "random_state"]
    return fresh.set_params(**dict.fromkeys(states, seed))


def _fitted(
    estimator: Any, x: np.ndarray, y: np.ndarray, outputs: Outputs, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit an estimator; return a function to scores in the shape of the labels."""
    if not _classifies(estimator):
        columns = y if y.ndim == 2 else y[:, None]
        # Estimators for one output are fitted to each output.
        if y.ndim == 2 and _takes_columns(estimator):
            whole = _seeded(estimator, seed).fit(x, y)
            return lambda rows: np.asarray(whole.predict(_flattened(rows))).reshape(
                len(rows), y.shape[1]
            )
        each = [_seeded(estimator, seed).fit(x, column) for column in columns.T]
        return lambda rows: np.stack(
            [one.predict(_flattened(rows)) for one in each], axis=1
        ).reshape(len(rows), *y.shape[1:])
    labels = np.argmax(y, axis=1) if y.ndim == 2 else np.where(y > 0, 1, 0)
    count = y.shape[1] if y.ndim == 2 else 2
    seen = np.unique(labels)
    if len(seen) == 1:  # many classifiers refuse a single class
        constant = np.where(np.arange(count) == seen[0], 0.0, np.log(MIN_PROBABILITY))

        def by_class(rows: np.ndarray) -> np.ndarray:
            return np.tile(constant, (len(rows), 1))

    else:
        fitted = _seeded(estimator, seed).fit(x, labels)

        def by_class(rows: np.ndarray) -> np.ndarray:
            return _class_scores(fitted, _flattened(rows), count)

    if outputs.kind == "signs":
        return lambda rows: by_class(rows)[:, 1] - by_class(rows)[:, 0]
    return by_class


def _flattened(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(len(rows), -1)


def _takes_columns(estimator: Any) -> bool:
    from sklearn.utils import get_tags

    try:
        return bool(get_tags(estimator).target_tags.multi_output)
    except (AttributeError, TypeError):
        return False


def _class_scores(fitted: Any, x: np.ndarray, count: int) -> np.ndarray:
    """Return one score per class; classes without examples get the lowest."""
    seen = np.asarray(fitted.classes_, int)
    if callable(getattr(fitted, "decision_function", None)):
        scores = np.asarray(fitted.decision_function(x), np.float64)
        scores = np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores
    elif callable(getattr(fitted, "predict_proba", None)):
        scores = np.log(
            np.maximum(np.asarray(fitted.predict_proba(x), np.float64), MIN_PROBABILITY)
        )
    else:
        scores = np.where(
            np.asarray(fitted.predict(x))[:, None] == seen, 0.0, np.log(MIN_PROBABILITY)
        )
    whole = np.full((len(x), count), np.min(scores, initial=np.log(MIN_PROBABILITY)))
    whole[:, seen] = scores
    return whole
