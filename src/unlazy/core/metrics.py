"""Output types and metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.errors import require

#: The two kinds of targets of estimators.
Kind = Literal["classification", "regression"]
#: Scores this close to zero are rounding errors (an antisymmetric network starts at zero)
#: and count as half right.
TIE = 1e-5


@dataclasses.dataclass(frozen=True)
class Outputs:
    """Type of a label: a sign ±1, one of `count` classes (one-hot rows), or `count` real numbers.

    Signs, and real numbers with `count` None, have no axis of their own.
    """

    kind: Literal["signs", "classes", "reals"] = "signs"
    count: int | None = None

    def check(self) -> None:
        """Raise `BadInput` unless the combination of `kind` and `count` is valid."""
        require(
            self.kind in ("signs", "classes", "reals"),
            f"kind must be signs, classes or reals, got {self.kind!r}.",
        )
        require(
            self.kind != "signs" or self.count is None,
            "Signs have no axis of their own; omit count.",
        )
        require(
            self.kind != "classes" or (self.count or 0) > 1,
            f"count must be at least 2 for classes, got {self.count}.",
        )
        require(self.count is None or self.count > 0, f"count must be positive, got {self.count}.")


SIGNS = Outputs()


@dataclasses.dataclass(frozen=True)
class Metric:
    """Evaluation metric: its name, label, unit and whether higher is better.

    `error` converts a value into an error with minimum zero: the fraction of wrong labels, or the
    squared error itself.
    """

    name: str
    label: str
    unit: str
    higher: bool
    function: Callable[[Array, Array], Array]
    error: Callable[[float], float]

    def __call__(self, score: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, ""]:
        return self.function(score, y)

    def better(self, one: float, other: float) -> bool:
        """Return whether the first value is better than the second."""
        return one > other if self.higher else one < other


def right(score: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, " n"]:
    """Return 1 for each correctly classified example, ½ for a tie of signs, otherwise 0.

    An example is correct if its score has the sign of the label, or is largest for its class.
    """
    finite = jnp.isfinite(score)
    if y.ndim == 2:
        first = jnp.argmax(jnp.where(finite, score, -jnp.inf), axis=1) == jnp.argmax(y, axis=1)
        return jnp.where(jnp.all(finite, axis=1) & first, 1.0, 0.0)
    right = jnp.where(score * y > 0, 1.0, 0.0)
    return jnp.where(finite, jnp.where(jnp.abs(score) <= TIE, 0.5, right), 0.0)


def accuracy(score: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, ""]:
    """Return the percentage of correctly labeled examples."""
    return 100 * jnp.mean(right(score, y))


def squared_error(score: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, ""]:
    """Return the mean over examples of the squared error, summed over outputs."""
    each = jnp.square(score - y)
    return jnp.mean(each if each.ndim == 1 else jnp.sum(each, axis=1))


ACCURACY = Metric(
    "accuracy", "test accuracy (%)", "%", True, accuracy, lambda value: 1 - value / 100
)
SQUARED_ERROR = Metric(
    "squared_error", "test squared error", "", False, squared_error, lambda value: value
)
METRICS = {metric.name: metric for metric in (ACCURACY, SQUARED_ERROR)}


def metric_of(outputs: Outputs) -> Metric:
    """Return the default metric of such outputs."""
    return SQUARED_ERROR if outputs.kind == "reals" else ACCURACY
