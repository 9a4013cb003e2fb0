"""How many examples a learner needs: the least n at which its test error falls to a target, for each of a row of dimensions.

Online learners are run once, in one compiled program that looks at the test error after every few steps; n is where the error first falls
to the target and stays there. Kernels are solved once for all n by the prefixes of one Cholesky factor.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.kernels.base import Kernel, ProductKernel
from unlazy.kernels.gram import gram
from unlazy.lab.power_laws import slope
from unlazy.lab.trials import Instrument
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.papers.glasgow2023.probes import ErrorRate
from unlazy.solvers.exact import learning_curve
from unlazy.tasks.base import Family
from unlazy.tasks.multi_index import MultiIndex
from unlazy.theory.cube_kernels import curve

#: An error must stay at or below the target for so many looks in a row.
STABLE = 3
#: A search gives up after doubling its first budget so often.
DOUBLINGS = 5


def first_stable_crossing(sizes: np.ndarray, errors: np.ndarray, target: float, *, stable: int = STABLE) -> float | None:
    """The size at which the error reaches the target, between the looks by linear interpolation; None if it does not, or not for long."""
    below = errors <= target
    for i in range(len(errors) - stable + 1):
        if np.all(below[i : i + stable]):
            if i == 0:
                return float(sizes[0])
            share = (errors[i - 1] - target) / (errors[i - 1] - errors[i])
            return float(sizes[i - 1] + share * (sizes[i] - sizes[i - 1]))
    return None


#: Compiled, since operations that are dispatched one by one are compiled one by one.
drawn_task = eqx.filter_jit(lambda family, key: family.task(key=key))
drawn_batch = eqx.filter_jit(lambda task, n, key: task.sample(n, key=key))


class Contender(eqx.Module):
    """A learner whose settings follow the dimension of the task."""

    @abstractmethod
    def sample_size(self, family: Family, target: float, test: int, *, key: PRNGKeyArray) -> float:
        """The least number of examples that bring the error on `test` fresh examples to `target`."""

    @abstractmethod
    def work(self, family: Family, target: float, test: int) -> float:
        """Rough number of multiply-adds of `sample_size`, for planning."""

    def predicted(self, family: Family, target: float) -> float | None:
        """The number of examples that theory predicts, where it does."""
        return None


@eqx.filter_jit
def _errors(family: Family, learner: GradientDescent, n: int, test: int, key: PRNGKeyArray) -> Float[Array, " r"]:
    key_task, key_learner, key_test = jax.random.split(key, 3)
    task = family.task(key=key_task)
    trace = learner.fit(task.sampler, n, key=key_learner)
    probe = ErrorRate(test)
    return probe(task, trace, found={}, key=key_test)["error"]


class Online(Contender):
    """Mean-field SGD on fresh minibatches of ratio·d examples.

    `expected` is the number of steps of the first search; it doubles while the target is not reached.
    """

    width: int = eqx.field(static=True, default=128, kw_only=True)
    ratio: float = eqx.field(converter=float, default=1.0, kw_only=True)
    radius: float = eqx.field(converter=float, default=0.3, kw_only=True)
    step: float = eqx.field(converter=float, default=0.5, kw_only=True)
    bias: bool = eqx.field(static=True, default=False, kw_only=True)
    freeze_second: bool = eqx.field(static=True, default=False, kw_only=True)
    expected: int = eqx.field(static=True, default=64, kw_only=True)

    def learner(self, d: int, steps: int) -> GradientDescent:
        """The learner in d dimensions, with a record after each step."""
        return mean_field_sgd(
            width=self.width,
            batch=max(1, round(self.ratio * d)),
            radius=self.radius,
            step=self.step,
            bias=self.bias,
            freeze_second=self.freeze_second,
            steps=steps,
            record=tuple(range(steps)),
        )

    def sample_size(self, family: Family, target: float, test: int, *, key: PRNGKeyArray) -> float:
        """Train, look after every step, and train longer where that is not enough: the longer run begins with the same steps."""
        for doubling in range(DOUBLINGS):
            learner = self.learner(family.dimension, self.expected << doubling)
            found = _crossing(family, learner, learner.stages[0], target, test, key)
            if found is not None:
                return found
        raise BadInput(f"{self.expected << (DOUBLINGS - 1)} steps of SGD do not reach an error of {target} at d={family.dimension}.")

    def work(self, family: Family, target: float, test: int) -> float:
        """Training and the looks."""
        learner = self.learner(family.dimension, self.expected)
        return learner.work(0, family.dimension) + self.expected * test * learner.prediction_work(family.dimension)


class Stream(Contender):
    """Any learner on fresh examples, with the same settings in every dimension, given `most` examples; looked at `looks` times."""

    of: GradientDescent
    most: int = eqx.field(static=True, default=100_000, kw_only=True)
    looks: int = eqx.field(static=True, default=100, kw_only=True)

    def __check_init__(self) -> None:
        """Refuse learners that reuse examples."""
        one = len(self.of.stages) == 1 and isinstance(self.of.stages[0], Descent) and self.of.stages[0].batch is not None
        require(
            self.of.draws_fresh and one, "Only a learner of one stage on fresh minibatches has a sample size that grows with its steps."
        )

    def _learner(self) -> GradientDescent:
        stage = self.of.stages[0]
        assert isinstance(stage, Descent) and stage.batch is not None
        steps = self.most // stage.batch
        record = tuple(range(0, steps, max(1, steps // self.looks)))
        return dataclasses.replace(self.of, stages=(dataclasses.replace(stage, steps=steps),), record=record)

    def sample_size(self, family: Family, target: float, test: int, *, key: PRNGKeyArray) -> float:
        """Train once."""
        learner = self._learner()
        found = _crossing(family, learner, learner.stages[0], target, test, key)
        if found is None:
            raise BadInput(f"{self.most} examples do not bring this learner to an error of {target} at d={family.dimension}.")
        return found

    def work(self, family: Family, target: float, test: int) -> float:
        """Training and the looks."""
        learner = self._learner()
        return learner.work(self.most, family.dimension) + self.looks * test * learner.prediction_work(family.dimension)


def _crossing(family: Family, learner: GradientDescent, stage: Any, target: float, test: int, key: PRNGKeyArray) -> float | None:
    steps = np.array(learner.recorded(1))
    n = int(steps[-1]) * stage.batch
    return first_stable_crossing(steps * stage.batch, np.asarray(_errors(family, learner, n, test, key)), target)


class KernelRidge(Contender):
    """Kernel ridge regression. The grid of sizes is about `fineness` apart, and the error falls to the target between two of them."""

    kernel: Kernel
    ridge: float = eqx.field(converter=float, default=1e-6, kw_only=True)
    fineness: float = eqx.field(converter=float, default=0.01, kw_only=True)

    def sample_size(self, family: Family, target: float, test: int, *, key: PRNGKeyArray) -> float:
        """Solve for as many examples as may be needed, doubling until they are enough."""
        n = self._first(family, target)
        for _ in range(DOUBLINGS):
            grid = np.unique(np.round(n * np.exp(-self.fineness * np.arange(int(math.log(4) / self.fineness), -1, -1))).astype(int))
            keys = jax.random.split(key, self._repeats(n))
            errors = np.mean([self._errors(family, grid, test, each) for each in keys], axis=0)
            found = first_stable_crossing(grid, errors, target)
            # Where the first size is enough already, the grid was too high.
            if found is not None and found > grid[0]:
                return found
            n = 2 * n if found is None else max(8, n // 4)
        raise BadInput(f"{n} examples do not bring this kernel to an error of {target} at d={family.dimension}.")

    def _errors(self, family: Family, grid: np.ndarray, test: int, key: PRNGKeyArray) -> np.ndarray:
        key_task, key_sample, key_test = jax.random.split(key, 3)
        task = drawn_task(family, key_task)
        (x, y), (z, t) = drawn_batch(task, int(grid[-1]), key_sample), drawn_batch(task, test, key_test)
        K, K_test = np.asarray(gram(self.kernel, x)), np.asarray(gram(self.kernel, z, x))
        scores = learning_curve(K, K_test, np.asarray(y), self.ridge * float(K[0, 0]), sizes=grid.tolist())
        return np.mean(scores * np.asarray(t) <= 0, axis=1)

    def _repeats(self, n: int) -> int:
        """A small sample is a noisy one: its error is averaged over several draws, of some 8,000 examples together."""
        return max(1, min(12, 8000 // n))

    def _first(self, family: Family, target: float) -> int:
        expected = self.predicted(family, target)
        return 8 * family.dimension if expected is None else max(32, math.ceil(1.3 * expected))

    def predicted(self, family: Family, target: float) -> float | None:
        """The prediction from the kernel's eigenvalues, on the cube."""
        if isinstance(family, MultiIndex) and family.law == "cube" and isinstance(self.kernel, ProductKernel) and family.d > 2:
            ridge = self.ridge * float(self.kernel.diagonal(jnp.ones((1, family.d)))[0])
            return curve(self.kernel, family.d, family.spectrum, ridge).sample_size(target)
        return None

    def work(self, family: Family, target: float, test: int) -> float:
        """The factorisation and the test points' triangular solve, in double precision."""
        n = float(self._first(family, target))
        return 2 * self._repeats(int(n)) * (n**3 / 6 + n**2 * test / 2)


class SampleSizes(Instrument):
    """`samples`: how many examples a contender needs in each of `dimensions`; `exponent`: the slope of log samples in log d.

    `exponent_log` is the slope of log(samples / log d): the exponent where one factor log d is granted. Both belong to the whole row and
    are the same at each step. Where theory predicts the number, `predicted` and `ratio` = samples / predicted stand beside it, and
    `ratio_lowest` and `ratio_highest` are the ratio's extremes over d ≥ `trusted`.
    """

    family: MultiIndex
    contender: Contender
    dimensions: tuple[int, ...] = eqx.field(static=True)
    target: float = eqx.field(converter=float, default=0.05, kw_only=True)
    test: int = eqx.field(static=True, default=4096, kw_only=True)
    trusted: int = eqx.field(static=True, default=32, kw_only=True)

    def __check_init__(self) -> None:
        """Refuse an empty row and errors that need no learning."""
        require(bool(self.dimensions), "There must be at least one dimension.")
        require(0 < self.target < 0.5, f"target is an error between 0 and ½, but is {self.target}.")

    @property
    def steps(self) -> tuple[int, ...]:
        """The dimensions."""
        return self.dimensions

    def families(self) -> list[MultiIndex]:
        """The task in each dimension."""
        return [dataclasses.replace(self.family, d=d) for d in self.dimensions]

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        """Search in each dimension; the key of a dimension depends on it alone."""
        families = self.families()
        samples = np.array([self.contender.sample_size(f, self.target, self.test, key=jax.random.fold_in(key, f.d)) for f in families])
        found: dict[str, Any] = {"samples": samples}
        if len(samples) > 1:
            d = np.array(self.dimensions, float)
            found["exponent"] = np.full(len(d), slope(np.log(d), np.log(samples)))
            found["exponent_log"] = np.full(len(d), slope(np.log(d), np.log(samples / np.log(d))))
        predicted = [self.contender.predicted(f, self.target) for f in families]
        if all(value is not None for value in predicted):
            found["predicted"] = np.array(predicted, float)
            ratio = found["ratio"] = samples / found["predicted"]
            counted = ratio[np.array(self.dimensions) >= min(self.trusted, self.dimensions[-1])]
            found["ratio_lowest"], found["ratio_highest"] = (np.full(len(ratio), value) for value in (np.min(counted), np.max(counted)))
        return found

    @property
    def work(self) -> float:
        """Sum over the dimensions."""
        return sum(self.contender.work(f, self.target, self.test) for f in self.families())
