"""Small image files in every published format, for tests."""

import gzip
import pickle
import tarfile
from io import BytesIO

import numpy as np
from PIL import Image
from scipy.io import savemat


def pixels(n, shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


def digits(n):
    return np.arange(n) % 10


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(
        int(length).to_bytes(4, "big") for length in array.shape
    )
    return head + array.astype(np.uint8).tobytes()


def write_mnist(folder, *, zipped=True, n=40, tests=20):
    parts = {
        "train-images-idx3-ubyte": pixels(n, (28, 28)),
        "train-labels-idx1-ubyte": digits(n),
        "t10k-images-idx3-ubyte": pixels(tests, (28, 28), 1),
        "t10k-labels-idx1-ubyte": digits(tests),
    }
    for name, array in parts.items():
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (folder / name).write_bytes(idx(array))
    return parts


def write_cifar(folder, *, archive=False):
    batches = {
        f"data_batch_{number}": (pixels(20, (3072,), number), digits(20)) for number in range(1, 6)
    }
    batches["test_batch"] = (pixels(10, (3072,), 9), digits(10))
    content = {
        name: pickle.dumps({b"data": x, b"labels": y.tolist()}, protocol=2)
        for name, (x, y) in batches.items()
    }
    content["batches.meta"] = pickle.dumps(
        {b"label_names": [f"kind{place}".encode() for place in range(10)]}, protocol=2
    )
    inner = folder / "cifar-10-batches-py"
    if archive:
        with tarfile.open(folder / "cifar-10-python.tar.gz", "w:gz") as tar:
            for name, raw in content.items():
                member = tarfile.TarInfo(f"{inner.name}/{name}")
                member.size = len(raw)
                tar.addfile(member, BytesIO(raw))
    else:
        inner.mkdir()
        for name, raw in content.items():
            (inner / name).write_bytes(raw)
    return batches


def write_svhn(folder, n=40, tests=20):
    for name, count, seed in (("train", n, 0), ("test", tests, 1)):
        x = pixels(count, (32, 32, 3), seed).transpose(1, 2, 3, 0)
        y = np.where(digits(count) == 0, 10, digits(count))[:, None]
        savemat(folder / f"{name}_32x32.mat", {"X": x, "y": y.astype(np.uint8)})


def write_images(folder, names=("cat", "dog"), n=6, shape=(8, 8, 3), inner=""):
    for place, name in enumerate(names):
        where = folder / name / inner
        where.mkdir(parents=True)
        for index, image in enumerate(pixels(n, shape, place)):
            Image.fromarray(image.squeeze()).save(where / f"{index}.png")
