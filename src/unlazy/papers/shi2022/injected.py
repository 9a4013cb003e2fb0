"""Real inputs mixed with others, all labelled by a teacher: how the structure of inputs acts on
learning.

A teacher is trained on the labelled images L, with a regulariser on inputs U without labels; it
then labels both, and a student learns from a mixture in which a share α of the inputs is from U.
The teacher is trained when the task is drawn, in the one training loop.

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

#: What is injected where it is no set of images.
GAUSSIAN = "gaussian"


def balance(
    score: Float[Array, "n o"], y: Float[Array, "n o"], trade: Float[Array, ""] | float
) -> Float[Array, ""]:
    """R₁ + trade·R₂ over the rows without a label, which are rows of zeros in y; f are the
    probabilities by softmax.

    R₁ = Σ_j f̄_j·ln f̄_j for the mean f̄ over these rows is least where all classes are equally
    frequent; R₂ = −mean Σ_j f_j·ln f_j is least where each row is sure of its class.
    """
    bare = (jnp.sum(jnp.abs(y), axis=1) == 0).astype(score.dtype)
    share = bare / jnp.maximum(jnp.sum(bare), 1)
    logs = jax.nn.log_softmax(score, axis=1)
    mean = share @ jnp.exp(logs)
    evenness = jnp.sum(jnp.where(mean > 0, mean * jnp.log(jnp.where(mean > 0, mean, 1)), 0))
    return evenness - trade * share @ jnp.sum(jnp.exp(logs) * logs, axis=1)


class TeacherDescent(Descent):
    """Descent on the mean loss of the examples with a label plus R₁ + trade·R₂ of those without."""

    trade: float = eqx.field(converter=float, default=0.5, kw_only=True)

    def mean_loss(self, score: Array, y: Array, weight: Float[Array, " n"]) -> Float[Array, ""]:
        labelled = jnp.mean(jnp.any(y != 0, axis=1).astype(score.dtype))
        # Rows of zeros have no softmax loss: the mean is taken over those that have a label.
        return jnp.mean(weight * example_losses(self.loss, score, y)) / jnp.maximum(
            labelled, 1e-6
        ) + balance(score, y, self.trade)


class Sources(eqx.Module):
    """The labelled images, and what is injected: other images, or Gaussians with independent pixels
    of mean 0 and variance 1.
    """

    pool: ImagePool
    other: ImagePool | None
    size: tuple[int, ...] = eqx.field(static=True)

    def original(
        self, n: int, key: PRNGKeyArray, *, held: bool
    ) -> tuple[Float[Array, "n *d"], Array]:
        """Images of L with the numbers of their classes."""
        rows = self.pool.any((n,), key, held=held)
        return self.pool.pixels(rows).reshape(n, *self.size), self.pool.classes(rows)

    def injected(self, n: int, key: PRNGKeyArray, *, held: bool) -> Float[Array, "n *d"]:
        """Inputs of U."""
        if self.other is None:
            return normal(key, (n, *self.size))
        return self.other.pixels(self.other.any((n,), key, held=held)).reshape(n, *self.size)


class Lesson(eqx.Module):
    """What a teacher sees: half of the examples are images with their class, half are inputs of U
    without one, a row of zeros.
    """

    sources: Sources
    kinds: int = eqx.field(static=True)

    def __call__(self, n: int, key: PRNGKeyArray) -> Batch:
        key_original, key_injected = jax.random.split(key)
        labelled = n - n // 2
        x, classes = self.sources.original(labelled, key_original, held=False)
        y = labels_of(classes, self.kinds)
        return Batch(
            jnp.concatenate([x, self.sources.injected(n // 2, key_injected, held=False)]),
            jnp.concatenate([y, jnp.zeros((n // 2, self.kinds), y.dtype)]),
        )


class InjectedTask(Data):
    """A mixture of images and injected inputs, with the teacher's most likely class as the
    label.
    """

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
        """What the teacher says."""
        return labels_of(jnp.argmax(self.teacher(x), axis=1), self.kinds)

    def part(self, n: int, key: PRNGKeyArray, *, injected: bool) -> Batch:
        """Examples of one part to be judged by."""
        x = (
            self.sources.injected(n, key, held=True)
            if injected
            else self.sources.original(n, key, held=True)[0]
        )
        return Batch(x, self.labels(x))

    def _mixture(self, n: int, key: PRNGKeyArray, *, held: bool) -> Batch:
        key_original, key_injected, key_coin = jax.random.split(key, 3)
        original, _ = self.sources.original(n, key_original, held=held)
        injected = self.sources.injected(n, key_injected, held=held)
        coin = bernoulli(key_coin, jnp.broadcast_to(jnp.asarray(self.alpha, jnp.float32), (n,)))
        x = jnp.where(coin.reshape(n, *(1 for _ in self.sources.size)), injected, original)
        return Batch(x, self.labels(x))

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._mixture(n, key, held=False)

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._mixture(n, key, held=True)


class InjectedImages(ImageFamily):
    """Images of `data` and a share `alpha` of inputs that are `injected` ("gaussian", or another
    set), labelled by a teacher.

    `teacher`: how the teacher is trained, on `taught` examples, of which half are injected and have
    no label.
    """

    injected: str = eqx.field(static=True, default=GAUSSIAN, kw_only=True)
    alpha: float = eqx.field(converter=float, default=0.5, kw_only=True)
    teacher: GradientDescent = eqx.field(kw_only=True)
    taught: int = eqx.field(static=True, default=20_000, kw_only=True)
    flat: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        require(0 <= self.alpha <= 1, f"alpha is a share, between 0 and 1, but is {self.alpha}.")
        require(
            self.taught > 1, f"A teacher needs at least two examples, but taught is {self.taught}."
        )

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
        """Images are drawn anew for each example."""
        return None

    def task(self, *, key: PRNGKeyArray) -> InjectedTask:
        require(self.kinds > 2, "A teacher's labels are classes: choose more than two.")
        key_cut, key_other, key_teacher = jax.random.split(key, 3)
        other = None if self._other is None else self._other.catalog.cut(key_other)
        size = (self.dimension,) if self.flat else self.image_shape
        sources = Sources(self.catalog.cut(key_cut), other, size)
        sampler = Sampler(Lesson(sources, self.kinds), self.dimension, None, self.outputs, size)
        trace = self.teacher.fit(sampler, self.taught, key=key_teacher)
        return InjectedTask(sources, trace.at(len(trace.steps) - 1), self.alpha, self.kinds)


class PartAccuracies(Probe):
    """In percent, against the teacher's labels: `original_accuracy` and `injected_accuracy` on
    `test` examples of each part that nobody was trained on, `whole_accuracy` of the mixture; and
    `share_of_largest`: the share of the most frequent label among injected inputs.
    """

    test: int = eqx.field(static=True, default=1000)

    def __call__(
        self, task: Data, trace: Trace, *, found: Mapping[str, Any], key: PRNGKeyArray
    ) -> dict[str, Array]:
        if not isinstance(task, InjectedTask):
            raise BadInput(f"{type(task).__name__} has no injected part.")
        keys = jax.random.split(key)
        original, injected = (
            task.part(self.test, k, injected=which)
            for k, which in zip(keys, (False, True), strict=True)
        )
        shares = jnp.mean(injected.y, axis=0)

        def judged(part: Batch) -> Array:
            result: Array = jax.lax.map(
                lambda score: 100 * jnp.mean(right(score, part.y)), trace.models.scores(part.x)
            )
            return result

        own, other = judged(original), judged(injected)
        return {
            "original_accuracy": own,
            "injected_accuracy": other,
            "whole_accuracy": (1 - task.alpha) * own + task.alpha * other,
            "share_of_largest": jnp.broadcast_to(jnp.max(shares), own.shape),
        }
