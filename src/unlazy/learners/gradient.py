"""The one training loop: stages of gradient descent on a network, with recorded steps."""

from __future__ import annotations

import dataclasses
import itertools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.errors import require
from unlazy.learners.base import SEEN, Learner, Trace, keys_of
from unlazy.losses import Loss, example_losses
from unlazy.networks import Init, Network
from unlazy.random import shuffled
from unlazy.tasks.base import Batch, Sampler, WeightedBatch

Groups = dict[str, Any]  # parameter group name -> arrays

#: Gradients over larger batches are summed up over pieces of at most this many rows, so that memory stays flat.
PIECE = 4096


class Source(eqx.Module):
    """Where a stage's examples come from: a fixed sample, or fresh draws where `sample` is None."""

    sampler: Sampler
    sample: Batch | None
    key: PRNGKeyArray


class Stage(eqx.Module):
    """A part of training. `run` returns the model after each of `lengths` consecutive runs of steps, and the mean losses."""

    @property
    def commutes_with_rotations(self) -> bool:
        """Whether training on rotated inputs gives the rotated network: then it may see inputs by their coordinates."""
        return True

    @abstractmethod
    def length(self, n: int) -> int:
        """Number of steps when `n` examples are allowed."""

    @abstractmethod
    def run(self, model: Network, source: Source, lengths: tuple[int, ...]) -> tuple[Network, Float[Array, " s"]]:
        """Train; the first axis of what is returned runs over `lengths`."""

    @abstractmethod
    def work(self, n: int, r: int, width: int) -> float:
        """Rough number of multiply-adds."""


def _floats(groups: dict[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in groups.items()}


def _optional_float(value: float | None) -> float | None:
    return None if value is None else float(value)


class Descent(Stage):
    """Gradient steps p ← p − rate·(∇loss + 2·decay·p) on the parameter groups named in `rates`; all others are frozen.

    `steps`: how many (None: one pass over fresh data, n // batch). `batch`: examples a step (None: all).
    `decay`: λ of the penalty λ‖p‖² by group. `forget`: groups with 2·rate·λ = 1, for which the step is p ← −rate·∇loss exactly;
    in floating point p − rate·(g + 2λp) would leave a rounding residue larger than a small gradient.
    `momentum`: heavy ball. `smoothing`: standard deviation of the Gaussian noise averaged over in each neuron.
    `class_weighted`: weight each example by 1 / (2·share of its class). The loss is the mean over examples, each with its weight where the
    sampler hands out a `WeightedBatch`, of the sum over outputs.
    `spread`: choose the step size of the forgotten group w from the sample, such that the root mean square of ⟨w_i, x⟩ over neurons and
    examples is this number (its `rate` then only sets a unit).
    `drop`: the share of the steps after which all step sizes fall to a tenth.
    """

    rates: dict[str, float] = eqx.field(converter=_floats)
    steps: int | None = eqx.field(static=True, default=None, kw_only=True)
    batch: int | None = eqx.field(static=True, default=None, kw_only=True)
    loss: Loss = eqx.field(static=True, default="hinge", kw_only=True)
    decay: dict[str, float] = eqx.field(converter=_floats, default_factory=dict, kw_only=True)
    forget: tuple[str, ...] = eqx.field(static=True, default=(), kw_only=True)
    optimiser: Literal["sgd", "adam"] = eqx.field(static=True, default="sgd", kw_only=True)
    momentum: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)
    smoothing: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)
    class_weighted: bool = eqx.field(static=True, default=False, kw_only=True)
    spread: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)
    drop: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)

    def __check_init__(self) -> None:
        """Refuse settings that contradict each other."""
        require(bool(self.rates), "A descent stage needs the step size of at least one parameter group.")
        for group, rate in self.rates.items():
            require(
                rate > 0,
                f"The step size of {group!r} must be positive, but is {rate}. To freeze a group, leave it out.",
            )
        require(self.steps is None or self.steps >= 0, f"steps must be ≥ 0, but is {self.steps}.")
        require(self.batch is None or self.batch > 0, f"batch must be positive, but is {self.batch}.")
        known = get_args(Loss)
        require(self.loss in known, f"loss must be one of {', '.join(known)}, but is {self.loss!r}.")
        require(self.optimiser in ("sgd", "adam"), f"optimiser must be sgd or adam, but is {self.optimiser!r}.")
        require(
            self.smoothing is None or self.smoothing > 0, f"smoothing must be positive, but is {self.smoothing}; leave it out for none."
        )
        named = {*self.decay, *self.forget}
        require(
            named <= set(self.rates),
            f"decay and forget name the groups {sorted(named)}, but only {sorted(self.rates)} are trained.",
        )
        require(
            self.spread is None or "w" in self.forget,
            "spread sets the step size of w and needs w among the forgotten groups.",
        )
        require(self.spread is None or self.steps == 1, "spread belongs to a stage of one step.")
        require(self.drop is None or 0 < self.drop < 1, f"drop is a share of the steps, in (0, 1), but is {self.drop}: leave it out.")

    def scaled(self, factor: float, decay: float) -> Descent:
        """The same stage with all step sizes times `factor` and a further penalty decay·‖p‖² on all groups."""
        rates = {group: rate * factor for group, rate in self.rates.items()}
        return dataclasses.replace(self, rates=rates, decay={group: self.decay.get(group, 0.0) + decay for group in rates})

    @property
    def commutes_with_rotations(self) -> bool:
        """Adam scales each coordinate by itself: coordinates in a hidden dictionary would tell it of the dictionary."""
        return self.optimiser != "adam"

    def length(self, n: int) -> int:
        """Number of steps when `n` examples are allowed."""
        if self.steps is not None:
            return self.steps
        require(
            self.batch is not None,
            "A stage without a number of steps makes one pass over fresh data and needs a batch size.",
        )
        assert self.batch is not None
        return n // self.batch

    def work(self, n: int, r: int, width: int) -> float:
        """The forward pass, and the gradient of the first layer where it is trained: a product of batch × r × width each.

        Smoothing needs an error function and an exponential for each neuron and example, together about a hundred multiply-adds.
        """
        each = r * (2.0 if "w" in self.rates else 1.0) + (100.0 if self.smoothing is not None else 0.0)
        return self.length(n) * (self.batch or n) * width * each

    def run(self, model: Network, source: Source, lengths: tuple[int, ...]) -> tuple[Network, Float[Array, " s"]]:
        """Train."""
        optimiser = optax.scale_by_adam() if self.optimiser == "adam" else optax.identity()
        if self.momentum is not None:
            optimiser = optax.chain(optimiser, optax.trace(decay=self.momentum))

        def step(carry: Any, batch: Batch, t: Int[Array, ""]) -> Any:
            groups, state, total = carry
            slower = 1.0 if self.drop is None else jnp.where(t < jnp.round(self.drop * sum(lengths)), 1.0, 0.1)
            loss, gradient = self._gradient(groups, model, batch, source)
            for group, penalty in self.decay.items():
                gradient[group] = jax.tree.map(lambda g, p, c=penalty: g + 2 * c * p, gradient[group], groups[group])
            direction, state = optimiser.update(gradient, state, groups)
            moved = {group: jax.tree.map(lambda u, rate=rate: -slower * rate * u, direction[group]) for group, rate in self.rates.items()}
            kept = {group: groups[group] for group in groups if group not in self.forget}
            moved |= jax.tree.map(jnp.add, kept, {group: moved[group] for group in kept})
            if self.spread is not None:
                moved = self._with_spread(moved, model, batch)
            return moved, state, total + loss

        def segment(carry: Any, span: Int[Array, " 2"]) -> Any:
            groups, state, total = self._fold(step, (*carry, jnp.zeros(())), source, span)
            return (groups, state), (groups, total / (span[1] - span[0]))

        groups = model.get(tuple(self.rates))
        ends = np.cumsum(lengths)
        spans = jnp.array(np.stack([ends - np.array(lengths), ends], axis=1))
        _, (trained, losses) = jax.lax.scan(segment, (groups, optimiser.init(groups)), spans)
        frozen = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(lengths), *leaf.shape)), model)
        return frozen.put(trained), losses

    def _fold(self, step: Callable[[Any, Batch, Int[Array, ""]], Any], carry: Any, source: Source, span: Int[Array, " 2"]) -> Any:
        """Do the steps span[0] ≤ t < span[1]: each on fresh examples, on the whole sample, or on the next part of the epoch's random order.

        An epoch's order depends on the epoch alone, so a span may begin in the middle of one.
        """
        (begin, end), sample, size = span, source.sample, self.batch
        if sample is None:
            assert size is not None, "fresh data needs a batch size"
            draw = source.sampler.draw
            return jax.lax.fori_loop(begin, end, lambda t, c: step(c, draw(size, jax.random.fold_in(source.key, t)), t), carry)
        if size is None or size >= len(sample.y):
            return jax.lax.fori_loop(begin, end, lambda t, c: step(c, sample, t), carry)
        length = len(sample.y) // size  # steps of an epoch

        def epoch(index: Int[Array, ""], carry: Any) -> Any:
            order = shuffled(jax.random.fold_in(source.key, index), len(sample.y))
            mixed = jax.tree.map(lambda leaf: leaf[order], sample)
            first = index * length

            def part(t: Int[Array, ""]) -> Batch:
                return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, (t - first) * size, size), mixed)

            low, high = jnp.maximum(begin, first), jnp.minimum(end, first + length)
            return jax.lax.fori_loop(low, high, lambda t, c: step(c, part(t), t), carry)

        return jax.lax.fori_loop(begin // length, -(-end // length), epoch, carry)

    def _gradient(self, groups: Groups, model: Network, batch: Batch, source: Source) -> tuple[Float[Array, ""], Groups]:
        """Mean loss over the batch and its gradient, summed up over pieces of bounded size."""
        weight = batch.weight if isinstance(batch, WeightedBatch) else jnp.ones_like(batch.y, shape=len(batch.y))
        if self.class_weighted:
            require(batch.y.ndim == 1 and not isinstance(batch, WeightedBatch), "Class weights need one output and no other weights.")
            positive = jnp.mean((source.sample or batch).y > 0, dtype=batch.y.dtype)
            weight = 0.5 / jnp.where(batch.y > 0, positive, 1 - positive)

        def loss(groups: Groups, x: Array, y: Array, weight: Array) -> Float[Array, ""]:
            return jnp.mean(weight * example_losses(self.loss, model.put(groups)(x, smoothing=self.smoothing), y))

        value_and_gradient = jax.value_and_grad(loss)
        pieces = _pieces(len(batch.y))
        if pieces == 1:
            return value_and_gradient(groups, batch.x, batch.y, weight)

        def add(total: Any, piece: Any) -> Any:
            return jax.tree.map(jnp.add, total, value_and_gradient(groups, *piece)), None

        split = jax.tree.map(lambda leaf: leaf.reshape(pieces, -1, *leaf.shape[1:]), (batch.x, batch.y, weight))
        zero = jax.tree.map(jnp.zeros_like, (jnp.zeros(()), groups))
        total, _ = jax.lax.scan(add, zero, split)
        return jax.tree.map(lambda leaf: leaf / pieces, total)

    def _with_spread(self, groups: Groups, model: Network, batch: Batch) -> Groups:
        """Scale w, and with it its step size, to the wanted root mean square of ⟨w_i, x⟩."""
        second_moment = batch.x.T @ batch.x / len(batch.y)  # r r
        w = model.put(groups).first_layer  # m r
        assert self.spread is not None
        rms = jnp.sqrt(jnp.mean(jnp.einsum("mr,rs,ms->m", w, second_moment, w)))
        return groups | {"w": jax.tree.map(lambda leaf, scale=self.spread / rms: leaf * scale, groups["w"])}


def _pieces(rows: int) -> int:
    """Into how many equal pieces a batch is cut: the fewest of at most `PIECE` rows, or one where no fair cut exists."""
    fewest = -(-rows // PIECE)
    return next((count for count in range(fewest, 4 * fewest) if rows % count == 0), 1)


class GradientDescent(Learner):
    """A network from `init`, trained by `stages` one after the other on a fixed sample of n examples (or on fresh draws).

    Step 0 is the initial network; `record` names the steps whose models are kept, and the last step is always kept. All learners of this
    class draw the same initial network and the same sample from the same key, so trials are paired by seed.
    """

    init: Init
    stages: tuple[Stage, ...]
    record: tuple[int, ...] = eqx.field(static=True, default=(), kw_only=True)
    fresh: bool = eqx.field(static=True, default=False, kw_only=True)

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """All step sizes times a factor, with a penalty on all weights or none. Steps that forget have their step size from theory."""
        decays = (0.0, 1e-3, 1e-4)[: max(1, min(3, budget // 4))]
        count = budget // len(decays)
        factors = [float(f"{10 ** ((index - count // 2) / 2):.3g}") for index in range(count)]
        return tuple(self.scaled(factor, decay) for decay in decays for factor in factors)

    def scaled(self, factor: float, decay: float) -> GradientDescent:
        """The learner with all step sizes times `factor` and a further penalty decay·‖p‖², in the stages that do not forget."""
        stages = tuple(stage.scaled(factor, decay) if isinstance(stage, Descent) and not stage.forget else stage for stage in self.stages)
        return dataclasses.replace(self, stages=stages)

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Step size and penalty by group, of the first stage that does not forget."""
        stage = next((stage for stage in self.stages if isinstance(stage, Descent) and not stage.forget), None)
        if stage is None:
            return {}
        return {f"rate {group}": rate for group, rate in stage.rates.items()} | {"decay": max(stage.decay.values(), default=0.0)}

    def recorded(self, n: int) -> tuple[int, ...]:
        """The recorded steps up to the last one, which is always among them."""
        last = sum(stage.length(n) for stage in self.stages)
        return tuple(sorted({step for step in self.record if 0 <= step < last} | {last}))

    def work(self, n: int, r: int) -> float:
        """Sum over the stages."""
        return sum(stage.work(n, r, self.init.width) for stage in self.stages)

    def prediction_work(self, d: int) -> float:
        """One product with the first layer."""
        return float(d) * self.init.width

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        """Run all stages."""
        require(n > 0, f"A learner needs at least one example, but n={n}.")
        key_init, key_data, key_order = keys_of(key)
        if self.fresh:
            self._check_budget(n)
        sample = None if self.fresh else sampler.draw(n, key_data)
        seen = _seen(sampler, sample, n, key_data)
        if sampler.basis is not None and not all(stage.commutes_with_rotations for stage in self.stages):
            sample = None if sample is None else sample._replace(x=sample.x @ sampler.basis)
            sampler = sampler.on_inputs
        model = self.init(sampler.dimension, key=key_init)
        if sampler.basis is not None:
            model = model.enter(sampler.basis)

        steps = self.recorded(n)
        kept, losses, start = [], [], 0
        if 0 in steps:
            kept.append(jax.tree.map(lambda leaf: leaf[None], model))
            losses.append(jnp.full(1, jnp.nan))
        for index, stage in enumerate(self.stages):
            end = start + stage.length(n)
            cuts = [step for step in steps if start < step <= end]
            bounds = [start, *cuts] if cuts and cuts[-1] == end else [start, *cuts, end]
            source = Source(sampler, sample, jax.random.fold_in(key_order, index))
            if end > start:
                models, means = stage.run(model, source, tuple(b - a for a, b in itertools.pairwise(bounds)))
                count = len(cuts)
                kept.append(jax.tree.map(lambda leaf, count=count: leaf[:count], models))
                losses.append(means[:count])
                model = jax.tree.map(lambda leaf: leaf[-1], models)
            start = end

        models = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *kept)
        if sampler.basis is not None:
            models = jax.vmap(lambda model: model.leave(sampler.basis))(models)
        return Trace(models, jnp.concatenate(losses), seen, steps)

    def _check_budget(self, n: int) -> None:
        """Refuse to draw more fresh examples than allowed, or none."""
        needed = sum(stage.length(n) * (stage.batch or n) for stage in self.stages if isinstance(stage, Descent))
        require(needed <= n, f"These stages take {needed} fresh examples, but n={n} are allowed.")
        require(self.recorded(n)[-1] > 0, f"n={n} fresh examples are less than one batch: no step would be taken.")


def _seen(sampler: Sampler, sample: Batch | None, n: int, key: PRNGKeyArray) -> Batch:
    """Up to `SEEN` training examples; of a stream, examples of the same law."""
    count = min(n, SEEN)
    return sampler.draw(count, key) if sample is None else Batch(sample.x[:count], sample.y[:count])
