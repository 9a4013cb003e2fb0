"""Multi-stage gradient descent on a network, with recorded steps."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.deprecation import renamed_parameters
from unlazy.core.errors import BadInput, require, require_one_of
from unlazy.core.losses import Loss, example_losses
from unlazy.core.metrics import Outputs
from unlazy.learners.base import SEEN, Call, Keys, Learner, Trace, at_once
from unlazy.learners.parts import Begin, End, Kept, Resumable, RunStage, Stage, Start, canonical
from unlazy.learners.sources import GradientSource, Groups, SampleGradients
from unlazy.networks.base import HasNeurons, Init, Network, Smoothable
from unlazy.tasks.base import Family, Sampler, WeightedBatch

#: The default loss of the outputs: logistic for signs, softmax for classes, squared for reals.
NATURAL = "natural"


def _floats(groups: dict[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in groups.items()}


def _optional_float(value: float | None) -> float | None:
    return None if value is None else float(value)


@renamed_parameters(optimiser="optimizer", forget="full_decay")
class Descent(Resumable):
    """Gradient steps p ← p − rate·(∇loss + 2·decay·p) on the parameter groups in `rates`.

    All other groups are frozen. The loss is the (weighted) mean over examples of the sum over
    outputs.

    - `rates`: learning rate by group.
    - `steps`: number of steps; None is one pass over fresh data, n // batch steps.
    - `batch`: examples per step; None is all.
    - `loss`: "natural" is the default loss of the outputs.
    - `decay`: λ of the penalty λ‖p‖² by group.
    - `full_decay`: groups with λ = 1/(2·rate), for which a step is p ← −rate·∇loss exactly. In
      floating point, p − rate·(g + 2λp) leaves a rounding error larger than a small gradient.
    - `kept`: fraction c of the groups in `full_decay` that remains: p ← c·p − rate·∇loss.
    - `optimizer`, `momentum`: "sgd" or "adam", and heavy-ball momentum.
    - `smoothing`: standard deviation of Gaussian noise in the preactivations, averaged exactly.
    - `class_weighted`: weight each example by 1/(2·fraction of its class).
    - `spread`: set the learning rate of w, which must be in `full_decay`, such that the root mean
      square of ⟨w_i, x⟩ over neurons and examples has this value.
    - `drop`: fraction of the steps after which all learning rates are divided by 10.
    """

    rates: dict[str, float] = eqx.field(converter=_floats)
    steps: int | None = eqx.field(static=True, default=None, kw_only=True)
    batch: int | None = eqx.field(static=True, default=None, kw_only=True)
    loss: Loss | Literal["natural"] = eqx.field(static=True, default="hinge", kw_only=True)
    decay: dict[str, float] = eqx.field(converter=_floats, default_factory=dict, kw_only=True)
    full_decay: tuple[str, ...] = eqx.field(
        static=True, default=(), kw_only=True, metadata={"key": "forget"}
    )
    optimizer: Literal["sgd", "adam"] = eqx.field(
        static=True, default="sgd", kw_only=True, metadata={"key": "optimiser"}
    )
    momentum: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)
    smoothing: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)
    class_weighted: bool = eqx.field(static=True, default=False, kw_only=True)
    spread: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)
    drop: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)
    kept: float | None = eqx.field(converter=_optional_float, default=None, kw_only=True)

    def __check_init__(self) -> None:
        require(bool(self.rates), "rates must contain at least one parameter group.")
        for group, rate in self.rates.items():
            require(
                rate > 0,
                f"rates[{group!r}] must be positive, got {rate}. Omit a group to freeze it.",
            )
        require(self.steps is None or self.steps >= 0, f"steps must be ≥ 0, got {self.steps}.")
        require(self.batch is None or self.batch > 0, f"batch must be positive, got {self.batch}.")
        known = (*get_args(Loss), NATURAL)
        require_one_of("loss", self.loss, known)
        require(
            self.optimizer in ("sgd", "adam"),
            f"optimizer must be 'sgd' or 'adam', got {self.optimizer!r}.",
        )
        require(
            self.smoothing is None or self.smoothing > 0,
            f"smoothing must be positive or None, got {self.smoothing}.",
        )
        named = {*self.decay, *self.full_decay}
        require(
            named <= set(self.rates),
            f"Groups in decay and full_decay must be in rates {sorted(self.rates)}, got "
            f"{sorted(named)}.",
        )
        require(
            self.spread is None or "w" in self.full_decay,
            "spread requires 'w' in full_decay.",
        )
        require(self.spread is None or self.steps == 1, "spread requires steps=1.")
        require(
            self.drop is None or 0 < self.drop < 1,
            f"drop must be in (0, 1) or None, got {self.drop}.",
        )
        require(
            self.kept is None or (bool(self.full_decay) and 0 <= self.kept <= 1),
            f"kept is a fraction of the groups in full_decay, got {self.kept}.",
        )

    def scaled(self, factor: float, decay: float) -> Descent:
        """Return the stage with learning rates times `factor` and an added penalty decay·‖p‖²."""
        rates = {group: rate * factor for group, rate in self.rates.items()}
        return dataclasses.replace(
            self, rates=rates, decay={group: self.decay.get(group, 0.0) + decay for group in rates}
        )

    @property
    def body(self) -> Descent:
        # Not by `replace`, whose checks fail if numbers are stacked for many trials.
        bare = copy.copy(self)
        object.__setattr__(bare, "steps", 1 if self.spread is not None else None)
        return bare

    def suited(self, outputs: Outputs) -> Descent:
        """Return the stage with "natural" replaced by the default loss of the outputs."""
        natural: dict[str, Any] = {"signs": "logistic", "classes": "softmax", "reals": "squared"}
        return (
            self if self.loss != NATURAL else dataclasses.replace(self, loss=natural[outputs.kind])
        )

    @property
    def commutes_with_rotations(self) -> bool:
        """False for Adam, which scales coordinates separately and could exploit a hidden basis."""
        return self.optimizer != "adam"

    def length(self, n: int) -> int:
        if self.steps is not None:
            return self.steps
        if self.batch is None:
            raise BadInput("batch is required if steps is None (one pass over fresh data).")
        return n // self.batch

    def work(self, n: int, r: int, width: int) -> float:
        """Count batch·r·width for the forward pass, and again for the gradient of a trained w.

        Smoothing adds about a hundred multiply-adds per neuron and example.
        """
        each = r * (2.0 if "w" in self.rates else 1.0) + (
            100.0 if self.smoothing is not None else 0.0
        )
        return self.length(n) * (self.batch or n) * width * each

    @property
    def _optimizer(self) -> optax.GradientTransformation:
        optimizer = optax.scale_by_adam() if self.optimizer == "adam" else optax.identity()
        return (
            optimizer
            if self.momentum is None
            else optax.chain(optimizer, optax.trace(decay=self.momentum))
        )

    def begin(self, model: Network) -> tuple[Network, Any]:
        """Return the network and the initial optimizer state."""
        return model, self._optimizer.init(model.get(tuple(self.rates)))

    def go_on(
        self,
        state: Any,
        source: GradientSource,
        material: Any,
        spans: Int[Array, "s 2"],
        total: Int[Array, ""],
        key: PRNGKeyArray,
    ) -> tuple[Any, Network, Float[Array, " s"]]:
        model, memory = state
        require(
            self.loss != NATURAL,
            "loss='natural' depends on the outputs; call `suited` first.",
        )
        source.accept(self.loss)
        require(
            self.smoothing is None or isinstance(model, Smoothable),
            f"{type(model).__name__} does not support smoothing.",
        )
        noise: dict[str, Any] = {} if self.smoothing is None else {"smoothing": self.smoothing}
        drop = None if self.drop is None else jnp.round(self.drop * total.astype(float))

        def loss(groups: Groups, x: Array, y: Array, weight: Array) -> Float[Array, ""]:
            return self.mean_loss(model.put(groups)(x, **noise), y, weight)

        def step(carry: Any, answer: Any, batch: Any, t: Int[Array, ""]) -> Any:
            groups, memory, sum_of_losses = carry
            slower = 1.0 if drop is None else jnp.where(t.astype(float) < drop, 1.0, 0.1)
            value, gradient = answer(groups)
            for group, penalty in self.decay.items():
                gradient[group] = jax.tree.map(
                    lambda g, p, c=penalty: g + 2 * c * p, gradient[group], groups[group]
                )
            with jax.numpy_dtype_promotion("standard"):  # Adam raises floats to an integer power
                direction, memory = self._optimizer.update(gradient, memory, groups)
            moved = {
                group: jax.tree.map(lambda u, rate=rate: -slower * rate * u, direction[group])
                for group, rate in self.rates.items()
            }
            kept = {group: groups[group] for group in groups if group not in self.full_decay}
            if self.kept is not None:
                decayed = {name: groups[name] for name in self.full_decay}
                kept |= jax.tree.map(lambda p: self.kept * p, decayed)
            moved |= jax.tree.map(jnp.add, kept, {group: moved[group] for group in kept})
            if self.spread is not None:
                moved = self._with_spread(moved, model, batch)
            return moved, memory, sum_of_losses + value

        def segment(carry: Any, span: Int[Array, " 2"]) -> Any:
            groups, memory, sum_of_losses = source.fold(
                step,
                (*carry, jnp.zeros(())),
                material,
                span,
                batch=self.batch,
                loss=loss,
                weigh=self._weights,
                model=model,
                key=key,
            )
            return (groups, memory), (groups, sum_of_losses / (span[1] - span[0]).astype(float))

        (last, memory), (trained, losses) = jax.lax.scan(
            segment, (model.get(tuple(self.rates)), memory), spans
        )
        frozen = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(spans), *leaf.shape)), model)
        return (model.put(last), memory), frozen.put(trained), losses

    def mean_loss(self, score: Array, y: Array, weight: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the weighted mean loss without penalties."""
        return jnp.mean(weight * example_losses(self.loss, score, y))

    def _weights(self, batch: Any, whole: Any) -> Float[Array, " n"]:
        """Return the weights of a batch's examples; class weights use the fractions in `whole`."""
        ones = jnp.ones_like(batch.y, shape=len(batch.y))
        weight = batch.weight if isinstance(batch, WeightedBatch) else ones
        if not self.class_weighted:
            return weight
        require(batch.y.ndim == 1, "class_weighted requires labels ±1.")
        of = whole.weight / jnp.sum(whole.weight) if isinstance(whole, WeightedBatch) else None
        is_positive = (whole.y > 0).astype(batch.y.dtype)
        positive = jnp.mean(is_positive) if of is None else of @ is_positive
        return weight * 0.5 / jnp.where(batch.y > 0, positive, 1 - positive)

    def _with_spread(self, groups: Groups, model: Network, batch: Any) -> Groups:
        """Scale w such that the root mean square of ⟨w_i, x⟩ is `spread`."""
        weighted = batch.x * batch.weight[:, None] if isinstance(batch, WeightedBatch) else batch.x
        second_moment = batch.x.T @ weighted / len(batch.y)  # r r
        changed = model.put(groups)
        assert isinstance(changed, HasNeurons) and self.spread is not None
        w = changed.first_layer  # m r
        rms = jnp.sqrt(jnp.mean(jnp.einsum("mr,rs,ms->m", w, second_moment, w)))
        # If an oracle answers only zeros, the weights remain zero.
        scale = self.spread / jnp.maximum(rms, jnp.finfo(rms.dtype).tiny)
        return groups | {"w": jax.tree.map(lambda leaf: leaf * scale, groups["w"])}


class GradientDescent(Learner):
    """A network from `init`, trained by consecutive `stages` with gradients from `source`.

    The default source is a fixed sample of size n. `record` lists the steps whose models are
    recorded; step 0 is the initial network, and the last step is always recorded. Learners with the
    same key have the same initial network and sample, so trials are paired by seed.
    """

    init: Init
    stages: tuple[Stage, ...]
    record: tuple[int, ...] = eqx.field(static=True, default=(), kw_only=True)
    source: GradientSource = eqx.field(default_factory=SampleGradients, kw_only=True)

    @property
    def draws_fresh(self) -> bool:
        return self.source.fresh

    def suited(self, family: Family) -> GradientDescent:
        return self.suited_to_outputs(family.outputs)

    def suited_to_outputs(self, outputs: Outputs) -> GradientDescent:
        stages = tuple(stage.suited(outputs) for stage in self.stages)
        return self if stages == self.stages else dataclasses.replace(self, stages=stages)

    def examples_at(self, step: int, n: int) -> int:
        """Return the examples used so far if they are fresh, otherwise n."""
        if not self.draws_fresh:
            return n
        taken, begin = 0, 0
        for stage in self.stages:
            steps = min(max(step - begin, 0), stage.length(n))
            taken, begin = (
                taken + steps * (getattr(stage, "batch", None) or n),
                begin + stage.length(n),
            )
        return taken

    def tuning(self, budget: int) -> tuple[Learner, ...]:
        """Return learners with scaled learning rates and different penalties.

        Stages with full decay are unchanged, because theory sets their learning rates.
        """
        decays = (0.0, 1e-3, 1e-4)[: max(1, min(3, budget // 4))]
        count = budget // len(decays)
        factors = [float(f"{10 ** ((index - count // 2) / 2):.3g}") for index in range(count)]
        return tuple(self.scaled(factor, decay) for decay in decays for factor in factors)

    def scaled(self, factor: float, decay: float) -> GradientDescent:
        """Scale the stages without full decay by `Descent.scaled`."""
        stages = tuple(
            stage.scaled(factor, decay)
            if isinstance(stage, Descent) and not stage.full_decay
            else stage
            for stage in self.stages
        )
        return dataclasses.replace(self, stages=stages)

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Learning rates and penalty of the first stage without full decay."""
        stage = next(
            (stage for stage in self.stages if isinstance(stage, Descent) and not stage.full_decay),
            None,
        )
        if stage is None:
            return {}
        return {f"rate {group}": rate for group, rate in stage.rates.items()} | {
            "decay": max(stage.decay.values(), default=0.0)
        }

    def recorded(self, n: int) -> tuple[int, ...]:
        """Return the recorded steps, including the last one."""
        last = sum(stage.length(n) for stage in self.stages)
        return tuple(sorted({step for step in self.record if 0 <= step < last} | {last}))

    def work(self, n: int, r: int) -> float:
        return sum(stage.work(n, r, self.init.width) for stage in self.stages)

    def prediction_work(self, d: int) -> float:
        return float(d) * self.init.width

    def fit(self, sampler: Sampler, n: int, *, key: PRNGKeyArray) -> Trace:
        return self.suited_to_outputs(sampler.outputs).fit_in_parts(sampler, n, key, at_once)

    def fit_in_parts(self, sampler: Sampler, n: int, key: Keys, call: Call) -> Trace:
        """Fit with the start, each stage and the end as separate parts, shared between learners."""
        require(n > 0, f"n must be positive, got {n}.")
        if self.draws_fresh:
            self._check_budget(n)
        rotates = all(stage.commutes_with_rotations for stage in self.stages)
        # For fresh examples n only sets the size of `seen`, so larger budgets share a program.
        count = min(n, SEEN) if self.draws_fresh else n
        start: Start = call(Begin(self.init, self.source, count, rotates), sampler, key)
        steps = self.recorded(n)
        model, runs, kept, begin = start.model, [], [], 0
        for index, stage in enumerate(self.stages):
            end = begin + stage.length(n)
            cuts = [step for step in steps if begin < step <= end]
            bounds = [begin, *cuts] if cuts and cuts[-1] == end else [begin, *cuts, end]
            if end > begin:
                lengths = [b - a for a, b in itertools.pairwise(bounds)]
                idle = canonical(len(lengths)) - len(lengths)
                run = RunStage(
                    stage.body,
                    self.source,
                    np.array([0] * idle + lengths, np.int32),
                    np.array(index, np.uint32),
                )
                models, losses, model = call(run, model, start.material, start.key)
                runs.append((models, losses))
                kept.append(Kept(idle, len(cuts), begin, end, tuple(getattr(stage, "rates", ()))))
            begin = end
        end_part = End(steps, tuple(kept), self.source)
        result: Trace = call(end_part, start.model, tuple(runs), start.basis, start.seen)
        return result

    def _check_budget(self, n: int) -> None:
        """Raise `BadInput` unless the stages draw between 1 and n fresh examples."""
        needed = sum(
            stage.length(n) * (stage.batch or n)
            for stage in self.stages
            if isinstance(stage, Descent)
        )
        require(needed <= n, f"The stages need {needed} fresh examples, got n={n}.")
        require(
            self.recorded(n)[-1] > 0,
            f"n must be at least the batch size, got n={n}.",
        )
