"""What outputs are, and how scores are held against them: one place for each metric."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from unlazy.core.errors import require

#: The two kinds of targets that estimators know.
Kind = Literal["classification", "regression"]
#: A score this close to zero is rounding, not a decision: a mirrored network is zero at first. It
#: counts as half right.
TIE = 1e-5


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What a label is: a sign ±1 (`signs`, no axis of its own), one of `count` classes (one-hot
    rows), or `count` real numbers.

    Real numbers with `count` None are one number without an axis of its own.
    """

    kind: Literal["signs", "classes", "reals"] = "signs"
    count: int | None = None

    def check(self) -> None:
        """Refuse what is no output."""
        require(
            self.kind in ("signs", "classes", "reals"),
            f"Outputs are signs, classes or reals, but kind is {self.kind!r}.",
        )
        require(
            self.kind != "signs" or self.count is None,
            "Signs have no axis of their own: leave count out.",
        )
        require(
            self.kind != "classes" or (self.count or 0) > 1,
            f"Classes need count ≥ 2, but count is {self.count}.",
        )
        require(
            self.count is None or self.count > 0, f"count must be positive, but is {self.count}."
        )


SIGNS = Outputs()


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number that says how good scores are: its name, whether more is better, what a person calls
    it, and its unit.

    `error` turns a value into an error that falls to zero: the share of wrong labels, or the
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
        """Whether the first value is better than the second."""
        return one > other if self.higher else one < other


def right(score: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, " n"]:
    """1 for each example whose score has the sign of the label, or is greatest for its class, else
    0; a tie of signs is one half.
    """
    finite = jnp.isfinite(score)
    if y.ndim == 2:
        first = jnp.argmax(jnp.where(finite, score, -jnp.inf), axis=1) == jnp.argmax(y, axis=1)
        return jnp.where(jnp.all(finite, axis=1), first, 0.0)
    return jnp.where(finite, jnp.where(jnp.abs(score) <= TIE, 0.5, score * y > 0), 0.0)


def accuracy(score: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, ""]:
    """Share in percent of examples that are labelled right."""
    return 100 * jnp.mean(right(score, y))


def squared_error(score: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, ""]:
    """Mean over examples of the squared distance to the targets, summed over outputs."""
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
    """The metric by which such outputs are usually judged."""
    return SQUARED_ERROR if outputs.kind == "reals" else ACCURACY
