"""Image datasets in every format: reading, errors, caching and downloads."""

import gzip
import hashlib
import http.server
import pickle
import threading

import numpy as np
import pytest

from image_files import digits, idx, pixels, write_cifar, write_images, write_mnist, write_svhn
from unlazy.core.errors import BadInput
from unlazy.tasks.images import fetching, library
from unlazy.tasks.images.library import Download, digest_of, locate, missing, pictures_of


def test_idx_files_are_read_plain_and_compressed(folder, tmp_path):
    parts = write_mnist(folder)
    found = pictures_of("mnist")
    np.testing.assert_array_equal(found.x_train[..., 0], parts["train-images-idx3-ubyte"])
    np.testing.assert_array_equal(found.y_test, parts["t10k-labels-idx1-ubyte"])
    assert found.x_train.shape == (40, 28, 28, 1) and found.classes == tuple("0123456789")
    packed = digest_of("mnist")
    for path in folder.iterdir():
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert digest_of("mnist") == packed, "the same images in another form are the same set"


@pytest.mark.parametrize("archive", [False, True])
def test_python_batches_are_read_from_folder_and_archive(folder, archive):
    batches = write_cifar(folder, archive=archive)
    found = pictures_of("cifar10")
    x, y = batches["data_batch_2"]
    # Stored channel by channel; handed out with channels last.
    np.testing.assert_array_equal(
        found.x_train[20:40], x.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    )
    np.testing.assert_array_equal(found.y_train[20:40], y)
    assert len(found.y_test) == 10 and found.classes[3] == "kind3"


def test_mat_files_are_read_and_ten_means_zero(folder):
    write_svhn(folder)
    found = pictures_of("svhn")
    np.testing.assert_array_equal(found.y_train, digits(40))
    np.testing.assert_array_equal(found.x_train, pixels(40, (32, 32, 3)))


def test_class_folders_and_npz_of_a_users_own(folder):
    write_images(folder / "mine", ("cat", "dog", "eel"))
    found = pictures_of(str(folder / "mine"))
    assert (
        found.classes == ("cat", "dog", "eel")
        and found.x_train.shape == (18, 8, 8, 3)
        and len(found.y_test) == 0
    )
    np.testing.assert_array_equal(found.x_train[6:12], pixels(6, (8, 8, 3), 1))
    write_images(folder / "split" / "train")
    write_images(folder / "split" / "val", n=2)
    assert len(pictures_of(str(folder / "split")).y_test) == 4
    np.savez(folder / "own.npz", x_train=pixels(9, (5, 5)), y_train=digits(9))
    assert pictures_of(str(folder / "own.npz")).x_train.shape == (9, 5, 5, 1)


def test_the_form_of_tiny_imagenet(folder):
    top = folder / "tiny-imagenet-200"
    write_images(top / "train", ("n01", "n02"), inner="images")
    write_images(top / "val", ("images",), n=2)
    (top / "val" / "val_annotations.txt").write_text(
        "1.png\tn01\t0\t0\t5\t5\n0.png\tn02\t0\t0\t5\t5\n"
    )
    found = pictures_of("tinyimagenet")
    assert found.classes == ("n01", "n02") and found.y_test.tolist() == [0, 1]
    np.testing.assert_array_equal(found.x_test[::-1], pixels(2, (8, 8, 3)))


IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
BATCHES = "cifar-10-batches-py"


def spoil(path, change):
    path.write_bytes(change(path.read_bytes()))


def packed(content):
    """Return a change that replaces the content of a .gz file."""
    return lambda _: gzip.compress(content)


@pytest.mark.parametrize(
    ("write", "name", "file", "change", "says"),
    [
        (write_mnist, "mnist", IMAGES, lambda raw: raw[:-40], "cannot be read as an idx file"),
        (
            write_mnist,
            "mnist",
            "t10k-labels-idx1-ubyte.gz",
            packed(b"what"),
            "is not an idx file of bytes",
        ),
        (write_mnist, "mnist", IMAGES, packed(idx(digits(40))[:-7]), "truncated or too long"),
        (write_mnist, "mnist", IMAGES, packed(idx(digits(40))[:6]), "ends within its header"),
        (write_mnist, "mnist", IMAGES, packed(b"\0\0\x08\x64" + bytes(400)), "it has 100 axes"),
        (write_mnist, "mnist", LABELS, packed(idx(digits(39))), "40 images, but 39 labels"),
        (
            write_cifar,
            "cifar10",
            f"{BATCHES}/data_batch_4",
            lambda raw: raw[:100],
            "CIFAR-10 in Python batches",
        ),
        (
            write_cifar,
            "cifar10",
            f"{BATCHES}/test_batch",
            lambda _: pickle.dumps({b"data": print}),
            "builtins.print",
        ),
        (write_svhn, "svhn", "test_32x32.mat", lambda raw: raw[:500], "an SVHN .mat file"),
    ],
)
def test_invalid_files_are_named_and_not_cached(folder, tmp_path, write, name, file, change, says):
    write(folder)
    spoil(folder / file, change)
    with pytest.raises(BadInput, match=says) as caught:
        pictures_of(name)
    assert str(folder) in str(caught.value)
    assert not list((tmp_path / "XDG_CACHE_HOME").rglob("*.npy"))


def test_errors_in_own_images_are_reported(folder):
    with pytest.raises(BadInput, match="There is no image dataset at 'nowhere'"):
        pictures_of("nowhere")
    write_images(folder / "one", ("cat",))
    with pytest.raises(BadInput, match="at least two classes, got 1"):
        pictures_of(str(folder / "one"))
    write_images(folder / "mixed")
    (folder / "mixed" / "cat" / "0.png").write_bytes(b"no image")
    with pytest.raises(BadInput, match=r"0.png cannot be read as an image"):
        pictures_of(str(folder / "mixed"))
    write_images(folder / "sizes")
    write_images(folder / "other", shape=(9, 9, 3))
    (folder / "other" / "dog" / "0.png").rename(folder / "sizes" / "dog" / "0.png")
    with pytest.raises(BadInput, match="all images must have the same size"):
        pictures_of(str(folder / "sizes"))
    np.savez(folder / "floats.npz", x_train=np.ones((3, 4, 4)), y_train=digits(3))
    with pytest.raises(BadInput, match="uint8"):
        pictures_of(str(folder / "floats.npz"))


def test_missing_datasets_are_reported_in_one_sentence(tmp_path):
    said = missing("svhn")
    assert (
        said.startswith("SVHN is missing")
        and "unlazy data fetch svhn" in said
        and "--data or $UNLAZY_DATA" in said
    )
    assert digest_of("svhn") == "absent" and locate("svhn") is None
    with pytest.raises(BadInput, match="SVHN is missing"):
        pictures_of("svhn")


def test_datasets_are_mapped_from_the_cache_until_a_file_changes(folder, monkeypatch):
    write_mnist(folder)
    first = digest_of("mnist")
    monkeypatch.setattr(library, "_held", {})
    monkeypatch.setattr(library, "read_idx_set", lambda files: pytest.fail("it was read again"))
    assert digest_of("mnist") == first
    held = pictures_of("mnist").x_train
    assert isinstance(held.base, np.memmap)
    monkeypatch.undo()
    monkeypatch.setenv("UNLAZY_DATA", str(folder))
    monkeypatch.setattr(library, "_held", {})
    write_mnist(folder, n=50)
    assert digest_of("mnist") != first and len(pictures_of("mnist").y_train) == 50


class Handler(http.server.BaseHTTPRequestHandler):
    """A server that knows ranges, and may cut an answer off."""

    content, cut, asked = b"", None, []

    def do_GET(self):
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        self.asked.append(start)
        self.send_response(206 if start else 200)
        self.end_headers()
        self.wfile.write(self.content[start : self.cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    content = np.random.default_rng(0).bytes(200_000)
    kind = type("Bytes", (Handler,), {"content": content, "asked": []})
    with http.server.HTTPServer(("127.0.0.1", 0), kind) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{running.server_port}/file.bin"
        download = Download(url, f"md5:{hashlib.md5(content).hexdigest()}", len(content))
        entry = library.SETS["mnist"]._replace(downloads=(download,))
        monkeypatch.setitem(library.SETS, "mnist", entry)
        yield kind
        running.shutdown()


def test_an_interrupted_download_is_resumed(server, folder):
    server.cut = 70_000
    with pytest.raises(BadInput, match="70000 of 200000 bytes"):
        fetching.fetch_set("mnist", folder)
    assert not (folder / "file.bin").exists()
    server.cut = None
    events = []
    (path,) = fetching.fetch_set("mnist", folder, lambda *event: events.append(event))
    assert (
        path.read_bytes() == server.content
        and server.asked == [0, 70_000]
        and events[-1] == ("file.bin", 200_000, 200_000)
    )
    fetching.fetch_set("mnist", folder)
    assert len(server.asked) == 2, "existing files are not downloaded again"
    assert [path.name for path in folder.iterdir()] == ["file.bin"]


def test_a_download_with_a_wrong_checksum_is_deleted(server, folder, monkeypatch):
    (download,) = library.SETS["mnist"].downloads
    monkeypatch.setitem(
        library.SETS,
        "mnist",
        library.SETS["mnist"]._replace(downloads=(download._replace(checksum="md5:" + "0" * 32),)),
    )
    with pytest.raises(BadInput, match="does not have the checksum"):
        fetching.fetch_set("mnist", folder)
    assert list(folder.iterdir()) == []


def test_without_a_network_the_error_gives_an_alternative(folder, monkeypatch):
    nowhere = Download("http://127.0.0.1:9/x.gz", "md5:" + "0" * 32, 10)
    monkeypatch.setitem(library.SETS, "mnist", library.SETS["mnist"]._replace(downloads=(nowhere,)))
    with pytest.raises(BadInput, match=r"cannot be reached .* --data or \$UNLAZY_DATA"):
        fetching.fetch_set("mnist", folder)
    with pytest.raises(BadInput, match="Did you mean 'mnist'"):
        fetching.fetch_set("minst", folder)
