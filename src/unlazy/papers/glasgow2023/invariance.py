"""Rotations: a learner that does not see them, one that does, and the least error of all learners
that do not.

A rotation-invariant learner must treat alike all points of the cube that have the same inner
products with its n examples. Over such a class it gives one distribution of labels, so its error
there is at least the share of the rarer label. `RotationFloor` adds that up over the whole cube: a
bound for every such learner, in dimensions where the proof of Proposition F.1 says nothing.

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
from unlazy.papers.glasgow2023.gradients import rotation_invariant_bound
from unlazy.tasks.base import Batch, Data, Family, Sampler
from unlazy.tasks.multi_index import MultiIndex
from unlazy.tasks.spectrum import corners


class SeenOnInputs(Family):
    """A family whose learners are handed inputs, never coordinates: on a rotated cube they train in
    the space that is rotated.
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
    """Networks of `sphere`, with the first layer seen from an orthonormal basis (rows)."""

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
    """`length` steps on rotated inputs z·R from a network w, and on the inputs z from the network
    w·Rᵀ: do the scores agree?

    `difference` is relative to the scores' size. The false world: `optimiser` = "adam", which
    scales each coordinate by itself.
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
        fine = 1.0 if self.optimizer == "sgd" else 0.02
        stage = Descent(
            {"w": fine * self.width, "a": fine / self.width},
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

        straight, turned = scores(TurnedInit(sphere, rotation), z), scores(sphere, z @ rotation)
        return {"difference": np.linalg.norm(straight - turned) / np.linalg.norm(straight)}


class RotationFloor(ExactComputation):
    """The least error of rotation-invariant learners on XOR in d dimensions, counted over the whole
    cube for each number of examples.

    `floor`: for random examples, the mean over `pairs` hidden pairs of Σ over classes of the rarer
    label's share. Steps are numbers of examples. The false world has `copies` times as many.
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
            seen = cube[rng.integers(0, len(cube), n * self.copies)].astype(np.int32)
            # The inner products as one number: each is among d + 1 values, folded in one by one and
            # numbered afresh.
            label_of = np.zeros(len(cube), np.int64)
            for x in seen:
                _, label_of = np.unique(
                    label_of * (self.d + 1) + (cube @ x + self.d) // 2, return_inverse=True
                )
            size = np.bincount(label_of)
            rare = [
                np.minimum(found := np.bincount(label_of, weights=y), size - found).sum()
                for y in labels
            ]
            floor.append(float(np.mean(rare)) / len(cube))
        return {"floor": np.array(floor)}


class ProofChain(ExactComputation):
    """The proof of Proposition F.1 with its constants: `bound` on the error for n = ⌊d/log² d⌋
    examples, in each of `dimensions`.

    `reach`: the greatest n for which the chain gives 0.03, over d/log² d; `first`: the dimension
    above which it always does so for n as above. The false world lets n = ⌊d/log d⌋.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True)
    power: int = eqx.field(static=True, default=2, kw_only=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        bound, reach = [], []
        for d in self.dimensions:
            asked = d / np.log(d) ** self.power
            bound.append(rotation_invariant_bound(d, int(asked)).error)
            low, high = 0, d
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (
                    (middle, high)
                    if rotation_invariant_bound(d, middle).error >= 0.03
                    else (low, middle)
                )
            reach.append(low / asked)
        first = 1 + max(d for d in range(100, 2000, 10) if rotation_invariant_bound(d).error < 0.03)
        return {
            "bound": np.array(bound),
            "reach": np.array(reach),
            "first": np.full(len(bound), float(first)),
        }


class PairSearch(ExactComputation):
    """A learner that sees coordinates: it takes a pair of them that explains all of n = ⌊d/log² d⌋
    examples. `error`: its exact error.

    No rotation-invariant learner can do this: the world in which Proposition F.1 is false.
    """

    dimensions: tuple[int, ...] = eqx.field(static=True)

    axis = "dimensions"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        errors = []
        for d in self.dimensions:
            n = int(d / np.log(d) ** 2)
            x = rng.choice([-1.0, 1.0], (n, d)).astype(np.float32)
            agree = x.T @ (
                (x[:, 0] * x[:, 1])[:, None] * x
            )  # −Σ y·x_i·x_j, which is n for a pair that explains all
            ties = np.sum(np.triu(agree >= n - 0.5, 1))
            errors.append(0.5 * (1 - 1 / ties))
        return {"error": np.array(errors)}
