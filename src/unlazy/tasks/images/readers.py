"""Readers of image files in their published formats. Errors name the file and the problem.

| format         | files                                                                           |
|----------------|---------------------------------------------------------------------------------|
| idx            | `train-images-idx3-ubyte`, …, plain or `.gz` (MNIST)                            |
| python batches | `cifar-10-batches-py/data_batch_1`, …, or their archive (CIFAR-10)              |
| .mat           | `train_32x32.mat`, `test_32x32.mat` (SVHN)                                      |
| class folders  | one folder of images per class, in `train` and `test` or `val`, or in neither   |
| Tiny ImageNet  | `train/WNID/images`, `val/images` and `val/val_annotations.txt`                 |
| .npz           | `x_train`, `y_train`, `x_test`, `y_test` (or `x_val`, `y_val`), and class names |
"""

from __future__ import annotations

import math
import pickle
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unlazy.core.errors import require
from unlazy.tasks.limits import archived, decompressed, require_within
from unlazy.tasks.reading import reading, unreadable

#: Suffixes of image files.
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm")


class ImageArrays(NamedTuple):
    """Images as bytes, (n, height, width, channels), with class indices.

    If the test part is empty, each seed draws one.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    classes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        where: Path,
        train: tuple[Any, Any],
        test: tuple[Any, Any] | None,
        classes: Sequence[str] | None = None,
    ) -> ImageArrays:
        """Return the arrays after checks of their shapes, types and labels."""
        parts = []
        for part, (x, y) in (("train", train), *((("test", test),) if test is not None else ())):
            x, y = np.asarray(x), np.asarray(y).reshape(-1)
            x = x[..., None] if x.ndim == 3 else x
            require(
                x.ndim == 4 and x.shape[3] in (1, 3),
                f"{where}: images of the {part} part must have shape (n, height, width) or "
                f"(…, 1 or 3), got {x.shape}.",
            )
            require(
                x.dtype == np.uint8,
                f"{where}: images must be integers from 0 to 255 (uint8), got {x.dtype}.",
            )
            require(
                len(x) == len(y),
                f"{where}: the {part} part has {len(x)} images, but {len(y)} labels.",
            )
            require(len(x) > 0, f"{where}: the {part} part is empty.")
            require(y.dtype.kind in "iu", f"{where}: labels must be integers, got {y.dtype}.")
            parts.append((x, y.astype(np.int64)))
        if test is None:
            x, y = parts[0]
            parts.append((x[:0], y[:0]))
        (x_train, y_train), (x_test, y_test) = parts
        require(
            x_train.shape[1:] == x_test.shape[1:],
            f"{where}: training and test images differ in shape: {x_train.shape}, {x_test.shape}.",
        )
        labels = np.concatenate([y_train, y_test])
        names = (
            tuple(map(str, classes))
            if classes is not None
            else tuple(map(str, range(int(labels.max()) + 1)))
        )
        require(
            0 <= labels.min() and labels.max() < len(names),
            f"{where}: labels must lie between 0 and {len(names) - 1}, got {labels.min()} to "
            f"{labels.max()}.",
        )
        return cls(x_train, y_train, x_test, y_test, names)


#: Number of axes of an array of color images.
MAX_AXES = 4


def read_idx(path: Path) -> np.ndarray:
    """Read an idx file: two zeros, the type 8, the number of axes, their lengths, and the bytes."""
    with reading(path, "an idx file"):
        raw = decompressed(path)
    require(
        len(raw) >= 4 and raw[:3] == b"\0\0\x08",
        f"{path} is not an idx file of bytes: it does not begin with 0, 0, 8.",
    )
    axes = raw[3]
    require(
        1 <= axes <= MAX_AXES, f"{path} is not an idx file of images or labels: it has {axes} axes."
    )
    head = 4 + 4 * axes
    require(len(raw) >= head, f"{path} is truncated: it ends within its header of {head} bytes.")
    shape = tuple(np.frombuffer(raw[4:head], ">u4").tolist())
    actual, expected = len(raw) - head, math.prod(shape)
    require(
        actual == expected,
        f"{path} is truncated or too long: shape {shape} needs {expected} bytes, got {actual}.",
    )
    return np.frombuffer(raw, np.uint8, offset=head).reshape(shape)


def read_idx_set(files: Sequence[Path]) -> ImageArrays:
    """Read training images and labels, then test images and labels."""
    arrays = [read_idx(path) for path in files]
    return ImageArrays.of(files[0].parent, (arrays[0], arrays[1]), (arrays[2], arrays[3]))


class _Plain(pickle.Unpickler):
    """Unpickler for batches that can only create arrays, since pickles can run any code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module.split(".")[0], name) in {
            ("numpy", "_reconstruct"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),
        }:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(
            f"it refers to {module}.{name}, which an image batch does not need"
        )


#: Names of the batches of CIFAR-10.
BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")


def read_batches(path: Path) -> ImageArrays:
    """Read the Python batches of CIFAR-10, from their folder or from the archive."""
    found: dict[str, dict[Any, Any]] = {}
    with reading(path, "CIFAR-10 in Python batches"):
        if path.is_dir():
            for name in (*BATCHES, "batches.meta"):
                with (path / name).open("rb") as file:
                    found[name] = _Plain(file, encoding="bytes").load()
        else:
            with tarfile.open(path) as archive:
                total = 0
                for member in archive:
                    total += member.size
                    require_within("UNLAZY_MAX_BYTES", total, str(path))
                    name = Path(member.name).name
                    content = (
                        archive.extractfile(member) if name in (*BATCHES, "batches.meta") else None
                    )
                    if content is not None:
                        found[name] = _Plain(content, encoding="bytes").load()
        missing = [name for name in (*BATCHES, "batches.meta") if name not in found]
        require(not missing, f"{path} does not contain {', '.join(missing)}.")
        pixels = {
            name: np.asarray(found[name][b"data"]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            for name in BATCHES
        }
        labels = {name: np.asarray(found[name][b"labels"]) for name in BATCHES}
        names = [name.decode() for name in found["batches.meta"][b"label_names"]]
    train = BATCHES[:-1]
    return ImageArrays.of(
        path,
        (
            np.concatenate([pixels[name] for name in train]),
            np.concatenate([labels[name] for name in train]),
        ),
        (pixels["test_batch"], labels["test_batch"]),
        names,
    )


def read_mat_set(files: Sequence[Path]) -> ImageArrays:
    """Read the two files of SVHN: pixels as (height, width, channels, n), and labels from 1 to 10.

    The label 10 is the digit 0.
    """
    from scipy.io import loadmat

    parts = []
    for path in files:
        with reading(path, "an SVHN .mat file"):
            content = loadmat(path)
            x, y = np.asarray(content["X"]), np.asarray(content["y"]).reshape(-1).astype(np.int64)
            require(
                x.ndim == 4,
                f"{path}: X must have four axes (height, width, channels, n), got {x.shape}.",
            )
            parts.append((x.transpose(3, 0, 1, 2), np.where(y == 10, 0, y)))
    return ImageArrays.of(files[0], parts[0], parts[1], [str(digit) for digit in range(10)])


def read_npz(path: Path) -> ImageArrays:
    """Read arrays by name."""
    with (
        reading(path, "an .npz file"),
        archived(path).open("rb") as file,
        np.load(file, allow_pickle=False) as content,
    ):
        keys = set(content.files)
        require(
            {"x_train", "y_train"} <= keys,
            f"{path} must contain x_train and y_train, got {', '.join(sorted(keys)) or 'nothing'}.",
        )
        test = next((name for name in ("test", "val") if {f"x_{name}", f"y_{name}"} <= keys), None)
        names = next((content[key] for key in ("classes", "name") if key in keys), None)
        return ImageArrays.of(
            path,
            (content["x_train"], content["y_train"]),
            None if test is None else (content[f"x_{test}"], content[f"y_{test}"]),
            None if names is None else [str(name) for name in names],
        )


def read_class_folders(folder: Path) -> ImageArrays:
    """Read one folder of images per class, in `train` and `test` (or `val`) if present."""
    train = folder / "train" if (folder / "train").is_dir() else folder
    test = next(
        (folder / name for name in ("test", "val") if train != folder and (folder / name).is_dir()),
        None,
    )
    names = _classes(train)
    return ImageArrays.of(
        folder,
        _read_classes(train, names),
        None if test is None else _read_classes(test, names),
        names,
    )


def read_tiny_imagenet(folder: Path) -> ImageArrays:
    """Read the folder of Tiny ImageNet, whose labeled test part is called `val`."""
    names = _classes(folder / "train")
    listed = folder / "val" / "val_annotations.txt"
    with reading(listed, "the labels of Tiny ImageNet"):
        rows = [
            line.split("\t")[:2] for line in listed.read_text(encoding="utf-8").splitlines() if line
        ]
        unknown = sorted({name for _, name in rows} - set(names))
        require(
            not unknown,
            f"{listed} names classes without a folder in {folder / 'train'}: "
            f"{', '.join(unknown[:3])}.",
        )
    val = (
        _pixels([folder / "val" / "images" / file for file, _ in rows]),
        np.array([names.index(name) for _, name in rows]),
    )
    return ImageArrays.of(folder, _read_classes(folder / "train", names), val, names)


def class_folders(folder: Path) -> list[Path]:
    """Return the folders in a folder, by name."""
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def _classes(folder: Path) -> list[str]:
    names = [path.name for path in class_folders(folder)] if folder.is_dir() else []
    require(
        len(names) > 1,
        f"{folder} must contain one folder of images for each of at least two classes, got "
        f"{len(names)}.",
    )
    return names


def _read_classes(folder: Path, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    files, labels = [], []
    for label, name in enumerate(names):
        inner = folder / name / "images" if (folder / name / "images").is_dir() else folder / name
        found = (
            sorted(path for path in inner.glob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
            if inner.is_dir()
            else []
        )
        require(bool(found), f"{inner} contains no images ({', '.join(IMAGE_SUFFIXES)}).")
        files += found
        labels += [label] * len(found)
    return _pixels(files), np.array(labels)


def _pixels(files: Sequence[Path]) -> np.ndarray:
    """Read images of one size, in color if one of them is."""
    from PIL import Image, UnidentifiedImageError

    images: list[np.ndarray] = []
    total = 0
    for path in files:
        try:
            with Image.open(path) as image:
                total += math.prod(image.size)
                require_within("UNLAZY_MAX_PIXELS", total, str(path.parent))
                images.append(
                    np.asarray(image.convert("L" if image.mode in ("1", "L", "I;16") else "RGB"))
                )
        except (UnidentifiedImageError, OSError, SyntaxError) as error:
            raise unreadable(path, "an image", error) from error
        require(
            images[-1].shape[:2] == images[0].shape[:2],
            f"{path} has {images[-1].shape[:2]} pixels, but {files[0]} has "
            f"{images[0].shape[:2]}: all images must have the same size.",
        )
    if any(image.ndim == 3 for image in images):
        images = [
            image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
            for image in images
        ]
    return np.stack(images)
