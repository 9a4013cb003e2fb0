"""Mixtures of real and injected inputs, labeled by a teacher.

A teacher is trained on labeled images L, with a regularizer on unlabeled inputs U. It then labels
both. A student learns from a mixture with a fraction α of inputs from U. The teacher is trained
when the task is drawn, in the shared training loop.

Reference: shi2022, Algorithm 1 and Appendix E.5, Equations (291) to (293).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from unlazy.core.errors import BadInput, require
from unlazy.core.losses import example_losses
from unlazy.core.metrics import Outputs, right
from unlazy.core.random import bernoulli, normal
from unlazy.learners.base import Trace
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.base import Model
from unlazy.probes.base import Probe
from unlazy.tasks.base import Batch, Data, Sampler
from unlazy.tasks.images.families import ImageClasses, ImageFamily, ImagePool, labels_of, outputs_of

#: Value of `injected` for Gaussian inputs.
GAUSSIAN = "gaussian"


def balance(
    score: Float[Array, "n o"], y: Float[Array, "n o"], trade: Float[Array, ""] | float
) -> Float[Array, ""]:
    """Return R₁ + trade·R₂ over the unlabeled examples, whose rows in y are zero.

    f: softmax probabilities; f̄: their mean over these examples. R₁ = Σ_j f̄_j·ln f̄_j is minimal if
    all classes are equally frequent. R₂ = −mean Σ_j f_j·ln f_j is minimal if f is one-hot for each
    example.
    """
    unlabeled = (jnp.sum(jnp.abs(y), axis=1) == 0).astype(score.dtype)
    weight = unlabeled / jnp.maximum(jnp.sum(unlabeled), 1)
    logs = jax.nn.log_softmax(score, axis=1)
    mean = weight @ jnp.exp(logs)
    evenness = jnp.sum(jnp.where(mean > 0, mean * jnp.log(jnp.where(mean > 0, mean, 1)), 0))
    return evenness - trade * weight @ jnp.sum(jnp.exp(logs) * logs, axis=1)


class TeacherDescent(Descent):
    """Descent on the mean loss of the labeled examples plus R₁ + trade·R₂ of the unlabeled ones."""

    trade: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def mean_loss(self, score: Array, y: Array, weight: Float[Array, " n"]) -> Float[Array, ""]:
        labeled = jnp.mean(jnp.any(y != 0, axis=1).astype(score.dtype))
        # Rows of zeros have softmax loss zero: the mean is over the labeled examples.
        return jnp.mean(weight * example_losses(self.loss, score, y)) / jnp.maximum(
            labeled, 1e-6
        ) + balance(score, y, self.trade)


class Sources(eqx.Module):
    """Labeled images, and injected inputs: other images, or independent standard normal pixels."""

    pool: ImagePool
    other: ImagePool | None
    size: tuple[int, ...] = eqx.field(static=True)

    def original(
        self, n: int, key: PRNGKeyArray, *, held: bool
    ) -> tuple[Float[Array, "n *d"], Array]:
        """Draw images of L with their class indices."""
        rows = self.pool.any((n,), key, held=held)
        return self.pool.pixels(rows).reshape(n, *self.size), self.pool.classes(rows)

    def injected(self, n: int, key: PRNGKeyArray, *, held: bool) -> Float[Array, "n *d"]:
        """Draw inputs of U."""
        if self.other is None:
            return normal(key, (n, *self.size))
        return self.other.pixels(self.other.any((n,), key, held=held)).reshape(n, *self.size)


class Lesson(eqx.Module):
    """Training examples of a teacher: half are labeled images, half are unlabeled inputs of U,
    whose labels are rows of zeros.
    """

    sources: Sources
    kinds: int = eqx.field(static=True)

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        key_original, key_injected = jax.random.split(key)
        labeled = n - n // 2
        x, classes = self.sources.original(labeled, key_original, held=False)
        y = labels_of(classes, self.kinds)
        return Batch(
            jnp.concatenate([x, self.sources.injected(n // 2, key_injected, held=False)]),
            jnp.concatenate([y, jnp.zeros((n // 2, self.kinds), y.dtype)]),
        )


class InjectedTask(Data):
    """Mixture of images and injected inputs, labeled with the most likely class of the teacher."""

    sources: Sources
    teacher: Model
    alpha: float | Float[Array, ""]
    kinds: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sources.size

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.kinds)

    def labels(self, x: Float[Array, "n *d"]) -> Float[Array, "n o"]:
        """Return the labels of the teacher."""
        return labels_of(jnp.argmax(self.teacher(x), axis=1), self.kinds)

    def part(self, n: int, key: PRNGKeyArray, *, injected: bool) -> Batch:
        """Draw test examples of one part."""
        x = (
            self.sources.injected(n, key, held=True)
            if injected
            else self.sources.original(n, key, held=True)[0]
        )
        return Batch(x, self.labels(x))

    def _mixture(self, n: int, key: PRNGKeyArray, *, held: bool) -> Batch:
        key_original, key_injected, key_choice = jax.random.split(key, 3)
        original, _ = self.sources.original(n, key_original, held=held)
        injected = self.sources.injected(n, key_injected, held=held)
        alpha = jnp.broadcast_to(jnp.asarray(self.alpha, jnp.float32), (n,))
        choice = bernoulli(key_choice, alpha)
        x = jnp.where(choice.reshape(n, *(1 for _ in self.sources.size)), injected, original)
        return Batch(x, self.labels(x))

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._mixture(n, key, held=False)

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._mixture(n, key, held=True)


class InjectedImages(ImageFamily):
    """Images of `data` with a fraction `alpha` of `injected` inputs ("gaussian", or another
    dataset), labeled by a teacher.

    `teacher`: training of the teacher, on `taught` examples; half of them are injected and
    unlabeled.
    """

    injected: str = eqx.field(static=True, default=GAUSSIAN, kw_only=True)
    alpha: float = eqx.field(converter=float, default=0.5, kw_only=True)
    teacher: GradientDescent = eqx.field(kw_only=True)
    taught: int = eqx.field(static=True, default=20_000, kw_only=True)
    flat: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        require(0 <= self.alpha <= 1, f"`alpha` must lie in [0, 1], got {self.alpha}.")
        require(self.taught > 1, f"`taught` must be at least 2, got {self.taught}.")

    @property
    def _other(self) -> ImageClasses | None:
        return (
            None
            if self.injected == GAUSSIAN
            else ImageClasses(self.injected, side=self.image_shape[0])
        )

    @property
    def digest(self) -> str:
        own = super().digest
        return own if self._other is None else f"{own}+{self._other.digest}"

    @property
    def missing(self) -> str | None:
        own = super().missing
        return own if own is not None or self._other is None else self._other.missing

    @property
    def dimension(self) -> int:
        height, width, channels = self.image_shape
        return height * width * channels

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.kinds)

    @property
    def most_examples(self) -> int | None:
        """None: images are drawn with replacement."""
        return None

    def task(self, *, key: PRNGKeyArray) -> InjectedTask:
        require(self.kinds > 2, f"A teacher requires more than two classes, got {self.kinds}.")
        key_cut, key_other, key_teacher = jax.random.split(key, 3)
        other = None if self._other is None else self._other.catalog.cut(key_other)
        size = (self.dimension,) if self.flat else self.image_shape
        sources = Sources(self.catalog.cut(key_cut), other, size)
        sampler = Sampler(Lesson(sources, self.kinds), self.dimension, None, self.outputs, size)
        trace = self.teacher.fit(sampler, self.taught, key=key_teacher)
        return InjectedTask(sources, trace.at(len(trace.steps) - 1), self.alpha, self.kinds)


class PartAccuracies(Probe):
    """Agreement with the teacher's labels in percent: `original_accuracy` and `injected_accuracy`
    on `test` held-out examples of each part, and `whole_accuracy` on the mixture.

    `share_of_largest`: fraction of the most frequent label among injected inputs.
    """

    test: int = eqx.field(static=True, default=1000)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        if not isinstance(task, InjectedTask):
            name = type(task).__name__
            raise BadInput(f"`PartAccuracies` requires a task with injected inputs, got {name}.")
        keys = jax.random.split(key)
        original, injected = (
            task.part(self.test, k, injected=which)
            for k, which in zip(keys, (False, True), strict=True)
        )
        fractions = jnp.mean(injected.y, axis=0)

        def accuracies(part: Batch) -> Array:
            result: Array = jax.lax.map(
                lambda score: 100 * jnp.mean(right(score, part.y)), trace.models.scores(part.x)
            )
            return result

        own, other = accuracies(original), accuracies(injected)
        return {
            "original_accuracy": own,
            "injected_accuracy": other,
            "whole_accuracy": (1 - task.alpha) * own + task.alpha * other,
            "share_of_largest": jnp.broadcast_to(jnp.max(fractions), own.shape),
        }
