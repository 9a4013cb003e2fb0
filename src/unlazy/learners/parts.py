"""The parts of which training by stages is made: the start, each stage, and the end.

An engine compiles each by itself and shares it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.metrics import Outputs
from unlazy.learners.base import SEEN, Trace, keys_of
from unlazy.learners.sources import GradientSource
from unlazy.networks.adapters import drawn_for
from unlazy.networks.base import Init, Network, Rotatable
from unlazy.tasks.base import Batch, Sampler, WeightedBatch


class Stage(eqx.Module):
    """A part of training.

    `run` returns the model after each of `lengths` consecutive runs of steps, and the mean losses.
    """

    @property
    def commutes_with_rotations(self) -> bool:
        """Whether training on rotated inputs gives the rotated network: then it may see inputs by
        their coordinates.
        """
        return True

    def suited(self, outputs: Outputs) -> Stage:
        """This stage for such outputs."""
        return self

    @abstractmethod
    def length(self, n: int) -> int:
        """Number of steps when `n` examples are allowed."""

    @property
    def body(self) -> Stage:
        """This stage without its number of steps, which is an input of the program that runs it:
        stages of any length share one.
        """
        return self

    @abstractmethod
    def run(
        self,
        model: Network,
        source: GradientSource,
        material: Any,
        lengths: Int[Array, " s"],
        key: PRNGKeyArray,
    ) -> tuple[Network, Float[Array, " s"]]:
        """Train with gradients that `source` makes of `material`; the first axis of what is
        returned runs over `lengths`.
        """

    @abstractmethod
    def work(self, n: int, r: int, width: int) -> float:
        """Rough number of multiply-adds."""


class Resumable(Stage):
    """A stage that can be taken in pieces: whoever watches training goes on, looks, and goes on
    again. `run` is one such piece.
    """

    @abstractmethod
    def begin(self, model: Network) -> Any:
        """What the first step starts from."""

    @abstractmethod
    def go_on(
        self,
        state: Any,
        source: GradientSource,
        material: Any,
        spans: Int[Array, "s 2"],
        total: Int[Array, ""],
        key: PRNGKeyArray,
    ) -> tuple[Any, Network, Float[Array, " s"]]:
        """Do the steps span[0] ≤ t < span[1] of each span, out of `total`; returns what the next
        ones start from, models and losses.
        """

    def run(
        self,
        model: Network,
        source: GradientSource,
        material: Any,
        lengths: Int[Array, " s"],
        key: PRNGKeyArray,
    ) -> tuple[Network, Float[Array, " s"]]:
        ends = jnp.cumsum(lengths)
        spans = jnp.stack([ends - lengths, ends], axis=1)
        _, models, losses = self.go_on(
            self.begin(model), source, material, spans, jnp.sum(lengths), key
        )
        return models, losses


class Start(NamedTuple):
    """Before the first step: the network (by coordinates, if there is a basis), what the source
    made of the data, and what was seen.
    """

    model: Network
    material: Any
    key: PRNGKeyArray
    basis: Float[Array, "r d"] | None
    seen: Batch


class Begin(eqx.Module):
    """Draw the network and take from the sampler what training needs."""

    init: Init
    source: GradientSource
    n: int = eqx.field(static=True)
    rotates: bool = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> Start:
        key_init, key_data, key_order = keys_of(key)
        model = drawn_for(
            self.init, sampler.input_shape, outputs=sampler.outputs.count, key=key_init
        )
        inside = sampler.basis is not None and self.rotates and isinstance(model, Rotatable)
        if inside:
            assert isinstance(model, Rotatable) and sampler.basis is not None
            model = model.enter(sampler.basis)
        trained_on = sampler if inside or sampler.basis is None else sampler.on_inputs
        material = self.source.material(trained_on, self.n, key_data)
        # Of a stream, or of a law, examples of the same law stand for those seen; a sample was seen
        # itself.
        count = min(self.n, SEEN)
        sample = (
            material
            if isinstance(material, (Batch, WeightedBatch))
            else sampler.draw(count, key_data)
        )
        z = sample.x[:count]
        if (
            not inside
            and sampler.basis is not None
            and isinstance(material, (Batch, WeightedBatch))
        ):
            z = z @ sampler.basis.T  # what was seen is always kept by coordinates
        return Start(
            model,
            material,
            key_order,
            sampler.basis if inside else None,
            Batch(z, sample.y[:count]),
        )


class RunStage(eqx.Module):
    """One stage. The lengths of its segments are inputs of the program, not parts of it."""

    stage: Stage
    source: GradientSource
    lengths: np.ndarray
    index: np.ndarray

    def __call__(
        self, model: Network, material: Any, key: PRNGKeyArray
    ) -> tuple[Network, Float[Array, " s"], Network]:
        stage_key = jax.random.fold_in(key, jnp.asarray(self.index))
        models, losses = self.stage.run(
            model, self.source, material, jnp.asarray(self.lengths), stage_key
        )
        return models, losses, models.at(-1)


class Kept(NamedTuple):
    """Of the segments of a stage: how many are empty, how many of the others are recorded; the
    steps between which it trained, and what.
    """

    idle: int
    recorded: int
    begin: int
    end: int
    groups: tuple[str, ...]


class End(eqx.Module):
    """Put the recorded models together, in the input space."""

    steps: tuple[int, ...] = eqx.field(static=True)
    kept: tuple[Kept, ...] = eqx.field(static=True)
    source: GradientSource

    def __call__(
        self, first: Network, runs: Any, basis: Float[Array, "r d"] | None, seen: Batch
    ) -> Trace:
        parts, losses = [], []
        if 0 in self.steps:
            parts.append(jax.tree.map(lambda leaf: leaf[None], first))
            losses.append(jnp.full(1, jnp.nan))
        for (models, means), kept in zip(runs, self.kept, strict=True):
            span = slice(kept.idle, kept.idle + kept.recorded)
            parts.append(jax.tree.map(lambda leaf, span=span: leaf[span], models))
            losses.append(means[span])
        models = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
        if basis is not None:
            models = jax.vmap(lambda model: model.leave(basis))(models)
        return Trace(models, jnp.concatenate(losses), seen, self.steps, self._notes(first))

    def _notes(self, model: Network) -> dict[str, Array]:
        """The number of queries asked so far, of a source that counts them."""
        asked = [
            [
                self.source.queries(
                    model.get(kept.groups), min(max(step - kept.begin, 0), kept.end - kept.begin)
                )
                for kept in self.kept
            ]
            for step in self.steps
        ]
        if any(count is None for row in asked for count in row):
            return {}
        return {"queries": jnp.asarray([sum(row) for row in asked], jnp.result_type(float))}
