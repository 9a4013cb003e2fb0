"""Parts of multi-stage training: start, stages and end, compiled separately and shared."""

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
from unlazy.networks.two_layer import TwoLayer
from unlazy.networks.whole import WholeWeights
from unlazy.tasks.base import Batch, Sampler, WeightedBatch


class Stage(eqx.Module):
    """A stage of training.

    `run` returns the models after each of `lengths` consecutive segments of steps, and their mean
    losses.
    """

    @property
    def commutes_with_rotations(self) -> bool:
        """Whether training on rotated inputs gives the rotated network.

        If so, training may use coordinates of the inputs in a basis.
        """
        return True

    def suited(self, outputs: Outputs) -> Stage:
        """Return this stage for the given outputs."""
        return self

    @abstractmethod
    def length(self, n: int) -> int:
        """Return the number of steps if `n` examples are allowed."""

    @property
    def body(self) -> Stage:
        """The stage without its number of steps, so that stages of any length share a program."""
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
        """Train with gradients of `source` on `material`; return models and losses by segment."""

    @abstractmethod
    def work(self, n: int, r: int, width: int) -> float:
        """Estimate the number of multiply-adds."""


class Resumable(Stage):
    """A stage that can be interrupted and resumed, for watching training."""

    @abstractmethod
    def begin(self, model: Network) -> Any:
        """Return the initial state."""

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
        """Perform the steps span[0] ≤ t < span[1] of each span, out of `total` steps.

        Returns the state, and the models and mean losses of the spans.
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
    """The state before the first step.

    The network uses coordinates if there is a `basis`. `material` are the data of the source, and
    `seen` the examples kept for the trace.
    """

    model: Network
    material: Any
    key: PRNGKeyArray
    basis: Float[Array, "r d"] | None
    seen: Batch


class Begin(eqx.Module):
    """Draw the network and the data."""

    init: Init
    source: GradientSource
    n: int = eqx.field(static=True)
    rotates: bool = eqx.field(static=True)

    def __call__(self, sampler: Sampler, key: PRNGKeyArray) -> Start:
        key_init, key_data, key_order = keys_of(key)
        model = drawn_for(
            self.init, sampler.input_shape, outputs=sampler.outputs.count, key=key_init
        )
        inside = sampler.basis is not None and (
            isinstance(model, Rotatable) if self.rotates else isinstance(model, TwoLayer)
        )
        if inside:
            assert isinstance(model, Rotatable) and sampler.basis is not None
            # Weights by coordinates only if each stage commutes with rotations.
            model = (
                model.enter(sampler.basis)
                if self.rotates or not isinstance(model, TwoLayer)
                else WholeWeights(model, sampler.basis)
            )
        trained_on = sampler if inside or sampler.basis is None else sampler.on_inputs
        material = self.source.material(trained_on, self.n, key_data)
        # For fresh data and populations, `seen` is a sample from the same distribution.
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
            z = z @ sampler.basis.T  # `seen` is always by coordinates
        return Start(
            model,
            material,
            key_order,
            sampler.basis if inside else None,
            Batch(z, sample.y[:count]),
        )


class RunStage(eqx.Module):
    """One stage; the lengths of its segments are inputs of the program."""

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
    """Numbers of empty and recorded segments of a stage, its first and last step, its groups."""

    idle: int
    recorded: int
    begin: int
    end: int
    groups: tuple[str, ...]


class End(eqx.Module):
    """Combine the recorded models, in the input space."""

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
        """Return the number of queries up to each step, if the source counts them."""
        counts = [
            [
                self.source.queries(
                    model.get(kept.groups), min(max(step - kept.begin, 0), kept.end - kept.begin)
                )
                for kept in self.kept
            ]
            for step in self.steps
        ]
        if any(count is None for row in counts for count in row):
            return {}
        return {"queries": jnp.asarray([sum(row) for row in counts], jnp.result_type(float))}


def canonical(segments: int) -> int:
    """Return the number of segments after padding with empty ones, to share programs."""
    if segments <= 4:
        return segments
    power = 1 << (segments - 1).bit_length()
    return power if segments > 3 * power // 4 else 3 * power // 4
