"""The one training loop: stages of gradient descent on a network, with recorded steps."""

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

from unlazy.core.errors import BadInput, require
from unlazy.core.losses import Loss, example_losses
from unlazy.core.metrics import Outputs
from unlazy.learners.base import SEEN, Call, Keys, Learner, Trace, at_once
from unlazy.learners.parts import Begin, End, Kept, Resumable, RunStage, Stage, Start
from unlazy.learners.sources import GradientSource, Groups, SampleGradients
from unlazy.networks.base import HasNeurons, Init, Network, Smoothable
from unlazy.tasks.base import Family, Sampler, WeightedBatch

#: The loss that suits the outputs: logistic for signs, softmax for classes, squared for real
#: numbers.
NATURAL = "natural"


def _floats(groups: dict[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in groups.items()}


def _optional_float(value: float | None) -> float | None:
    return None if value is None else float(value)


class Descent(Resumable):
    """Gradient steps p ← p − rate·(∇loss + 2·decay·p) on the parameter groups named in `rates`; all
    others are frozen.

    `steps`: how many (None: one pass over fresh data, n // batch). `batch`: examples a step (None:
    all). `decay`: λ of the penalty λ‖p‖² by group. `forget`: groups with 2·rate·λ = 1, for which
    the step is p ← −rate·∇loss exactly; in floating point p − rate·(g + 2λp) would leave a rounding
    residue larger than a small gradient. `momentum`: heavy ball. `smoothing`: standard deviation of
    the Gaussian noise averaged over in each neuron. `class_weighted`: weight each example by 1 /
    (2·share of its class). The loss is the mean over examples, each with its weight where the data
    hand out a `WeightedBatch`, of the sum over outputs. `spread`: choose the step size of the
    forgotten group w from the sample, such that the root mean square of ⟨w_i, x⟩ over neurons and
    examples is this number (its `rate` then only sets a unit). `drop`: the share of the steps after
    which all step sizes fall to a tenth. `loss`: "natural" is the one that suits the outputs.
    """

    rates: dict[str, float] = eqx.field(converter=_floats)
    steps: int | None = eqx.field(static=True, default=None, kw_only=True)
    batch: int | None = eqx.field(static=True, default=None, kw_only=True)
    loss: Loss | Literal["natural"] = eqx.field(static=True, default="hinge", kw_only=True)
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
        require(
            bool(self.rates), "A descent stage needs the step size of at least one parameter group."
        )
        for group, rate in self.rates.items():
            require(
                rate > 0,
                f"The step size of {group!r} must be positive, but is {rate}. To freeze a "
                "group, leave it out.",
            )
        require(self.steps is None or self.steps >= 0, f"steps must be ≥ 0, but is {self.steps}.")
        require(
            self.batch is None or self.batch > 0, f"batch must be positive, but is {self.batch}."
        )
        known = (*get_args(Loss), NATURAL)
        require(
            self.loss in known, f"loss must be one of {', '.join(known)}, but is {self.loss!r}."
        )
        require(
            self.optimiser in ("sgd", "adam"),
            f"optimiser must be sgd or adam, but is {self.optimiser!r}.",
        )
        require(
            self.smoothing is None or self.smoothing > 0,
            f"smoothing must be positive, but is {self.smoothing}; leave it out for none.",
        )
        named = {*self.decay, *self.forget}
        require(
            named <= set(self.rates),
            f"decay and forget name the groups {sorted(named)}, but only {sorted(self.rates)} "
            "are trained.",
        )
        require(
            self.spread is None or "w" in self.forget,
            "spread sets the step size of w and needs w among the forgotten groups.",
        )
        require(self.spread is None or self.steps == 1, "spread belongs to a stage of one step.")
        require(
            self.drop is None or 0 < self.drop < 1,
            f"drop is a share of the steps, in (0, 1), but is {self.drop}: leave it out.",
        )

    def scaled(self, factor: float, decay: float) -> Descent:
        """The same stage with all step sizes times `factor` and a further penalty decay·‖p‖² on all
        groups.
        """
        rates = {group: rate * factor for group, rate in self.rates.items()}
        return dataclasses.replace(
            self, rates=rates, decay={group: self.decay.get(group, 0.0) + decay for group in rates}
        )

    @property
    def body(self) -> Descent:
        # A field is replaced by hand: the numbers may be stacked for many trials, which the checks
        # of a new stage cannot read.
        bare = copy.copy(self)
        object.__setattr__(bare, "steps", 1 if self.spread is not None else None)
        return bare

    def suited(self, outputs: Outputs) -> Descent:
        """The same stage with a loss for such outputs, where it takes the natural one."""
        natural: dict[str, Any] = {"signs": "logistic", "classes": "softmax", "reals": "squared"}
        return (
            self if self.loss != NATURAL else dataclasses.replace(self, loss=natural[outputs.kind])
        )

    @property
    def commutes_with_rotations(self) -> bool:
        """Adam scales each coordinate by itself: coordinates in a hidden dictionary would tell it
        of the dictionary.
        """
        return self.optimiser != "adam"

    def length(self, n: int) -> int:
        if self.steps is not None:
            return self.steps
        if self.batch is None:
            raise BadInput(
                "A stage without a number of steps makes one pass over fresh data and needs a "
                "batch size."
            )
        return n // self.batch

    def work(self, n: int, r: int, width: int) -> float:
        """The forward pass, and the gradient of the first layer where it is trained: a product of
        batch × r × width each.

        Smoothing needs an error function and an exponential for each neuron and example, together
        about a hundred multiply-adds.
        """
        each = r * (2.0 if "w" in self.rates else 1.0) + (
            100.0 if self.smoothing is not None else 0.0
        )
        return self.length(n) * (self.batch or n) * width * each

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        optimiser = optax.scale_by_adam() if self.optimiser == "adam" else optax.identity()
        return (
            optimiser
            if self.momentum is None
            else optax.chain(optimiser, optax.trace(decay=self.momentum))
        )

    def begin(self, model: Network) -> tuple[Network, Any]:
        """The network, and the memory of the optimiser."""
        return model, self._optimiser.init(model.get(tuple(self.rates)))

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
            "The natural loss is known once the outputs are: fit the learner, or call `suited`.",
        )
        source.accept(self.loss)
        require(
            self.smoothing is None or isinstance(model, Smoothable),
            f"{type(model).__name__} cannot average over noise inside its neurons.",
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
                direction, memory = self._optimiser.update(gradient, memory, groups)
            moved = {
                group: jax.tree.map(lambda u, rate=rate: -slower * rate * u, direction[group])
                for group, rate in self.rates.items()
            }
            kept = {group: groups[group] for group in groups if group not in self.forget}
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
        """What a step makes smaller, beside the penalties on weights."""
        return jnp.mean(weight * example_losses(self.loss, score, y))

    def _weights(self, batch: Any, whole: Any) -> Float[Array, " n"]:
        """Weights of a batch's examples; where classes are weighted, by their shares in the
        whole.
        """
        ones = jnp.ones_like(batch.y, shape=len(batch.y))
        weight = batch.weight if isinstance(batch, WeightedBatch) else ones
        if not self.class_weighted:
            return weight
        require(batch.y.ndim == 1, "Class weights need labels that are signs.")
        of = whole.weight / jnp.sum(whole.weight) if isinstance(whole, WeightedBatch) else None
        is_positive = (whole.y > 0).astype(batch.y.dtype)
        positive = jnp.mean(is_positive) if of is None else of @ is_positive
        return weight * 0.5 / jnp.where(batch.y > 0, positive, 1 - positive)

    def _with_spread(self, groups: Groups, model: Network, batch: Any) -> Groups:
        """Scale w, and with it its step size, to the wanted root mean square of ⟨w_i, x⟩."""
        weighted = batch.x * batch.weight[:, None] if isinstance(batch, WeightedBatch) else batch.x
        second_moment = batch.x.T @ weighted / len(batch.y)  # r r
        changed = model.put(groups)
        assert isinstance(changed, HasNeurons) and self.spread is not None
        w = changed.first_layer  # m r
        rms = jnp.sqrt(jnp.mean(jnp.einsum("mr,rs,ms->m", w, second_moment, w)))
        # An oracle may answer zero throughout: then the weights are zero, and stay so.
        scale = self.spread / jnp.maximum(rms, jnp.finfo(rms.dtype).tiny)
        return groups | {"w": jax.tree.map(lambda leaf: leaf * scale, groups["w"])}


class GradientDescent(Learner):
    """A network from `init`, trained by `stages` one after the other, with gradients from `source`:
    by default a fixed sample of size n.

    Step 0 is the initial network; `record` names the steps whose models are kept, and the last step
    is always kept. All learners of this class draw the same initial network and the same sample
    from the same key, so trials are paired by seed.
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
        """Of fresh examples, those of the steps so far."""
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
        """All step sizes times a factor, with a penalty on all weights or none.

        Steps that forget have their step size from theory.
        """
        decays = (0.0, 1e-3, 1e-4)[: max(1, min(3, budget // 4))]
        count = budget // len(decays)
        factors = [float(f"{10 ** ((index - count // 2) / 2):.3g}") for index in range(count)]
        return tuple(self.scaled(factor, decay) for decay in decays for factor in factors)

    def scaled(self, factor: float, decay: float) -> GradientDescent:
        """The learner with all step sizes times `factor` and a further penalty decay·‖p‖², in the
        stages that do not forget.
        """
        stages = tuple(
            stage.scaled(factor, decay)
            if isinstance(stage, Descent) and not stage.forget
            else stage
            for stage in self.stages
        )
        return dataclasses.replace(self, stages=stages)

    @property
    def settings(self) -> Mapping[str, float | str]:
        """Step size and penalty by group, of the first stage that does not forget."""
        stage = next(
            (stage for stage in self.stages if isinstance(stage, Descent) and not stage.forget),
            None,
        )
        if stage is None:
            return {}
        return {f"rate {group}": rate for group, rate in stage.rates.items()} | {
            "decay": max(stage.decay.values(), default=0.0)
        }

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
        return self.suited_to_outputs(sampler.outputs).fit_in_parts(sampler, n, key, at_once)

    def fit_in_parts(self, sampler: Sampler, n: int, key: Keys, call: Call) -> Trace:
        """The start, each stage and the end are parts of their own: learners share those that are
        equal.
        """
        require(n > 0, f"A learner needs at least one example, but n={n}.")
        if self.draws_fresh:
            self._check_budget(n)
        rotates = all(stage.commutes_with_rotations for stage in self.stages)
        # Of fresh examples n only says how many stand for those seen: budgets beyond that share a
        # program.
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
                idle = _canonical(len(lengths)) - len(lengths)
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
        result: Trace = call(
            End(steps, tuple(kept), self.source), start.model, tuple(runs), start.basis, start.seen
        )
        return result

    def _check_budget(self, n: int) -> None:
        """Refuse to draw more fresh examples than allowed, or none."""
        needed = sum(
            stage.length(n) * (stage.batch or n)
            for stage in self.stages
            if isinstance(stage, Descent)
        )
        require(needed <= n, f"These stages take {needed} fresh examples, but n={n} are allowed.")
        require(
            self.recorded(n)[-1] > 0,
            f"n={n} fresh examples are less than one batch: no step would be taken.",
        )


def _canonical(segments: int) -> int:
    """Numbers of recorded segments are filled up with empty ones to one of few, so that stages of
    many lengths share one program.
    """
    if segments <= 4:
        return segments
    power = 1 << (segments - 1).bit_length()
    return power if segments > 3 * power // 4 else 3 * power // 4
