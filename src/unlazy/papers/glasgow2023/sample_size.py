"""Sample complexity on XOR by dimension: number of examples at which the test error meets a target.

SGD is evaluated after every step. A kernel is solved for prefixes of a sample somewhat larger than
predicted; its error is averaged over several samples if they are small. The number of examples is
that at which the error first falls to the target and stays there. It is infinite if the target is
not reached, and NaN if the first error is already below it.

Reference: glasgow2023, Theorem 3.1, Section 1.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.kernels.base import ProductKernel
from unlazy.lab.arms import Arm, Comparison, Repeats, Row
from unlazy.lab.power_laws import crossing, first_stable_crossing, slope
from unlazy.lab.trials import ExactComputation, Record
from unlazy.learners.learning_curves import PrefixRidge
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.papers.glasgow2023.probes import ErrorRate
from unlazy.tasks.multi_index import XOR, MultiIndex, Terms
from unlazy.theory.cube_kernels import curve

#: Ridge in units of k(x, x), nearly ridgeless.
RIDGE = 1e-6
#: Steps of SGD with d examples each; sufficient in all measured dimensions.
STEPS = 96
#: Minimum dimension at which kernels are compared with the prediction.
MIN_DIMENSION = 32


def samples_at(
    target: float, examples: Callable[[int], int]
) -> Callable[[int, Record], Mapping[str, float]]:
    """Return a function that measures `samples` from the errors at the recorded steps.

    Each step uses `examples(d)` examples.
    """

    def samples(d: int, record: Record) -> Mapping[str, float]:
        sizes, errors = (
            examples(d) * np.array(record.steps, float),
            np.array(record.measurements["error"]),
        )
        reached = first_stable_crossing(sizes, errors, target)
        if reached is None:
            return {"samples": math.inf}
        return {"samples": reached if reached > sizes[0] else math.nan}

    return samples


def exponents(d: np.ndarray, row: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """Return the slopes in log d of log(samples), `exponent`, and of log(samples / log d),
    `exponent_log`.
    """
    x, samples = np.log(d), row["samples"]
    if len(d) < 2 or not np.all(np.isfinite(samples)):
        return {"exponent": math.nan, "exponent_log": math.nan}
    return {"exponent": slope(x, np.log(samples)), "exponent_log": slope(x, np.log(samples / x))}


def sgd_row(dimensions: tuple[int, ...], *, width: int, target: float, test: int) -> Row:
    """Return mean-field SGD on fresh minibatches of d examples, by dimension."""

    def arm(d: int) -> Arm:
        learner = mean_field_sgd(
            width=width, batch=d, radius=0.3, step=0.5, steps=STEPS, record=tuple(range(STEPS))
        )
        return Arm(MultiIndex(d=d), learner, STEPS * d, (ErrorRate(test),))

    return Row(
        {d: arm(d) for d in dimensions},
        summaries=(exponents,),
        after=samples_at(target, lambda d: d),
    )


@functools.lru_cache(maxsize=256)
def predicted_size(kernel: ProductKernel, d: int, target: float, polynomial: Terms = XOR) -> float:
    """Return the number of examples predicted by the kernel's eigenvalues on the cube."""
    with jax.enable_x64(True):
        ridge = RIDGE * float(kernel.diagonal(jnp.ones((1, d)))[0])
    return curve(kernel, d, MultiIndex(d=d, polynomial=polynomial).spectrum, ridge).sample_size(
        target
    )


def kernel_row(
    kernel: ProductKernel, dimensions: tuple[int, ...], *, target: float, test: int
) -> Row:
    """Return kernel ridge regression and its prediction, by dimension.

    Errors are averaged over up to 12 samples with about 8,000 examples in total.
    """

    def arm(d: int) -> Repeats:
        n = max(32, math.ceil(1.3 * predicted_size(kernel, d, target)))
        return Repeats(
            Arm(MultiIndex(d=d), PrefixRidge(kernel, RIDGE), n, (ErrorRate(test),)),
            max(1, min(12, 8000 // n)),
        )

    def compare_with_prediction(d: np.ndarray, row: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """Return `ratio` = samples / `predicted`, and its extremes over d ≥ `MIN_DIMENSION`."""
        predicted = np.array([predicted_size(kernel, int(each), target) for each in d])
        ratio = row["samples"] / predicted
        counted = ratio[d >= min(MIN_DIMENSION, d[-1])]
        return {
            "predicted": predicted,
            "ratio": ratio,
            "ratio_lowest": np.min(counted),
            "ratio_highest": np.max(counted),
        }

    return Row(
        {d: arm(d) for d in dimensions},
        summaries=(exponents, compare_with_prediction),
        after=samples_at(target, lambda d: 1),
    )


def crossover(first: Row, second: Row) -> Comparison:
    """Return the dimension `crossover` above which the first row needs fewer examples."""

    def measure(records: Mapping[str, Record]) -> Mapping[str, float]:
        """Return the crossing, clipped to the measured dimensions."""
        (d1, one), (d2, other) = (
            (np.array(r.steps, float), np.array(r.measurements["samples"]))
            for r in records.values()
        )
        if not (np.all(np.isfinite(one)) and np.all(np.isfinite(other))):
            return {"crossover": math.nan}
        inside = crossing(d1, one, d2, other)
        outside = float(d1[0] if one[0] <= other[0] else d1[-1])
        return {"crossover": outside if inside is None else inside}

    return Comparison({"first": first, "second": second}, measure)


class PredictedSizes(ExactComputation):
    """Predicted sample sizes of a kernel by dimension: `samples`, and their `exponent` in d.

    The negative control has another `polynomial`.
    """

    kernel: ProductKernel
    dimensions: tuple[int, ...] = eqx.field(static=True)
    target: float = eqx.field(converter=float, default=0.05, kw_only=True)
    polynomial: Terms = eqx.field(static=True, default=XOR, kw_only=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        samples = np.array(
            [predicted_size(self.kernel, d, self.target, self.polynomial) for d in self.dimensions]
        )
        exponent = slope(np.log(np.array(self.dimensions, float)), np.log(samples))
        return {"samples": samples, "exponent": np.full(len(samples), exponent)}
