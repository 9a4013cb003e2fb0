"""Named image datasets: where their files are found and how they are cached.

A dataset is searched in the folder given by `--data` or `$UNLAZY_DATA`, then in the user's data
folder, where `unlazy data fetch` puts it. Images are cached as NumPy arrays in the user's cache
folder and memory-mapped, so that a run reads only what it uses.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs

from unlazy.core.errors import BadInput
from unlazy.tasks.images.readers import (
    IMAGE_SUFFIXES,
    ImageArrays,
    read_batches,
    read_class_folders,
    read_idx_set,
    read_mat_set,
    read_npz,
    read_tiny_imagenet,
)

#: Environment variable with the data folder.
VARIABLE = "UNLAZY_DATA"


class FoundFiles(NamedTuple):
    """Files of a dataset and the function that reads them."""

    read: Callable[[], ImageArrays]
    files: tuple[Path, ...]

    @property
    def signature(self) -> str:
        """Hash of the paths, sizes and modification times of the files."""
        known = _signatures.get(self.files)
        begin = time.monotonic()
        if known is not None and begin < known[1]:
            return known[0]
        facts = [fact for path in self.files for fact in _facts(path)]
        found = hashlib.sha256(repr(facts).encode()).hexdigest()[:24]
        if len(facts) > MANY_FILES:
            _signatures[self.files] = (found, begin + VALID * (time.monotonic() - begin))
        return found


#: For more than `MANY_FILES` files the signature is reused for `VALID` times its computing time,
#: since trials need it often and a dataset may have a hundred thousand files.
MANY_FILES, VALID = 1000, 20
_signatures: dict[tuple[Path, ...], tuple[str, float]] = {}


def _facts(path: Path) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield path, size, times and inode of a file, or of all files in a folder in order.

    The time of the last status change (ctime) reveals files that were overwritten in place, even if
    a tool restores the modification time.
    """
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            yield from _facts(inner)
        return
    stat = path.stat()
    yield str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


class Download(NamedTuple):
    """Public file: its URL, its checksum as `algorithm:digits`, and its size in bytes."""

    url: str
    checksum: str
    size: int

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


class ImageSet(NamedTuple):
    """Named dataset: title, image shape, number of classes, finder, and public files."""

    title: str
    shape: tuple[int, int, int]
    classes: int
    find: Callable[[Path], FoundFiles | None]
    downloads: tuple[Download, ...]


def _npz(folder: Path, *names: str) -> FoundFiles | None:
    path = next((folder / name for name in names if (folder / name).is_file()), None)
    return None if path is None else FoundFiles(functools.partial(read_npz, path), (path,))


_IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def _mnist(folder: Path) -> FoundFiles | None:
    for place in (folder, folder / "mnist", folder / "MNIST" / "raw"):
        for ending in ("", ".gz"):
            files = tuple(place / f"{name}{ending}" for name in _IDX)
            if all(path.is_file() for path in files):
                return FoundFiles(functools.partial(read_idx_set, files), files)
    return _npz(folder, "mnist.npz")


def _cifar10(folder: Path) -> FoundFiles | None:
    for path in (
        folder / "cifar-10-batches-py",
        folder / "cifar10" / "cifar-10-batches-py",
        folder / "cifar-10-python.tar.gz",
    ):
        if path.exists():
            files = tuple(sorted(path.iterdir())) if path.is_dir() else (path,)
            return FoundFiles(functools.partial(read_batches, path), files)
    return _npz(folder, "cifar10.npz", "cifar10_subset.npz")


def _svhn(folder: Path) -> FoundFiles | None:
    for place in (folder, folder / "svhn"):
        files = (place / "train_32x32.mat", place / "test_32x32.mat")
        if all(path.is_file() for path in files):
            return FoundFiles(functools.partial(read_mat_set, files), files)
    return _npz(folder, "svhn.npz")


def _tiny(folder: Path) -> FoundFiles | None:
    path = folder / "tiny-imagenet-200"
    if (path / "val" / "val_annotations.txt").is_file():
        return FoundFiles(functools.partial(read_tiny_imagenet, path), (path,))
    return _npz(folder, "tinyimagenet.npz", "tinyimagenet10_64.npz")


_MNIST, _SVHN = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "http://ufldl.stanford.edu/housenumbers/",
)
SETS = {
    "mnist": ImageSet(
        "MNIST, handwritten digits",
        (28, 28, 1),
        10,
        _mnist,
        (
            Download(f"{_MNIST}{_IDX[0]}.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            Download(f"{_MNIST}{_IDX[1]}.gz", "md5:d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            Download(f"{_MNIST}{_IDX[2]}.gz", "md5:9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            Download(f"{_MNIST}{_IDX[3]}.gz", "md5:ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        ),
    ),
    "cifar10": ImageSet(
        "CIFAR-10, small photographs",
        (32, 32, 3),
        10,
        _cifar10,
        (
            Download(
                "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                "md5:c58f30108f718f92721af3b95e74349a",
                170_498_071,
            ),
        ),
    ),
    "svhn": ImageSet(
        "SVHN, house numbers",
        (32, 32, 3),
        10,
        _svhn,
        (
            Download(
                f"{_SVHN}train_32x32.mat", "md5:e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794
            ),
            Download(f"{_SVHN}test_32x32.mat", "md5:eb5a983be6a315427106f1b164d9cef3", 64_275_384),
        ),
    ),
    "tinyimagenet": ImageSet(
        "Tiny ImageNet, photographs of 200 classes",
        (64, 64, 3),
        200,
        _tiny,
        (
            Download(
                "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "md5:90528d7ca1a48142e341f4ef8d21d0de",
                248_100_043,
            ),
        ),
    ),
}


def own_folder() -> Path:
    """Return the folder of downloaded data."""
    return Path(platformdirs.user_data_dir("unlazy")) / "images"


def data_folders() -> tuple[Path, ...]:
    """Return the folders in which datasets are searched, in this order."""
    named = os.environ.get(VARIABLE)
    return ((Path(named).expanduser(),) if named else ()) + (own_folder(),)


def locate(name: str) -> FoundFiles | None:
    """Return the files of a dataset by name, or by the path of the user's own.

    The path is a folder of class folders or an .npz file.
    """
    if name in SETS:
        return next(
            (found for folder in data_folders() if (found := SETS[name].find(folder)) is not None),
            None,
        )
    path = Path(name).expanduser()
    if path.suffix == ".npz" and path.is_file():
        return FoundFiles(functools.partial(read_npz, path), (path,))
    return (
        FoundFiles(functools.partial(read_class_folders, path), (path,)) if path.is_dir() else None
    )


def missing(name: str) -> str | None:
    """Return a message on how to get a missing dataset, or None if it is available."""
    if locate(name) is not None:
        return None
    if name not in SETS:
        return (
            f"There is no image dataset at {name!r}. Give a folder of class folders with images "
            f"({', '.join(IMAGE_SUFFIXES[:3])}, …), an .npz file, or one of {', '.join(SETS)}."
        )
    title = SETS[name].title.partition(",")[0]
    return (
        f"{title} is missing. Download it with 'unlazy data fetch {name}', or pass its folder with "
        f"--data or ${VARIABLE}."
    )


def pictures_of(name: str) -> ImageArrays:
    """Return the images of a dataset, memory-mapped."""
    found = locate(name)
    if found is None:
        raise BadInput(f"{missing(name)} Searched {' and '.join(map(str, data_folders()))}.")
    return _kept(found.signature, found).arrays


def digest_of(name: str) -> str:
    """Return a hash of the content: the same images in another file format have the same hash."""
    found = locate(name)
    return "absent" if found is None else _kept(found.signature, found).digest


class Held(NamedTuple):
    """Images and the hash of their content."""

    arrays: ImageArrays
    digest: str


#: Datasets read by this process, by signature. They are memory-mapped, so none need be evicted.
_held: dict[str, Held] = {}


def _kept(signature: str, found: FoundFiles) -> Held:
    """Return the content of the files, read once per process and cached across processes."""
    if signature not in _held:
        _held[signature] = _from_cache(signature) or _into_cache(signature, found.read())
    return _held[signature]


_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def _cache_folder() -> Path:
    return Path(platformdirs.user_cache_dir("unlazy")) / "images"


def _from_cache(signature: str) -> Held | None:
    folder = _cache_folder() / signature
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        # Plain arrays that share the mapped memory.
        x_train, y_train, x_test, y_test = (
            np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in _ARRAYS
        )
    except (OSError, ValueError):
        return None
    return Held(
        ImageArrays(x_train, y_train, x_test, y_test, tuple(about["classes"])), about["identity"]
    )


def _into_cache(signature: str, arrays: ImageArrays) -> Held:
    """Write images to the cache, atomically; if it is not writable, they stay in memory."""
    held = Held(arrays, _digest(arrays))
    try:
        _cache_folder().mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=_cache_folder(), prefix=".draft-"))
    except OSError:
        return held
    try:
        for name in _ARRAYS:
            np.save(draft / f"{name}.npy", getattr(arrays, name))
        about = {"classes": list(arrays.classes), "identity": held.digest}
        (draft / "about.json").write_text(json.dumps(about), encoding="utf-8")
        draft.rename(_cache_folder() / signature)
    except OSError:  # disk full, or another process was faster
        pass
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return _from_cache(signature) or held


def _digest(arrays: ImageArrays) -> str:
    whole = hashlib.sha256(repr(arrays.classes).encode())
    for name in _ARRAYS:
        array: Any = np.ascontiguousarray(getattr(arrays, name))
        whole.update(repr((array.shape, array.dtype.str)).encode())
        whole.update(array.data)
    return whole.hexdigest()[:16]
