"""Families whose examples are images: classes of a set, stacked digits, and patches.

A set of images is data without a secret. It is read when a task is drawn, shared by all trials, and
cut by the seed: which examples a learner meets, and where a set has no test part of its own, which
are held back for it. Pixels are divided by 255 and standardised channel by channel with the mean
and the standard deviation over all images to train on.
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

#: The share of a set without a test part that is held back for the test.
HELD_BACK = 0.2


class ImagePool(eqx.Module):
    """Images as bytes and their classes, shared by all trials, and the numbers of those to learn
    from and of those to be judged by.

    NumPy's arrays: programs take them as inputs that are the same for all trials.
    """

    images: np.ndarray  # N h w c
    labels: np.ndarray  # N
    mean: np.ndarray  # c
    spread: np.ndarray  # c
    train: Int[Array, " t"]
    held: Int[Array, " s"]

    def pixels(self, rows: Int[Array, "..."]) -> Float[Array, "... h w c"]:
        """Standardised images by their numbers."""
        return self.standardised(jnp.asarray(self.images)[rows])

    def standardised(self, images: Any) -> Float[Array, "..."]:
        """Bytes as standardised numbers."""
        number = jnp.result_type(float)
        channels = (1,) * (images.ndim - 1) + (-1,)
        mean, spread = (
            jnp.asarray(part).astype(number).reshape(channels) for part in (self.mean, self.spread)
        )
        result: Array = (images.astype(number) / 255 - mean) / spread
        return result

    def classes(self, rows: Int[Array, "..."]) -> Int[Array, "..."]:
        """Classes by numbers of images."""
        return jnp.asarray(self.labels)[rows]

    def some(self, n: int, key: PRNGKeyArray, *, held: bool = False) -> Int[Array, " n"]:
        """The numbers of n images to learn from, none of them twice; of those to be judged by, at
        most as many as there are.
        """
        rows = self.held if held else self.train
        count = min(n, len(rows)) if held else n
        require(
            count <= len(rows),
            f"There are {len(rows)} images to learn from, but {n} were asked for.",
        )
        return rows[shuffled(key, len(rows))[:count]]

    def any(
        self, shape: tuple[int, ...], key: PRNGKeyArray, *, held: bool = False
    ) -> Int[Array, "..."]:
        """Numbers of images drawn independently."""
        rows = self.held if held else self.train
        return rows[jax.random.randint(key, shape, 0, len(rows))]


class _Shelf(eqx.Module):
    """The arrays of a pool before it is cut."""

    images: np.ndarray
    labels: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    tested: int = eqx.field(static=True)

    def cut(self, key: PRNGKeyArray) -> ImagePool:
        """The set's own test part, or one that the key draws; the order of the images to learn from
        is drawn in either case.
        """
        total, tested = len(self.labels), self.tested or max(1, round(HELD_BACK * len(self.labels)))
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
) -> _Shelf:
    """Images of some classes, renumbered by their place in the choice; as many of each, and in a
    smaller size, if that is asked for.
    """
    found = pictures_of(data)
    places = np.full(len(found.classes), -1)
    places[list(chosen)] = np.arange(len(chosen))
    whole = chosen == tuple(range(len(found.classes)))
    parts = []
    for x, y in ((found.x_train, found.y_train), (found.x_test, found.y_test)):
        new = places[y]
        kept = _even(new, len(chosen)) if balanced else new >= 0
        x = x if whole and not balanced else x[kept]
        parts.append((x if side is None else _smaller(x, side, data), new[kept].astype(np.int32)))
    (x_train, y_train), (x_test, y_test) = parts
    require(len(y_train) > 0, f"{data}: there are no images of these classes to learn from.")
    counts = np.stack(
        [
            np.bincount(x_train[..., channel].ravel(), minlength=256)
            for channel in range(x_train.shape[3])
        ]
    )
    share, levels = counts / counts.sum(axis=1, keepdims=True), np.arange(256) / 255
    mean = share @ levels
    spread = np.sqrt(np.maximum(share @ levels**2 - mean**2, 1e-12))
    return _Shelf(
        np.concatenate([x_train, x_test]),
        np.concatenate([y_train, y_test]),
        mean.astype(np.float32),
        spread.astype(np.float32),
        len(y_test),
    )


def _even(classes: np.ndarray, count: int) -> np.ndarray:
    """Of each class the first images, as many as the scarcest has."""
    least = np.bincount(classes[classes >= 0], minlength=count).min() if len(classes) else 0
    return np.sort(
        np.concatenate([np.flatnonzero(classes == place)[:least] for place in range(count)])
    )


def _smaller(x: np.ndarray, side: int, data: str) -> np.ndarray:
    """Means over squares of pixels."""
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
    """Base: `data` is the name of a set, or the path of a folder or an .npz file of the user's own.

    `chosen`: names or numbers of the classes that are taken, by default all. `side`: images are
    averaged to side × side pixels. `balanced`: of each class as many as of the scarcest, to learn
    from and to be judged by.
    """

    data: str = eqx.field(static=True)
    chosen: tuple[str | int, ...] | None = eqx.field(static=True, default=None, kw_only=True)
    side: int | None = eqx.field(static=True, default=None, kw_only=True)
    balanced: bool = eqx.field(static=True, default=False, kw_only=True)

    def __check_init__(self) -> None:
        require(
            self.chosen is None or len(set(self.chosen)) > 1,
            f"At least two classes must be chosen, but chosen is {self.chosen}.",
        )
        require(self.side is None or self.side > 0, f"side must be positive, got {self.side}.")

    @property
    def digest(self) -> str:
        return digest_of(self.data)

    @property
    def missing(self) -> str | None:
        return missing(self.data)

    @property
    def picture(self) -> tuple[int, int, int]:
        """Height, width and channels of an image; of a set with a name this is known without its
        files.
        """
        known = SETS[self.data].shape if self.data in SETS else None
        height, width, channels = known or pictures_of(self.data).x_train.shape[1:]
        return (self.side or height, self.side or width, channels)

    @property
    def kinds(self) -> int:
        """How many classes there are."""
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
    def catalog(self) -> _Shelf:
        """The images on the host."""
        return _catalog(self.data, self.digest, self._numbers, self.side, self.balanced)

    @property
    def most_examples(self) -> int | None:
        if self.missing is not None:
            return None
        total = len(self.catalog.labels)
        return total - (self.catalog.tested or max(1, round(HELD_BACK * total)))

    @abstractmethod
    def task(self, *, key: PRNGKeyArray) -> Data:
        """Cut the set."""


class LabeledImages(Data):
    """Images with their classes: signs where there are two (the first is −1), one-hot rows where
    there are more.
    """

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
    """Signs for two classes, one-hot rows for more."""
    return SIGNS if count == 2 else Outputs("classes", count)


def labels_of(classes: Int[Array, " n"], count: int) -> Float[Array, "..."]:
    """Classes by numbers as labels of such outputs."""
    number = jnp.result_type(float)
    return (
        2 * classes.astype(number) - 1
        if count == 2
        else jax.nn.one_hot(classes, count, dtype=number)
    )


class ImageClasses(ImageFamily):
    """Which class an image is of. `flat`: images are handed out as vectors."""

    flat: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def dimension(self) -> int:
        height, width, channels = self.picture
        return height * width * channels

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.kinds)

    def task(self, *, key: PRNGKeyArray) -> LabeledImages:
        size = (self.dimension,) if self.flat else self.picture
        return LabeledImages(self.catalog.cut(key), size, self.kinds)


class StackedTask(Data):
    """k images one above the other; the label is +1 where the sum of their classes is even, else
    −1.
    """

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
    """The parity of the sum of k digits, drawn independently and stacked: a parity whose bits are
    pictures.
    """

    k: int = eqx.field(static=True, default=2, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.k, int) and self.k > 0,
            f"k must be a positive number of digits, got {self.k!r}.",
        )

    @property
    def dimension(self) -> int:
        height, width, channels = self.picture
        return self.k * height * width * channels

    @property
    def most_examples(self) -> int | None:
        """Pictures are combined anew for each example."""
        return None

    def task(self, *, key: PRNGKeyArray) -> StackedTask:
        height, width, channels = self.picture
        return StackedTask(self.catalog.cut(key), (self.k * height, width, channels), self.k)


class PatchTask(Data):
    """One random square of pixels of each image, with the image's class, as a vector."""

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
        """Images in random order, repeated if n is more than there are, with other patches."""
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
            self.pool.standardised(patches).reshape(n, -1),
            labels_of(self.pool.classes(rows), self.count),
        )


class ImagePatches(ImageFamily):
    """Which class an image is of, seen through one random k × k patch of it.

    An epoch may show an image again with another patch: more examples than images can be drawn.
    """

    k: int = eqx.field(static=True, default=3, kw_only=True)

    def __check_init__(self) -> None:
        require(
            isinstance(self.k, int) and self.k > 0,
            f"k must be a positive number of pixels, got {self.k!r}.",
        )
        height, width, _ = self.picture
        require(
            self.k <= min(height, width),
            f"A patch of {self.k} pixels does not fit into images of {height} × {width}.",
        )

    @property
    def dimension(self) -> int:
        return self.k**2 * self.picture[2]

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.kinds)

    @property
    def most_examples(self) -> int | None:
        return None

    def task(self, *, key: PRNGKeyArray) -> PatchTask:
        return PatchTask(self.catalog.cut(key), self.k, self.kinds)
