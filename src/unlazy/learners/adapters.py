"""Learners from elsewhere: estimators in the manner of scikit-learn, on the host, in contests like
all others.
"""

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

#: The least probability that counts, so that its logarithm is finite.
LEAST = 1e-6
Grid = tuple[tuple[str, tuple[Any, ...]], ...]


class HostModel(Model):
    """A function of NumPy's arrays as a model: scores = function(x), on the host."""

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
    """An estimator with `fit` and `predict`. Signs and classes go to a classifier by their labels,
    to a regressor as numbers.

    Scores are what `decision_function` gives, or the (logarithms of) `predict_proba`, or `predict`
    itself. `regressor`, where it is given, stands in for the estimator on real numbers. Each
    `random_state` is set by the key. Inputs are as they are, laid out as vectors. `grid` is what
    tuning tries; `shown` names the settings that it chose.
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
        """An estimator with a grid such as {"C": [0.1, 1, 10]}."""
        return cls(
            estimator,
            regressor=regressor,
            grid=tuple((name, tuple(values)) for name, values in (grid or {}).items()),
        )

    def __check_init__(self) -> None:
        for each in (self.estimator, self.regressor):
            if each is not None:
                lacking = [
                    name
                    for name in ("fit", "predict", "get_params", "set_params")
                    if not callable(getattr(each, name, None))
                ]
                require(
                    not lacking and not isinstance(each, type),
                    f"An estimator has fit, predict, get_params and set_params, but {each!r} is "
                    "none.",
                )
                strange = sorted({name for name, _ in self.grid} - set(each.get_params()))
                require(
                    not strange,
                    f"{type(each).__name__} has no {' or '.join(strange)} that a grid could vary.",
                )
        require(
            all(values for _, values in self.grid),
            "Every entry of a grid needs at least one value.",
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
        """The settings of the grid, or evenly spaced ones if the budget is smaller."""
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
        """A guess: about as much as a few thousand passes over the sample."""
        return 3000.0 * n * r

    def prediction_work(self, d: int) -> float:
        """A guess: about a hundred trees."""
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
    except AttributeError:  # an estimator that does not say what it is
        return False


def _seed(key: PRNGKeyArray) -> int:
    return int(jax.random.bits(key, (), jnp.uint32)) >> 1


def _seeded(estimator: Any, seed: int) -> Any:
    """A fresh copy with every `random_state` inside set."""
    from sklearn.base import clone

    fresh = clone(estimator)
    states = [name for name in fresh.get_params() if name.split("__")[-1] == "random_state"]
    return fresh.set_params(**dict.fromkeys(states, seed))


def _fitted(
    estimator: Any, x: np.ndarray, y: np.ndarray, outputs: Outputs, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """The estimator on a sample, as a function that gives scores in the shape of the labels."""
    if not _classifies(estimator):
        columns = y if y.ndim == 2 else y[:, None]
        # Estimators that take one output at a time are fitted to each.
        if y.ndim == 2 and _takes_columns(estimator):
            whole = _seeded(estimator, seed).fit(x, y)
            return lambda rows: np.asarray(whole.predict(_laid_out(rows))).reshape(
                len(rows), y.shape[1]
            )
        each = [_seeded(estimator, seed).fit(x, column) for column in columns.T]
        return lambda rows: np.stack(
            [one.predict(_laid_out(rows)) for one in each], axis=1
        ).reshape(len(rows), *y.shape[1:])
    labels = np.argmax(y, axis=1) if y.ndim == 2 else np.where(y > 0, 1, 0)
    count = y.shape[1] if y.ndim == 2 else 2
    seen = np.unique(labels)
    if len(seen) == 1:  # many classifiers refuse to learn that there is one answer
        constant = np.where(np.arange(count) == seen[0], 0.0, np.log(LEAST))

        def by_class(rows: np.ndarray) -> np.ndarray:
            return np.tile(constant, (len(rows), 1))

    else:
        fitted = _seeded(estimator, seed).fit(x, labels)

        def by_class(rows: np.ndarray) -> np.ndarray:
            return _class_scores(fitted, _laid_out(rows), count)

    if outputs.kind == "signs":
        return lambda rows: by_class(rows)[:, 1] - by_class(rows)[:, 0]
    return by_class


def _laid_out(rows: np.ndarray) -> np.ndarray:
    return rows.reshape(len(rows), -1)


def _takes_columns(estimator: Any) -> bool:
    from sklearn.utils import get_tags

    try:
        return bool(get_tags(estimator).target_tags.multi_output)
    except (AttributeError, TypeError):
        return False


def _class_scores(fitted: Any, x: np.ndarray, count: int) -> np.ndarray:
    """A score for each class, the lowest for classes that were not seen: its decision, the
    logarithm of its probability, or its choice.
    """
    seen = np.asarray(fitted.classes_, int)
    if callable(getattr(fitted, "decision_function", None)):
        scores = np.asarray(fitted.decision_function(x), np.float64)
        scores = np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores
    elif callable(getattr(fitted, "predict_proba", None)):
        scores = np.log(np.maximum(np.asarray(fitted.predict_proba(x), np.float64), LEAST))
    else:
        scores = np.where(np.asarray(fitted.predict(x))[:, None] == seen, 0.0, np.log(LEAST))
    whole = np.full((len(x), count), np.min(scores, initial=np.log(LEAST)))
    whole[:, seen] = scores
    return whole
