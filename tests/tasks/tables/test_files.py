"""Table files and data frames: reading, decisions and errors."""

import datetime
import gzip
import sys

import numpy as np
import pandas
import pytest

from unlazy.core.errors import BadInput
from unlazy.tables.folds import Encoded
from unlazy.tasks.tables import files
from unlazy.tasks.tables.files import read_table, table_of
from unlazy.tasks.tables.problems import MostInformative, problem_of, soft_cut
from unlazy.tasks.tables.uci import uci_tables

DRAW = np.random.default_rng(0)


def written(tmp_path, rows, header="a,b,c,y", name="table.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def mixed(tmp_path, n=60):
    days = [(datetime.date(2024, 1, 1) + datetime.timedelta(days=i)).isoformat() for i in range(n)]
    rows = [
        f"row{i},{days[i]},{['red', 'blue', ''][i % 3]},{['1.5', 'NA', '2'][i % 3]},7,"
        + ("c" if i == 0 else "ab"[i % 2])
        for i in range(n)
    ]
    return written(tmp_path, rows, "id,when,color,size,constant,y")


def test_mixed_columns_are_read_and_every_decision_is_listed(tmp_path):
    problem = problem_of(read_table(mixed(tmp_path), "y"))
    assert (
        problem.names == ("when", "color", "size")
        and problem.kind == "classification"
        and problem.classes == ("a", "b")
    )
    decisions = " ".join(problem.decisions)
    for word in (
        "Dropped 'id'",
        "Converted 'when' from dates",
        "Dropped 'constant'",
        "Dropped classes with fewer than 5 rows: c",
    ):
        assert word in decisions
    data = Encoded(problem, problem.folds(0)[0])
    assert np.all(np.isfinite(data.x)) and np.all(np.isfinite(data.x_test))
    np.testing.assert_allclose(data.x.mean(axis=0), 0, atol=0.3)


def test_a_sample_is_kept_of_a_long_file_in_its_order(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_ROWS", 50)
    table = read_table(written(tmp_path, [f"{i},{i % 7},{i % 2},{i}" for i in range(400)]), "y")
    assert len(table) == 50 and "50 of 400 rows" in table.decisions[0]
    assert np.all(np.diff(table.target) > 0) and table.target[-1] > 200


def test_parquet_and_arrays(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(
        pyarrow.table({"a": [1.0, None, 3.0], "b": ["u", "v", None], "y": [0, 1, 0]}),
        tmp_path / "t.parquet",
    )
    table = read_table(tmp_path / "t.parquet", "y")
    assert [column.is_number for column in table.columns] == [True, False] and np.isnan(
        table.columns[0].values[1]
    )
    np.savez(tmp_path / "t.npz", X=DRAW.standard_normal((30, 2)), y=np.arange(30.0))
    assert len(read_table(tmp_path / "t.npz", None)) == 30


def test_a_data_frame_keeps_its_names():
    frame = pandas.DataFrame(
        {
            "age": [1.0, 2.0, np.nan],
            "kind": ["a", None, "b"],
            "day": pandas.to_datetime(["2020-01-01"] * 2 + ["2021-01-01"]),
        }
    )
    table = table_of(frame, [0.5, 1.5, 2.5])
    assert [column.name for column in table.columns] == ["age", "kind", "day"]
    assert table.columns[2].values[2] - table.columns[2].values[0] == 366


@pytest.mark.parametrize(
    ("rows", "target", "says"),
    [
        (["1,2,3,4"] * 30, "z", "no column named 'z'"),
        (["1,2,3,4"] * 30, None, "--target"),
        ([f"{i},2,3,5" for i in range(30)], "y", "is constant"),
        ([f"{i},{i},3,{i % 2}" for i in range(12)], "y", "At least 20"),
        (
            [f"{i},2,3,{'one' if i == 0 else 'two'}" for i in range(30)],
            "y",
            "need 5 or more rows, got 1",
        ),
        (["1,2,3,4", "1,2,3"], "y", "Row 2 of table.csv has 3 values"),
        ([], "y", "no rows"),
        (["1,2,3,"] * 30, "y", "is empty"),
        ([f"1,2,3,{i % 2}" for i in range(30)], "y", "No input column is left"),
    ],
)
def test_unusable_tables_are_refused(tmp_path, rows, target, says):
    with pytest.raises(BadInput, match=says):
        problem_of(read_table(written(tmp_path, rows), target))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(BadInput, match="There is no file"):
        read_table(tmp_path / "none.csv", "y")
    with pytest.raises(BadInput, match="must end with"):
        read_table(written(tmp_path, [], name="table.xlsx"), "y")
    with pytest.raises(BadInput, match="must be unique"):
        read_table(written(tmp_path, ["1,2,3"], "a,a,y"), "y")


def test_encrypted_and_truncated_files_are_refused(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=np.ones((4, 2)), y=np.arange(4))
    raw = path.read_bytes()
    place = (
        raw.rindex(b"PK\x01\x02") + 8
    )  # flags of the last entry of the archive's list, of which the first bit says it is encrypted
    path.write_bytes(raw[:place] + b"\x01" + raw[place + 1 :])
    for content, says in (
        (path.read_bytes(), "password"),
        (raw[:-30], "truncated or another kind of file"),
        (b"", "cannot be read as"),
    ):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=says):
            read_table(path, "y")
    with pytest.raises(BadInput, match="cannot be read as UCI tables"):
        list(uci_tables(path))


def test_a_copy_of_the_target_is_dropped():
    y = DRAW.standard_normal(40)
    table = table_of(np.column_stack([y, DRAW.standard_normal(40)]), y)
    assert [column.name for column in table.columns] == [
        "x1"
    ] and "copies of the target: x0" in table.decisions[-1]


def test_duplicates_are_in_one_fold_and_classes_are_spread():
    x = np.repeat(DRAW.standard_normal((40, 3)), 3, axis=0)
    problem = problem_of(table_of(x, np.repeat(np.arange(40) % 2, 3)))
    folds = problem.folds(1)
    assert sorted(np.concatenate(folds)) == list(range(120))
    for fold in folds:
        assert len(np.intersect1d(problem.groups[fold], np.delete(problem.groups, fold))) == 0
        assert 0.2 < problem.y[fold].mean() < 0.8
    assert "80 rows are duplicates" in " ".join(problem.decisions)


def test_of_many_columns_the_telling_ones_are_kept():
    x = DRAW.standard_normal((200, 40))
    kept = MostInformative("regression", 3).fit(x, x[:, 7] - x[:, 20] + 0.1 * x[:, 3]).kept_
    assert {7, 20} <= set(kept) and len(kept) == 3
    assert np.max(np.abs(soft_cut(np.array([1e9, -1e9, 0.1])))) <= 4


def test_semicolons_and_decimal_commas_are_noticed(tmp_path):
    rows = [f"1.{i:03d},5;{i},25;{i}.5;{'ab'[i % 2]}" for i in range(30)]
    table = read_table(written(tmp_path, rows, "big;small;point;y"), "y")
    assert all(column.is_number for column in table.columns)
    first = [column.values[3] for column in table.columns]
    assert first == [1003.5, 3.25, 3.5]
    decisions = " ".join(table.decisions)
    assert "separated by semicolons" in decisions and "decimal commas" in decisions
    plain = read_table(written(tmp_path, ["1;2.5;a", "2;3.5;b"], "a;b;y"), "y")
    assert plain.columns[1].values[0] == 2.5 and "decimal" not in " ".join(plain.decisions)


def test_a_file_without_names_is_noticed(tmp_path):
    rows = [f"{i},{0.5 * i},{'uvw'[i % 3]},{'ab'[i % 2]}" for i in range(1, 40)]
    path = written(tmp_path, rows, "0.0,0.0,u,a")
    table = read_table(path, "4")
    assert len(table) == 40 and [column.name for column in table.columns] == ["1", "2", "3"]
    assert "numbered from 1, and the target is column 4" in table.decisions[0]
    for target in (None, "y", "5"):
        with pytest.raises(BadInput, match="seems to contain values, not column names"):
            read_table(path, target)
    with pytest.raises(BadInput, match="a column name or number"):
        read_table(written(tmp_path, ["1,2,3,0"] * 30, "2,3,1,0"), "2")
    years = read_table(
        written(tmp_path, [f"{i},{i % 7},{i % 3}" for i in range(9)], "0,1,2020"), "2020"
    )
    assert years.target_name == "2020" and len(years) == 9


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_and_compression(tmp_path, encoding, packed):
    rows = [f"{i},{'Köln' if i % 2 else 'Bonn'},{i % 3}" for i in range(30)]
    raw = "\r\n".join(["größe,Stadt,y", *rows]).encode(encoding)
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    table = read_table(path, "y")
    assert [column.name for column in table.columns] == ["größe", "Stadt"]
    assert set(table.columns[1].values) == {"Köln", "Bonn"}
    assert ("Windows-1252" in " ".join(table.decisions)) == (encoding == "cp1252")


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S+00:00"])
def test_dates_are_days_since_1970(tmp_path, form):
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(40)]
    rows = [f"{day.strftime(form)},{i % 3}" for i, day in enumerate(days)]
    when = read_table(written(tmp_path, [*rows, "?,1"], "when,y"), "y").columns[0]
    np.testing.assert_array_equal(when.values[:-1], 19723.0 + np.arange(40))
    assert np.isnan(when.values[-1]) and when.dates


def test_a_data_frame_with_every_dtype():
    n = 30
    frame = pandas.DataFrame(
        {
            "integer": pandas.array([None, *range(1, n)], dtype="Int64"),
            "flag": pandas.array([True, False, None] * 10, dtype="boolean"),
            "sure": [True, False] * 15,
            "grade": pandas.Categorical([1, 2, 3] * 10),
            "zone": pandas.date_range("2024-01-01", periods=n, tz="Europe/Berlin"),
            "length": pandas.to_timedelta(np.arange(n), unit="h"),
            "month": pandas.period_range("2020-01", periods=n, freq="M"),
            "text": pandas.array(["u", "v", None] * 10, dtype="string"),
            "y": pandas.Categorical(["a", "b"] * 15),
        }
    )
    before = frame.copy()
    table = table_of(frame, "y")
    kinds = {column.name: column.is_number for column in table.columns}
    words = {"grade", "text"}
    assert kinds == {name: name not in words for name in frame.columns if name != "y"}
    values = {column.name: column.values for column in table.columns}
    assert np.isnan(values["integer"][0]) and np.isnan(values["flag"][2])
    assert list(values["grade"][:3]) == ["1", "2", "3"] and values["text"][2] is None
    assert values["length"][24] == 1 and values["month"][1] - values["month"][0] == 31
    assert list(table.target[:2]) == ["a", "b"]
    pandas.testing.assert_frame_equal(frame, before)
    apart = table_of(
        frame.drop(columns="y"), frame["y"].sample(frac=1, random_state=0).sort_index()
    )
    assert [column.name for column in apart.columns] == [column.name for column in table.columns]


def test_questions_about_a_data_frame_are_answered_in_a_sentence():
    frame = pandas.DataFrame(np.arange(80.0).reshape(20, 4), columns=["a", "b", "a", "y"])
    with pytest.raises(BadInput, match="got duplicates 'a' in the data frame"):
        table_of(frame, "y")
    with pytest.raises(BadInput, match="no column named 'z'"):
        table_of(frame.iloc[:, 1:], "z")
    with pytest.raises(BadInput, match="only if X is a data frame"):
        table_of(np.eye(4), "y")
    with pytest.raises(BadInput, match="name the column"):
        table_of(frame, None)
    with pytest.raises(BadInput, match="X has 20 rows, but y has 3"):
        table_of(frame, [1, 2, 3])


def test_parquet_without_pyarrow_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadInput, match=r"install unlazy\[parquet\]"):
        read_table(tmp_path / "t.parquet", "y")
