"""Training in pieces: the one loop, taken a few steps at a time for all seeds at once, so that it
can be watched and wound back.

A piece is one call of a compiled program; its numbers (step sizes, noise, the steps between which
it trains) are inputs of the program, so that changing one compiles nothing. Taken in any pieces, a
run is the trial of the same family, learner, n and seed.
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
from unlazy.play.views import sights_of
from unlazy.probes.base import Probe
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Batch, Data, Family, Task


def is_live(learner: Learner, family: Family) -> bool:
    """Whether a learner can be watched: it is gradient descent by stages, on inputs as they are or
    of unit norm.
    """
    suited = learner.suited(family)
    return isinstance(suited.learner if isinstance(suited, UnitNorm) else suited, GradientDescent)


class Ground(eqx.Module):
    """What a seed stands on: the task, what training starts from, the scale of the inputs, what was
    seen, and the key of the probes.
    """

    task: Data
    start: Start
    scale: Array | None
    seen: Batch
    key: Array


@dataclasses.dataclass(frozen=True)
class Moment:
    """A run after `step` steps: in `stage`, from `state`, with the networks (one a seed) and the
    mean losses since the moment before.
    """

    step: int
    stage: int
    state: Any
    models: Network
    losses: Array | None

    @property
    def bytes(self) -> int:
        """Memory that it holds."""
        return sum(
            leaf.nbytes for leaf in jax.tree.leaves((self.state, self.models)) if eqx.is_array(leaf)
        )


class LiveTraining:
    """A learner on a family, with n examples and some seeds, in pieces."""

    def __init__(
        self, family: Family, learner: Learner, n: int, seeds: Sequence[int], *, test: int = 2000
    ) -> None:
        suited = learner.suited(family)
        self.unit = isinstance(suited, UnitNorm)
        inner = suited.learner if isinstance(suited, UnitNorm) else suited
        if not isinstance(inner, GradientDescent):
            raise BadInput(
                f"{type(inner).__name__} is no gradient descent by stages: it cannot be watched."
            )
        self.learner = inner.suited_to_outputs(family.outputs)
        self.n, self.seeds, self.test = n, tuple(seeds), test
        self.lengths = [stage.length(n) for stage in self.learner.stages]
        self._double = learner.precision == 64
        with self._precision():
            self.family, self._numbers = _as_inputs(family), _as_inputs(self.learner)
        self.ground = self._drawn()
        self.sights = self._sights()

    def _precision(self) -> Any:
        return jax.enable_x64(self._double)  # which is a setting of each thread

    def _drawn(self) -> Ground:
        with self._precision():
            return _drawn(
                self.family, self._numbers, self.n, self.unit, jnp.array(self.seeds, jnp.uint32)
            )

    @property
    def has_secret(self) -> bool:
        """Whether there are hidden directions to be found."""
        return isinstance(self.ground.task, Task)

    def _sights(self) -> tuple[Probe, ...]:
        with self._precision():
            task, model = (_first(each) for each in (self.ground.task, self.ground.start.model))
            return sights_of(task, model)

    @property
    def steps(self) -> int:
        """Steps in all."""
        return sum(self.lengths)

    def begin(self) -> Moment:
        """Before the first step."""
        return self._enter(Moment(0, -1, None, self.ground.start.model, None))

    def _enter(self, moment: Moment) -> Moment:
        """At the end of a stage, the beginning of the next one that has steps."""
        index = moment.stage + 1
        while index < len(self.lengths) and not self.lengths[index]:
            index += 1
        if index == len(self.lengths):
            return moment
        stage = self._numbers.stages[index].body
        with self._precision():
            state = _begun(stage, moment.models) if isinstance(stage, Resumable) else None
        return dataclasses.replace(moment, stage=index, state=state)

    def advance(self, moment: Moment, step: int) -> Moment:
        """Train on until that step, over the ends of stages."""
        step = min(step, self.steps)
        while moment.step < step:
            begun = sum(self.lengths[: moment.stage])
            end = begun + self.lengths[moment.stage]
            moment = self._piece(moment, begun, min(step, end))
            if moment.step == end:
                moment = self._enter(moment)
        return moment

    def _piece(self, moment: Moment, begun: int, step: int) -> Moment:
        stage, source, start = (
            self._numbers.stages[moment.stage].body,
            self._numbers.source,
            self.ground.start,
        )
        with self._precision():
            index = jnp.asarray(moment.stage, jnp.uint32)
            if not isinstance(stage, Resumable):  # solved at once
                models, losses = _solved(
                    stage, source, moment.models, start.material, start.key, index
                )
                return Moment(
                    begun + self.lengths[moment.stage], moment.stage, None, models, losses
                )
            span = jnp.asarray([[moment.step - begun, step - begun]], jnp.int32)
            total = jnp.asarray(self.lengths[moment.stage], jnp.int32)
            state, models, losses = _went_on(
                stage, source, moment.state, start.material, start.key, span, total, index
            )
        return Moment(step, moment.stage, state, models, losses)

    def change(self, family: Family, learner: Learner) -> bool:
        """Go on with other numbers: step sizes at once, those of the task by drawing its examples
        anew. False where sizes differ.
        """
        other = LiveTraining(family, learner, self.n, self.seeds, test=self.test)
        pairs = (
            (self.family, other.family),
            (self._numbers, other._numbers),
            (self.ground, other.ground),
        )
        same = all(_kind(a) == _kind(b) for a, b in pairs)
        if same:
            self.family, self._numbers, self.ground = other.family, other._numbers, other.ground
        return same

    def look(self, moment: Moment) -> dict[str, np.ndarray]:
        """What is seen and measured; the first axis runs over seeds."""
        with self._precision():
            found = _looked(self.ground, moment.models, (Performance(self.test),), self.sights)
        return {name: np.asarray(value)[:, 0] for name, value in jax.device_get(found).items()}


def grid(lengths: Sequence[int], count: int) -> Iterator[int]:
    """Steps at which to look, about `count` in all: of each stage the first and the last, some
    spaced by ratios and some evenly.

    Early steps change most, and late ones must not take for ever.
    """
    yield 0
    begun, total = 0, max(sum(lengths), 1)
    for length in lengths:
        half = max(1, round(count * length / total / 2))
        ratios = {round(length ** (place / half)) for place in range(half + 1)}
        evenly = {round(length * place / half) for place in range(half + 1)}
        yield from (begun + place for place in sorted(ratios | evenly) if 0 < place <= length)
        begun += length


def _as_inputs(thing: Any) -> Any:
    """Numbers as arrays, which are inputs of the programs."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, thing)


def _first(tree: Any) -> Any:
    """Of a tree over seeds, the first."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda leaf: leaf[0], arrays), rest)


def _kind(tree: Any) -> Any:
    """All of a tree but its numbers."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf for leaf in leaves]


@eqx.filter_jit
def _drawn(family: Family, learner: GradientDescent, n: int, unit: bool, seeds: Array) -> Ground:
    def one(seed: Array) -> Ground:
        key_task, key_learner, key_probe = jax.random.split(new_key(seed), 3)
        task = family.task(key=key_task)
        sampler, scale, sample = family.handed(task), None, None
        if unit:
            sampler, scale, sample = UnitScale(n)(sampler, key_learner)
        rotates = all(stage.commutes_with_rotations for stage in learner.stages)
        count = min(n, SEEN) if learner.draws_fresh else n
        start = Begin(learner.init, learner.source, count, rotates)(sampler, key_learner)
        seen = start.seen if sample is None else Batch(sample.x[: len(start.seen.y)], start.seen.y)
        return Ground(task, start, scale, seen, key_probe)

    result: Ground = eqx.filter_vmap(one)(seeds)
    return result


@eqx.filter_jit
def _begun(stage: Resumable, models: Network) -> Any:
    return eqx.filter_vmap(stage.begin)(models)


@eqx.filter_jit
def _went_on(
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
    ground: Ground, models: Network, scores: tuple[Probe, ...], sights: tuple[Probe, ...]
) -> dict[str, Array]:
    def one(ground: Ground, model: Any) -> dict[str, Any]:
        basis = ground.start.basis
        inner: Model = model if basis is None else model.leave(basis)
        outer = inner if ground.scale is None else Scaled(inner, ground.scale)
        found: dict[str, Any] = {}
        for which, probes in ((outer, scores), (inner, sights)):
            trace = Trace(_stacked(which), jnp.full(1, jnp.nan), ground.seen, (0,))
            for index, probe in enumerate(probes):
                found |= probe(
                    ground.task, trace, found=found, key=jax.random.fold_in(ground.key, index)
                )
        return found

    result: dict[str, Array] = eqx.filter_vmap(one)(ground, models)
    return result


def _stacked(model: Model) -> Model:
    arrays, rest = eqx.partition(model, eqx.is_array)
    result: Model = eqx.combine(jax.tree.map(lambda leaf: leaf[None], arrays), rest)
    return result
