"""Performance of models, by the metric of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from unlazy.core.errors import require, require_one_of
from unlazy.core.losses import Loss, example_losses
from unlazy.core.metrics import accuracy, right
from unlazy.learners.base import Trace
from unlazy.probes.base import Probe
from unlazy.tasks.base import Data, Population


class Performance(Probe):
    """Metric and loss on up to `test` test examples and on the training examples.

    Measures `test_accuracy` and `train_accuracy` in percent, or `test_squared_error` and
    `train_squared_error`; also `test_loss` and `train_loss`. `loss`: "auto" is the hinge loss for
    signs, softmax for classes and the squared loss for real numbers.
    """

    test: int = eqx.field(static=True, default=10_000)
    loss: Loss | Literal["auto"] = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        known = ("auto", *get_args(Loss))
        require_one_of("loss", self.loss, known)
        require(self.test > 0, f"The number of test examples must be positive, got {self.test}.")

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        metric = task.metric
        loss = (
            {"signs": "hinge", "classes": "softmax", "reals": "squared"}[task.outputs.kind]
            if self.loss == "auto"
            else self.loss
        )
        measured: dict[str, Array] = {}
        for name, (z, y) in {"test": _test(task, self.test, key), "train": trace.seen}.items():
            scores = trace.models.scores(z, task.basis)

            def evaluate(score: Array, y: Array = y) -> tuple[Array, Array]:
                # XLA may evaluate max(NaN, 0) as 0, so a diverged score would have loss zero.
                finite = (
                    jnp.isfinite(score) if score.ndim == 1 else jnp.all(jnp.isfinite(score), axis=1)
                )
                return metric(score, y), jnp.mean(
                    jnp.where(finite, example_losses(loss, score, y), jnp.nan)
                )

            measured[f"{name}_{metric.name}"], measured[f"{name}_loss"] = _over_models(
                evaluate, scores
            )
        return measured


class Validation(Probe):
    """Metric on `count` examples used neither for training nor for testing.

    Measures `validation_accuracy` or `validation_squared_error`, the criterion for selecting
    hyperparameters.
    """

    count: int = eqx.field(static=True, default=1000)

    def __check_init__(self) -> None:
        require(self.count > 0, f"The number of examples must be positive, got {self.count}.")

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        # A separate key, since these examples must differ from the test examples.
        z, y = _test(task, self.count, jax.random.fold_in(key, _VALIDATION))
        metric = task.metric
        return {
            f"validation_{metric.name}": _over_models(
                lambda score: metric(score, y), trace.models.scores(z, task.basis)
            )
        }


class PopulationAccuracy(Probe):
    """Accuracy in percent (`accuracy`) over the exact distribution if it can be listed.

    Otherwise it is measured on `test` fresh examples.
    """

    KEY = "LawAccuracy"

    test: int = eqx.field(static=True, default=20_000)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        population = None if task.population is None else task.population()
        if isinstance(population, Population):
            scores = trace.models.scores(population.x, task.basis)
            return {
                "accuracy": jax.vmap(
                    lambda score: 100 * population.weight @ right(score, population.y)
                )(scores)
            }
        z, y = task.test(self.test, key)
        return {
            "accuracy": jax.vmap(lambda score: accuracy(score, y))(
                trace.models.scores(z, task.basis)
            )
        }


#: Separates the draws of `Validation` from all others.
_VALIDATION = 0x5EED
_test = eqx.filter_jit(lambda task, n, key: task.test(n, key))


@eqx.filter_jit
def _over_models(evaluate: Any, scores: Array) -> Any:
    return jax.lax.map(evaluate, scores)
