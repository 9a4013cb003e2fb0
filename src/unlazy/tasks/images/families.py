"""Families of image tasks: classes of a dataset, stacked digits, and patches.

An image dataset has no known ground truth. It is read if a task is drawn and shared by all trials.
The seed selects the training examples and, if the dataset has no test part, the held-out ones.
Pixels are divided by 255 and standardized per channel with the mean and standard deviation over all
training images.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from unlazy.core.errors import require, unknown
from unlazy.core.metrics import SIGNS, Outputs
from unlazy.core.naming import ContentHashed
from unlazy.core.random import shuffled
from unlazy.tasks.base import Batch, Data, Family
from unlazy.tasks.images.library import SETS, digest_of, missing, pictures_of

#: Fraction of a dataset without a test part that is held out for testing.
TEST_FRACTION = 0.2


class ImagePool(eqx.Module):
    """Images as bytes with their classes, and the indices of training and test images.

    The arrays are NumPy's: programs take them as inputs shared by all trials.
    """

    images: np.ndarray  # N h w c
    labels: np.ndarray  # N
    mean: np.ndarray  # c
    spread: np.ndarray  # c
    train: Int[Array, " t"]
    held: Int[Array, " s"]

    def pixels(self, rows: Int[Array, "..."]) -> Float[Array, "... h w c"]:
        """Return standardized images by index."""
        return self.standardized(jnp.asarray(self.images)[rows])

    def standardized(self, images: Any) -> Float[Array, "..."]:
        """Return bytes as standardized numbers."""
        number = jnp.result_type(float)
        channels = (1,) * (images.ndim - 1) + (-1,)
        mean, spread = (
            jnp.asarray(part).astype(number).reshape(channels) for part in (self.mean, self.spread)
        )
        result: Array = (images.astype(number) / 255 - mean) / spread
        return result

    def classes(self, rows: Int[Array, "..."]) -> Int[Array, "..."]:
        """Return classes by image index."""
        return jnp.asarray(self.labels)[rows]

    def some(self, n: int, key: PRNGKeyArray, *, held: bool = False) -> Int[Array, " n"]:
        """Draw indices of n distinct training images, or of at most n test images."""
        rows = self.held if held else self.train
        count = min(n, len(rows)) if held else n
        require(
            count <= len(rows),
            f"There are {len(rows)} training images, but {n} were requested.",
        )
        return rows[shuffled(key, len(rows))[:count]]

    def any(
        self, shape: tuple[int, ...], key: PRNGKeyArray, *, held: bool = False
    ) -> Int[Array, "..."]:
        """Draw image indices independently."""
        rows = self.held if held else self.train
        return rows[jax.random.randint(key, shape, 0, len(rows))]


class _Images(eqx.Module):
    """Arrays of a pool before the split."""

    images: np.ndarray
    labels: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    tested: int = eqx.field(static=True)

    def cut(self, key: PRNGKeyArray) -> ImagePool:
        """Return a split with the dataset's own test part, or a random one.

        The order of the training images is random in either case.
        """
        total, tested = (
            len(self.labels),
            self.tested or max(1, round(TEST_FRACTION * len(self.labels))),
        )
        if self.tested:
            train = shuffled(key, total - tested)
            held = jnp.arange(total - tested, total)
        else:
            order = shuffled(key, total)
            train, held = order[tested:], order[:tested]
        return ImagePool(self.images, self.labels, self.mean, self.spread, train, held)


@functools.lru_cache(maxsize=16)
def _catalog(
    data: str, digest: str, chosen: tuple[int, ...], side: int | None, balanced: bool
) -> _Images:
    """Return images of the chosen classes, renumbered by their position in the choice.

    They are balanced and downsampled if requested.
    """
    data_arrays = pictures_of(data)
    index = np.full(len(data_arrays.classes), -1)
    index[list(chosen)] = np.arange(len(chosen))
    whole = chosen == tuple(range(len(data_arrays.classes)))
    parts = []
    for x, y in (
        (data_arrays.x_train, data_arrays.y_train),
        (data_arrays.x_test, data_arrays.y_test),
    ):
        new = index[y]
        kept = _even(new, len(chosen)) if balanced else new >= 0
        x = x if whole and not balanced else x[kept]
        parts.append((x if side is None else _smaller(x, side, data), new[kept].astype(np.int32)))
    (x_train, y_train), (x_test, y_test) = parts
    require(len(y_train) > 0, f"{data}: there are no training images of these classes.")
    counts = np.stack(
        [
            np.bincount(x_train[..., channel].ravel(), minlength=256)
            for channel in range(x_train.shape[3])
        ]
    )
    frequency, levels = counts / counts.sum(axis=1, keepdims=True), np.arange(256) / 255
    mean = frequency @ levels
    spread = np.sqrt(np.maximum(frequency @ levels**2 - mean**2, 1e-12))
    return _Images(
        np.concatenate([x_train, x_test]),
        np.concatenate([y_train, y_test]),
        mean.astype(np.float32),
        spread.astype(np.float32),
        len(y_test),
    )


def _even(classes: np.ndarray, count: int) -> np.ndarray:
    """Return the first images of each class, as many as the smallest class has."""
    size = np.bincount(classes[classes >= 0], minlength=count).min() if len(classes) else 0
    return np.sort(np.concatenate([np.flatnonzero(classes == k)[:size] for k in range(count)]))


def _smaller(x: np.ndarray, side: int, data: str) -> np.ndarray:
    """Downsample images by means over square blocks of pixels."""
    n, height, width, channels = x.shape
    fits = height == width and height % side == 0
    require(
        fits, f"{data}: images of {height} × {width} pixels cannot be averaged to {side} × {side}."
    )
    block = height // side
    result: np.ndarray = np.round(
        x.reshape(n, side, block, side, block, channels).mean(axis=(2, 4))
    ).astype(np.uint8)
    return result


class ImageFamily(Family, ContentHashed):
    """Base class; `data` is the name of a dataset, or the path of a folder or .npz file.

    `chosen`: names or indices of the classes used, by default all. `side`: images are averaged to
    side × side pixels. `balanced`: each class is reduced to the size of the smallest, for training
    and test.
    """

    data: str = eqx.field(static=True)
    chosen: tuple[str | int, ...] | None = eqx.field(static=True, default=None, kw_only=True)
    side: int | None = eqx.field(static=True, default=None, kw_only=True)
    balanced: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        require(
            self.chosen is None or len(set(self.chosen)) > 1,
            f"chosen must contain at least two classes, got {self.chosen}.",
        )
        require(self.side is None or self.side > 0, f"side must be positive, got {self.side}.")

    @property
    def digest(self) -> str:
        return digest_of(self.data)

    @property
    def missing(self) -> str | None:
        return missing(self.data)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image, known without files for named datasets."""
        known = SETS[self.data].shape if self.data in SETS else None
        height, width, channels = known or pictures_of(self.data).x_train.shape[1:]
        return (self.side or height, self.side or width, channels)

    @property
    def kinds(self) -> int:
        """Number of classes."""
        if self.chosen is not None:
            return len(self.chosen)
        known = self.data in SETS and self.missing is not None
        return SETS[self.data].classes if known else len(pictures_of(self.data).classes)

    @property
    def _numbers(self) -> tuple[int, ...]:
        names = pictures_of(self.data).classes
        if self.chosen is None:
            return tuple(range(len(names)))
        for choice in self.chosen:
            if choice not in names and choice not in range(len(names)):
                raise unknown(f"class of {self.data}", str(choice), names)
        return tuple(
            choice if isinstance(choice, int) else names.index(choice) for choice in self.chosen
        )

    @property
    def catalog(self) -> _Images:
        """The images on the host."""
        return _catalog(self.data, self.digest, self._numbers, self.side, self.balanced)

    @property
    def most_examples(self) -> int | None:
        if self.missing is not None:
            return None
        total = len(self.catalog.labels)
        return total - (self.catalog.tested or max(1, round(TEST_FRACTION * total)))

    @abstractmethod
    def task(self, *, key: PRNGKeyArray) -> Data:
        """Draw a split of the dataset."""


class LabeledImages(Data):
    """Images with their classes: signs for two classes (the first is −1), otherwise one-hot."""

    pool: ImagePool
    size: tuple[int, ...] = eqx.field(static=True)
    count: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.count)

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._batch(self.pool.some(n, key))

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._batch(self.pool.some(n, key, held=True))

    def _batch(self, rows: Int[Array, " n"]) -> Batch:
        return Batch(
            self.pool.pixels(rows).reshape(len(rows), *self.size),
            labels_of(self.pool.classes(rows), self.count),
        )


def outputs_of(count: int) -> Outputs:
    """Return signs for two classes, one-hot rows for more."""
    return SIGNS if count == 2 else Outputs("classes", count)


def labels_of(classes: Int[Array, " n"], count: int) -> Float[Array, "..."]:
    """Return class indices as labels of such outputs."""
    number = jnp.result_type(float)
    return (
        2 * classes.astype(number) - 1
        if count == 2
        else jax.nn.one_hot(classes, count, dtype=number)
    )


class ImageClasses(ImageFamily):
    """Classification of images; with `flat`, images are returned as vectors."""

    flat: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def dimension(self) -> int:
        height, width, channels = self.image_shape
        return height * width * channels

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.kinds)

    def task(self, *, key: PRNGKeyArray) -> LabeledImages:
        size = (self.dimension,) if self.flat else self.image_shape
        return LabeledImages(self.catalog.cut(key), size, self.kinds)


class StackedTask(Data):
    """k stacked images; the label is +1 if the sum of their classes is even, otherwise −1."""

    pool: ImagePool
    size: tuple[int, ...] = eqx.field(static=True)
    k: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._batch(self.pool.any((n, self.k), key))

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._batch(self.pool.any((n, self.k), key, held=True))

    def _batch(self, rows: Int[Array, "n k"]) -> Batch:
        odd = jnp.sum(self.pool.classes(rows), axis=1) % 2
        return Batch(
            self.pool.pixels(rows).reshape(len(rows), *self.size),
            1 - 2 * odd.astype(jnp.result_type(float)),
        )


class StackedDigits(ImageFamily):
    """Parity of the sum of k independent digits, stacked: a parity whose bits are images."""

    k: int = eqx.field(static=True, default=2, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.k, int) and self.k > 0,
            f"k must be a positive integer, got {self.k!r}.",
        )

    @property
    def dimension(self) -> int:
        height, width, channels = self.image_shape
        return self.k * height * width * channels

    @property
    def most_examples(self) -> int | None:
        """None, since images are combined at random for each example."""
        return None

    def task(self, *, key: PRNGKeyArray) -> StackedTask:
        height, width, channels = self.image_shape
        return StackedTask(self.catalog.cut(key), (self.k * height, width, channels), self.k)


class PatchTask(Data):
    """One random square patch of each image, with the image's class, as a vector."""

    pool: ImagePool
    k: int = eqx.field(static=True)
    count: int = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return int(self.k**2 * self.pool.images.shape[3])

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.count)

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._batch(n, key, held=False)

    def test(self, n: int, key: PRNGKeyArray) -> Batch:
        return self._batch(n, key, held=True)

    def _batch(self, n: int, key: PRNGKeyArray, *, held: bool) -> Batch:
        """Return images in random order, repeated with other patches if n is too large."""
        key_rows, key_top, key_left = jax.random.split(key, 3)
        total = len(self.pool.held if held else self.pool.train)
        rows = jnp.concatenate(
            [
                self.pool.some(min(n, total), jax.random.fold_in(key_rows, turn), held=held)
                for turn in range(-(-n // total))
            ]
        )[:n]
        _, height, width, _ = self.pool.images.shape
        tops = jax.random.randint(key_top, (n,), 0, height - self.k + 1)
        lefts = jax.random.randint(key_left, (n,), 0, width - self.k + 1)
        inside = jnp.arange(self.k)[None, :]
        images = jnp.asarray(self.pool.images)
        patches = images[
            rows[:, None, None],
            (tops[:, None] + inside)[:, :, None],
            (lefts[:, None] + inside)[:, None, :],
        ]  # n k k c
        return Batch(
            self.pool.standardized(patches).reshape(n, -1),
            labels_of(self.pool.classes(rows), self.count),
        )


class ImagePatches(ImageFamily):
    """Classification of images from one random k × k patch.

    An image may be repeated with another patch, so more examples than images can be drawn.
    """

    k: int = eqx.field(static=True, default=3, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.k, int) and self.k > 0,
            f"k must be a positive integer, got {self.k!r}.",
        )
        height, width, _ = self.image_shape
        require(
            self.k <= min(height, width),
            f"A patch of {self.k} × {self.k} pixels does not fit into {height} × {width} images.",
        )

    @property
    def dimension(self) -> int:
        return self.k**2 * self.image_shape[2]

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.kinds)

    @property
    def most_examples(self) -> int | None:
        return None

    def task(self, *, key: PRNGKeyArray) -> PatchTask:
        return PatchTask(self.catalog.cut(key), self.k, self.kinds)
