"""Training in segments of a few steps, for all seeds at once, with snapshots to return to.

A segment is one call of a compiled program. Learning rates, noise and the range of steps are its
inputs, so that changing them needs no compilation. For any segmentation the result equals that of
the trial with the same family, learner, n and seed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from unlazy.core.errors import BadInput
from unlazy.core.threefry import new_key
from unlazy.learners.base import SEEN, Learner, Trace
from unlazy.learners.gradient import GradientDescent
from unlazy.learners.parts import Begin, Resumable, Stage, Start
from unlazy.learners.unit_norm import Scaled, UnitNorm, UnitScale
from unlazy.networks.base import Model, Network
from unlazy.play.views import views_of
from unlazy.probes.base import Probe
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Batch, Data, Family, Task


def is_live(learner: Learner, family: Family) -> bool:
    """Return whether a learner can be watched: multi-stage gradient descent, possibly on inputs
    scaled to unit norm.
    """
    suited = learner.suited(family)
    return isinstance(suited.learner if isinstance(suited, UnitNorm) else suited, GradientDescent)


class Setup(eqx.Module):
    """Task, initial state, input scale, training examples and probe key of one seed."""

    task: Data
    start: Start
    scale: Array | None
    seen: Batch
    key: Array


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """State of a run after `step` steps: `stage`, optimizer `state` and one network per seed.

    `losses`: mean losses since the previous snapshot.
    """

    step: int
    stage: int
    state: Any
    models: Network
    losses: Array | None

    @property
    def bytes(self) -> int:
        """Memory in bytes."""
        return sum(
            leaf.nbytes for leaf in jax.tree.leaves((self.state, self.models)) if eqx.is_array(leaf)
        )


class LiveTraining:
    """Training of a learner on a family with n examples, for several seeds, in segments."""

    def __init__(
        self, family: Family, learner: Learner, n: int, seeds: Sequence[int], *, test: int = 2000
    ) -> None:
        suited = learner.suited(family)
        self.unit = isinstance(suited, UnitNorm)
        inner = suited.learner if isinstance(suited, UnitNorm) else suited
        if not isinstance(inner, GradientDescent):
            raise BadInput(
                f"{type(inner).__name__} is not multi-stage gradient descent and cannot be watched."
            )
        self.learner = inner.suited_to_outputs(family.outputs)
        self.n, self.seeds, self.test = n, tuple(seeds), test
        self.lengths = [stage.length(n) for stage in self.learner.stages]
        self._double = learner.precision == 64
        with self._precision():
            self.family, self._inputs = _as_inputs(family), _as_inputs(self.learner)
        self.setup = self._set_up()
        self.views = self._views()

    def _precision(self) -> Any:
        return jax.enable_x64(self._double)  # a setting per thread

    def _set_up(self) -> Setup:
        with self._precision():
            return _set_up(
                self.family, self._inputs, self.n, self.unit, jnp.array(self.seeds, jnp.uint32)
            )

    @property
    def has_ground_truth(self) -> bool:
        """Whether the hidden directions are known."""
        return isinstance(self.setup.task, Task)

    def _views(self) -> tuple[Probe, ...]:
        with self._precision():
            task, model = (_first(each) for each in (self.setup.task, self.setup.start.model))
            return views_of(task, model)

    @property
    def steps(self) -> int:
        """Total number of steps."""
        return sum(self.lengths)

    def begin(self) -> Snapshot:
        """Return the snapshot at initialization."""
        return self._enter(Snapshot(0, -1, None, self.setup.start.model, None))

    def _enter(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot at the beginning of the next stage that has steps."""
        index = snapshot.stage + 1
        while index < len(self.lengths) and not self.lengths[index]:
            index += 1
        if index == len(self.lengths):
            return snapshot
        stage = self._inputs.stages[index].body
        with self._precision():
            state = _begun(stage, snapshot.models) if isinstance(stage, Resumable) else None
        return dataclasses.replace(snapshot, stage=index, state=state)

    def advance(self, snapshot: Snapshot, step: int) -> Snapshot:
        """Train up to a step, across stages."""
        step = min(step, self.steps)
        while snapshot.step < step:
            begun = sum(self.lengths[: snapshot.stage])
            end = begun + self.lengths[snapshot.stage]
            snapshot = self._segment(snapshot, begun, min(step, end))
            if snapshot.step == end:
                snapshot = self._enter(snapshot)
        return snapshot

    def _segment(self, snapshot: Snapshot, begun: int, step: int) -> Snapshot:
        stage, source, start = (
            self._inputs.stages[snapshot.stage].body,
            self._inputs.source,
            self.setup.start,
        )
        with self._precision():
            index = jnp.asarray(snapshot.stage, jnp.uint32)
            if not isinstance(stage, Resumable):  # solved in closed form
                models, losses = _solved(
                    stage, source, snapshot.models, start.material, start.key, index
                )
                return Snapshot(
                    begun + self.lengths[snapshot.stage], snapshot.stage, None, models, losses
                )
            span = jnp.asarray([[snapshot.step - begun, step - begun]], jnp.int32)
            total = jnp.asarray(self.lengths[snapshot.stage], jnp.int32)
            state, models, losses = _resumed(
                stage, source, snapshot.state, start.material, start.key, span, total, index
            )
        return Snapshot(step, snapshot.stage, state, models, losses)

    def change(self, family: Family, learner: Learner) -> bool:
        """Continue with another family and learner; return False if shapes differ.

        Learning rates apply immediately. Task parameters draw the examples again.
        """
        other = LiveTraining(family, learner, self.n, self.seeds, test=self.test)
        pairs = (
            (self.family, other.family),
            (self._inputs, other._inputs),
            (self.setup, other.setup),
        )
        same = all(_kind(a) == _kind(b) for a, b in pairs)
        if same:
            self.family, self._inputs, self.setup = other.family, other._inputs, other.setup
        return same

    def look(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        """Return views and measurements of a snapshot; the first axis is the seed."""
        with self._precision():
            found = _looked(self.setup, snapshot.models, (Performance(self.test),), self.views)
        return {name: np.asarray(value)[:, 0] for name, value in jax.device_get(found).items()}


def grid(lengths: Sequence[int], count: int) -> Iterator[int]:
    """Yield about `count` steps at which frames are made.

    Each stage contributes its first and last step, geometrically spaced steps (the network changes
    most early) and evenly spaced steps.
    """
    yield 0
    begun, total = 0, max(sum(lengths), 1)
    for length in lengths:
        half = max(1, round(count * length / total / 2))
        ratios = {round(length ** (place / half)) for place in range(half + 1)}
        evenly = {round(length * place / half) for place in range(half + 1)}
        yield from (begun + place for place in sorted(ratios | evenly) if 0 < place <= length)
        begun += length


def _as_inputs(tree: Any) -> Any:
    # Python floats would be compiled into the program.
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, tree)


def _first(tree: Any) -> Any:
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda leaf: leaf[0], arrays), rest)


def _kind(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf for leaf in leaves]


@eqx.filter_jit
def _set_up(family: Family, learner: GradientDescent, n: int, unit: bool, seeds: Array) -> Setup:
    def one(seed: Array) -> Setup:
        key_task, key_learner, key_probe = jax.random.split(new_key(seed), 3)
        task = family.task(key=key_task)
        sampler, scale, sample = family.handed(task), None, None
        if unit:
            sampler, scale, sample = UnitScale(n)(sampler, key_learner)
        rotates = all(stage.commutes_with_rotations for stage in learner.stages)
        count = min(n, SEEN) if learner.draws_fresh else n
        start = Begin(learner.init, learner.source, count, rotates)(sampler, key_learner)
        seen = start.seen if sample is None else Batch(sample.x[: len(start.seen.y)], start.seen.y)
        return Setup(task, start, scale, seen, key_probe)

    result: Setup = eqx.filter_vmap(one)(seeds)
    return result


@eqx.filter_jit
def _begun(stage: Resumable, models: Network) -> Any:
    return eqx.filter_vmap(stage.begin)(models)


@eqx.filter_jit
def _resumed(
    stage: Resumable,
    source: Any,
    states: Any,
    materials: Any,
    keys: Array,
    span: Array,
    total: Array,
    index: Array,
) -> Any:
    def one(state: Any, material: Any, key: Array) -> Any:
        state, models, losses = stage.go_on(
            state, source, material, span, total, jax.random.fold_in(key, index)
        )
        return state, models.at(-1), losses[-1]

    return eqx.filter_vmap(one)(states, materials, keys)


@eqx.filter_jit
def _solved(
    stage: Stage, source: Any, models: Network, materials: Any, keys: Array, index: Array
) -> Any:
    def one(model: Network, material: Any, key: Array) -> Any:
        found, losses = stage.run(
            model, source, material, jnp.ones(1, jnp.int32), jax.random.fold_in(key, index)
        )
        return found.at(-1), losses[-1]

    return eqx.filter_vmap(one)(models, materials, keys)


@eqx.filter_jit
def _looked(
    setup: Setup, models: Network, scores: tuple[Probe, ...], views: tuple[Probe, ...]
) -> dict[str, Array]:
    def one(setup: Setup, model: Any) -> dict[str, Any]:
        basis = setup.start.basis
        inner: Model = model if basis is None else model.leave(basis)
        outer = inner if setup.scale is None else Scaled(inner, setup.scale)
        found: dict[str, Any] = {}
        for which, probes in ((outer, scores), (inner, views)):
            trace = Trace(_stacked(which), jnp.full(1, jnp.nan), setup.seen, (0,))
            for index, probe in enumerate(probes):
                found |= probe(
                    setup.task, trace, found=found, key=jax.random.fold_in(setup.key, index)
                )
        return found

    result: dict[str, Array] = eqx.filter_vmap(one)(setup, models)
    return result


def _stacked(model: Model) -> Model:
    arrays, rest = eqx.partition(model, eqx.is_array)
    result: Model = eqx.combine(jax.tree.map(lambda leaf: leaf[None], arrays), rest)
    return result
