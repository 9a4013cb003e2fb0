"""Small files that would fill the memory are refused, with the option that raises the limit."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from unlazy.core.errors import BadInput
from unlazy.tasks.images.readers import read_class_folders, read_idx, read_npz
from unlazy.tasks.tables.files import read_table
from unlazy.tasks.tables.uci import uci_tables

SIZE = 1 << 16
MANY = "has more than 65,536 bytes after decompression. To read it, raise UNLAZY_MAX_BYTES"


@pytest.fixture
def limited(monkeypatch):
    monkeypatch.setenv("UNLAZY_MAX_BYTES", str(SIZE))
    monkeypatch.setenv("UNLAZY_MAX_PIXELS", "1000")
    monkeypatch.setenv("UNLAZY_MAX_COLUMNS", "50")


def compressed_rows(path):
    path.write_bytes(gzip.compress(b"a,b,y\n" + b"1,2,0\n3,4,1\n" * SIZE))


def one_long_line(path):
    path.write_bytes(gzip.compress(b"a" * (4 * SIZE)))


def zeros(path):
    np.savez_compressed(path, X=np.zeros((SIZE, 2)), y=np.zeros(SIZE))


def parquet(path):
    pd.DataFrame({"a": np.arange(SIZE), "y": np.arange(SIZE)}).to_parquet(path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv.gz", compressed_rows),
        ("t.csv.gz", one_long_line),
        ("t.npz", zeros),
        ("t.parquet", parquet),
    ],
)
def test_a_table_that_is_large_after_decompression_is_refused(tmp_path, limited, name, write):
    write(tmp_path / name)
    assert (tmp_path / name).stat().st_size < 20 * SIZE
    with pytest.raises(BadInput, match=MANY):
        read_table(tmp_path / name, "y")


def test_images_that_are_large_after_decompression_are_refused(tmp_path, limited):
    header = b"\0\0\x08\x03" + np.array([SIZE, 28, 28], ">u4").tobytes()
    (tmp_path / "x.gz").write_bytes(gzip.compress(header + bytes(SIZE)))
    with pytest.raises(BadInput, match=MANY):
        read_idx(tmp_path / "x.gz")
    np.savez_compressed(tmp_path / "x.npz", x_train=np.zeros((99, 28, 28)), y_train=np.zeros(99))
    for read in (read_npz, lambda path: next(uci_tables(path))):
        with pytest.raises(BadInput, match=MANY):
            read(tmp_path / "x.npz")
    for label in "ab":
        (tmp_path / "set" / label).mkdir(parents=True)
        Image.new("L", (40, 40)).save(tmp_path / "set" / label / "1.png")
    with pytest.raises(BadInput, match=r"more than 1,000 pixels. To read it, raise UNLAZY_MAX_PIX"):
        read_class_folders(tmp_path / "set")


def test_many_columns_are_refused_and_the_limit_can_be_raised(tmp_path, limited, monkeypatch):
    frame = pd.DataFrame(np.arange(200.0).reshape(2, 100) % 7)
    frame.columns = [f"c{j}" for j in range(100)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        monkeypatch.setenv("UNLAZY_MAX_COLUMNS", "50")
        with pytest.raises(
            BadInput, match=r"more than 50 columns. To read it, raise UNLAZY_MAX_CO"
        ):
            read_table(tmp_path / name, "c0")
        monkeypatch.setenv("UNLAZY_MAX_COLUMNS", "100")
        assert len(read_table(tmp_path / name, "c0").columns) > 50
    monkeypatch.setenv("UNLAZY_MAX_COLUMNS", "many")
    with pytest.raises(BadInput, match="UNLAZY_MAX_COLUMNS must be a positive integer, got 'many'"):
        read_table(tmp_path / "t.csv", "c0")


def test_a_hundred_thousand_names_are_checked_at_once(tmp_path, monkeypatch):
    """One pass over the names: a test of each against all others took minutes."""
    monkeypatch.setenv("UNLAZY_MAX_COLUMNS", "1000000")
    line = io.StringIO()
    line.write(",".join(f"c{j}" for j in range(100_000)) + ",c7\n")
    line.write(",".join("1" for _ in range(100_001)) + "\n")
    (tmp_path / "t.csv").write_text(line.getvalue())
    with pytest.raises(BadInput, match="Column names must be unique, got duplicates 'c7'"):
        read_table(tmp_path / "t.csv", "c0")
