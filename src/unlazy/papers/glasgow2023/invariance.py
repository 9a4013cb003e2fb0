"""Rotation invariance of SGD, and the minimum error of rotation-invariant learners.

A rotation-invariant learner must treat all points of the cube alike that have the same inner
products with its n examples. On such a class it predicts one distribution of labels, so the
fraction of the rarer label bounds its error from below. `RotationFloor` sums this over the cube. It
bounds every such learner, also in dimensions in which the proof of Proposition F.1 gives no bound.

Reference: glasgow2023, Remark 2.1, Proposition F.1.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.linear_algebra import orthogonal_triangular
from unlazy.core.random import normal
from unlazy.core.threefry import new_key
from unlazy.lab.trials import ExactComputation
from unlazy.learners.base import keys_of
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients
from unlazy.networks.base import Init
from unlazy.networks.inits import SphereInit
from unlazy.networks.two_layer import TwoLayer
from unlazy.papers.glasgow2023.computations import Always
from unlazy.papers.glasgow2023.gradients import first_bounded, rotation_invariant_bound
from unlazy.tasks.base import Batch, Data, Family, Sampler
from unlazy.tasks.multi_index import MultiIndex
from unlazy.tasks.spectrum import corners


class SeenOnInputs(Family):
    """Family whose learners receive inputs, not coordinates.

    On a rotated cube they train in the rotated space.
    """

    family: MultiIndex

    @property
    def dimension(self) -> int:
        return self.family.dimension

    def task(self, *, key: PRNGKeyArray) -> Data:
        return self.family.task(key=key)

    def handed(self, task: Data) -> Sampler:
        return self.family.handed(task).on_inputs


class TurnedInit(Init):
    """Networks of `sphere`, with the first layer in an orthonormal basis (rows)."""

    sphere: SphereInit
    rotation: Float[Array, "d d"]

    @property
    def width(self) -> int:
        return self.sphere.width

    def __call__(self, d: Any, *, outputs: int | None = None, key: PRNGKeyArray) -> TwoLayer:
        net = self.sphere(d, outputs=outputs, key=key)
        result: TwoLayer = eqx.tree_at(lambda each: each.w, net, net.first_layer @ self.rotation.T)
        return result


class RotatedSteps(ExactComputation):
    """Scores after `length` steps on rotated inputs z·R from w, versus on z from w·Rᵀ.

    `difference`: relative Euclidean difference of the scores. Negative control: `optimizer` =
    "adam", which is not rotation-invariant.
    """

    d: int = eqx.field(static=True, default=24)
    width: int = eqx.field(static=True, default=16)
    length: int = eqx.field(static=True, default=20)
    optimizer: Literal["sgd", "adam"] = eqx.field(
        static=True, default="sgd", kw_only=True, metadata={"key": "optimiser"}
    )

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        task = MultiIndex(d=self.d).task(key=new_key(0))
        z, y = task.draw(4 * self.d, keys_of(key)[1])
        rotation = orthogonal_triangular(normal(jax.random.fold_in(key, 1), (self.d, self.d)))[0]
        sphere = SphereInit(p=self.width, radius=0.5)
        rate = 1.0 if self.optimizer == "sgd" else 0.02
        stage = Descent(
            {"w": rate * self.width, "a": rate / self.width},
            steps=self.length,
            batch=4 * self.d,
            loss="logistic",
            optimizer=self.optimizer,
        )

        def scores(init: Init, x: Array) -> np.ndarray:
            learner = GradientDescent(init, (stage,), source=FreshGradients())
            trace = learner.fit(
                Sampler(Always(Batch(x, y)), self.d), self.length * 4 * self.d, key=key
            )
            return np.asarray(trace.at(-1)(x))

        original, rotated = scores(TurnedInit(sphere, rotation), z), scores(sphere, z @ rotation)
        return {"difference": np.linalg.norm(original - rotated) / np.linalg.norm(original)}


class RotationFloor(ExactComputation):
    """Minimum error of rotation-invariant learners on XOR; the axis is the number of examples.

    `floor`: for random examples, the mean over `pairs` hidden pairs of the sum over classes of the
    rarer label's probability. Negative control: `copies` times as many examples.
    """

    d: int = eqx.field(static=True)
    samples: tuple[int, ...] = eqx.field(static=True)
    pairs: int = eqx.field(static=True, default=12)
    copies: int = eqx.field(static=True, default=1, kw_only=True)

    axis = "samples"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        cube = corners(self.d).astype(np.int8)
        hidden = [rng.choice(self.d, 2, replace=False) for _ in range(self.pairs)]
        labels = [cube[:, i] * cube[:, j] < 0 for i, j in hidden]
        floor = []
        for n in self.samples:
            examples = cube[rng.integers(0, len(cube), n * self.copies)].astype(np.int32)
            # Number the classes: each inner product takes d + 1 values.
            class_of = np.zeros(len(cube), np.int64)
            for x in examples:
                _, class_of = np.unique(
                    class_of * (self.d + 1) + (cube @ x + self.d) // 2, return_inverse=True
                )
            size = np.bincount(class_of)
            rare = [
                np.minimum(positive := np.bincount(class_of, weights=y), size - positive).sum()
                for y in labels
            ]
            floor.append(float(np.mean(rare)) / len(cube))
        return {"floor": np.array(floor)}


class ProofChain(ExactComputation):
    """Proof of Proposition F.1 with its constants; the axis is d.

    `bound`: lower bound on the error for n = ⌊d/log² d⌋ examples. `reach`: maximum n for which the
    bound is at least 0.03, ÷ d/log² d. `first`: dimension from which on the bound is at least 0.03.
    Negative control: `power` = 1, n = ⌊d/log d⌋.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True)
    power: int = eqx.field(static=True, default=2, kw_only=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        bound, reach = [], []
        for d in self.dimensions:
            stated = d / np.log(d) ** self.power
            bound.append(rotation_invariant_bound(d, int(stated)).error)
            low, high = 0, d
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (
                    (middle, high)
                    if rotation_invariant_bound(d, middle).error >= 0.03
                    else (low, middle)
                )
            reach.append(low / stated)
        return {
            "bound": np.array(bound),
            "reach": np.array(reach),
            "first": np.full(len(bound), float(first_bounded(self.power))),
        }


class PairSearch(ExactComputation):
    """Exact `error` of a learner that selects a pair of coordinates consistent with all examples.

    n = ⌊d/log² d⌋. It is not rotation-invariant: the negative control of Proposition F.1.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        errors = []
        for d in self.dimensions:
            n = int(d / np.log(d) ** 2)
            x = rng.choice([-1.0, 1.0], (n, d)).astype(np.float32)
            # −Σ y·x_i·x_j, which is n for a consistent pair.
            agree = x.T @ ((x[:, 0] * x[:, 1])[:, None] * x)
            ties = np.sum(np.triu(agree >= n - 0.5, 1))
            errors.append(0.5 * (1 - 1 / ties))
        return {"error": np.array(errors)}
