"""How many examples a learner needs on XOR: the number at which its test error falls to a target,
over a row of dimensions.

SGD is looked at after every step of its stream. A kernel is solved for all prefixes of a sample
that is somewhat larger than theory says is needed, and its error averaged over several samples
where they are small. The number of examples is where the error first falls to the target and stays
there; infinite where it does not, and NaN where it was below the target from the first look on.

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

#: Nearly ridgeless, in units of k(x, x).
RIDGE = 1e-6
#: Steps of SGD, each with d examples: more than it needs in any dimension that is measured.
STEPS = 96
#: Kernels beside their prediction are judged from this dimension on.
TRUSTED = 32


def samples_at(
    target: float, examples: Callable[[int], int]
) -> Callable[[int, Record], Mapping[str, float]]:
    """`samples` of one dimension from the errors at its recorded steps, each of which stands for
    `examples(d)` more of them.
    """

    def samples(d: int, record: Record) -> Mapping[str, float]:
        sizes, errors = (
            examples(d) * np.array(record.steps, float),
            np.array(record.measurements["error"]),
        )
        found = first_stable_crossing(sizes, errors, target)
        if found is None:
            return {"samples": math.inf}
        return {"samples": found if found > sizes[0] else math.nan}

    return samples


def exponents(d: np.ndarray, row: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
    """`exponent`: the slope of log samples in log d; `exponent_log`: that of log(samples / log d),
    where one factor log d is granted.
    """
    x, samples = np.log(d), row["samples"]
    if len(d) < 2 or not np.all(np.isfinite(samples)):
        return {"exponent": math.nan, "exponent_log": math.nan}
    return {"exponent": slope(x, np.log(samples)), "exponent_log": slope(x, np.log(samples / x))}


def sgd_row(dimensions: tuple[int, ...], *, width: int, target: float, test: int) -> Row:
    """Mean-field SGD on fresh minibatches of d examples."""

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
    """The number of examples that the kernel's eigenvalues on the cube predict."""
    with jax.enable_x64(True):
        ridge = RIDGE * float(kernel.diagonal(jnp.ones((1, d)))[0])
    return curve(kernel, d, MultiIndex(d=d, polynomial=polynomial).spectrum, ridge).sample_size(
        target
    )


def kernel_row(
    kernel: ProductKernel, dimensions: tuple[int, ...], *, target: float, test: int
) -> Row:
    """Kernel ridge regression beside its prediction.

    A small sample is a noisy one: its error is averaged over several draws, of some 8,000 examples
    together.
    """

    def arm(d: int) -> Repeats:
        n = max(32, math.ceil(1.3 * predicted_size(kernel, d, target)))
        return Repeats(
            Arm(MultiIndex(d=d), PrefixRidge(kernel, RIDGE), n, (ErrorRate(test),)),
            max(1, min(12, 8000 // n)),
        )

    def beside_theory(d: np.ndarray, row: Mapping[str, np.ndarray]) -> Mapping[str, Any]:
        """`ratio` = samples / `predicted`, and its extremes over d ≥ `TRUSTED`."""
        predicted = np.array([predicted_size(kernel, int(each), target) for each in d])
        ratio = row["samples"] / predicted
        counted = ratio[d >= min(TRUSTED, d[-1])]
        return {
            "predicted": predicted,
            "ratio": ratio,
            "ratio_lowest": np.min(counted),
            "ratio_highest": np.max(counted),
        }

    return Row(
        {d: arm(d) for d in dimensions},
        summaries=(exponents, beside_theory),
        after=samples_at(target, lambda d: 1),
    )


def crossover(first: Row, second: Row) -> Comparison:
    """`crossover`: the dimension above which the first of two rows needs fewer examples than the
    second.
    """

    def measure(records: Mapping[str, Record]) -> Mapping[str, float]:
        """A crossing outside of the measured dimensions counts with their end: the least or the
        greatest.
        """
        (d1, one), (d2, other) = (
            (np.array(r.steps, float), np.array(r.measurements["samples"]))
            for r in records.values()
        )
        if not (np.all(np.isfinite(one)) and np.all(np.isfinite(other))):
            return {"crossover": math.nan}
        found = crossing(d1, one, d2, other)
        return {
            "crossover": float(d1[0] if one[0] <= other[0] else d1[-1]) if found is None else found
        }

    return Comparison({"first": first, "second": second}, measure)


class PredictedSizes(ExactComputation):
    """Sample sizes of a kernel from theory alone, at any dimension: `samples`, and the `exponent`
    of the row.

    The false world has another `polynomial`.
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
