"""Command line at smoke scale: run, resume, show, export, report; bad input and faults."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from selection import slow
from unlazy import api
from unlazy.cli.main import main
from unlazy.lab import registry
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.store import Store
from unlazy.report import entries

ARMS = registry.claims()["shi2022/table1"].arms("smoke")


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A store with one smoke run, its verdicts and the output of the command."""
    folder = tmp_path_factory.mktemp("finished")
    store, verdicts = folder / "store.sqlite", folder / "verdicts.json"
    result = call(
        "reproduce", "shi2022/table1", "--scale", "smoke", "--store", store, "--json", verdicts
    )
    return store, json.loads(verdicts.read_text()), result


def count_runs(monkeypatch):
    """Return a list that collects the numbers of trials given to the engine."""
    given = []
    inner = LocalEngine.run
    monkeypatch.setattr(
        LocalEngine,
        "run",
        lambda self, trials, callback=None: (
            given.append(len(trials)),
            inner(self, trials, callback),
        )[1],
    )
    return given


def test_reproduce_prints_the_table_and_writes_json(finished):
    store, (verdict,), result = finished
    assert result.exit_code == 0
    for text in (
        "Network w/o structure",
        "UNDECIDED",
        "10 trials in",
        "Compiled",
    ):
        assert text in result.output
    assert {
        "id",
        "verdict",
        "rule",
        "published",
        "measured",
        "interval",
        "seeds",
        "seconds",
        "deviations",
    } <= verdict.keys()
    assert (
        verdict["id"] == "shi2022/table1"
        and verdict["seeds"] == [1300]
        and verdict["verdict"] == "undecided"
    )
    assert verdict["published"]["NTK test_accuracy"] == 86.4
    with Store(store, read_only=True) as opened:
        assert len(list(opened.records())) == len(ARMS)


def test_a_second_run_comes_from_the_store(finished, monkeypatch):
    store, before, _ = finished
    given = count_runs(monkeypatch)
    result = call(
        "reproduce", "shi2022/table1*", "--scale", "smoke", "--store", store, "--json", "-"
    )
    assert (
        result.exit_code == 0 and sum(given) == 0 and "10 trials, already stored" in result.stderr
    )
    assert json.loads(result.stdout) == before, "--json - leaves nothing else on standard output"


def test_strict_exits_with_1_unless_the_claim_holds(finished):
    assert (
        call(
            "reproduce", "shi2022/table1", "--scale", "smoke", "--store", finished[0], "--strict"
        ).exit_code
        == 1
    )


FAULTY = """
import os, signal
# A shell that starts a job in the background has it ignore SIGINT; the script takes it back.
signal.signal(signal.SIGINT, signal.default_int_handler)
from unlazy.lab.store import Store
inner, added = Store.add, []
def add(self, record, **options):
    inner(self, record, **options)
    added.append(record.key)
    if len(added) == 3:
        os.kill(os.getpid(), signal.{signal})
Store.add = add
from unlazy.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("name", "status", "what", "total"),
    [
        ("SIGKILL", -signal.SIGKILL, ["malach2019/lemma8", "--seeds", "6"], 6),
        slow(("SIGKILL", -signal.SIGKILL, ["shi2022/table1"], 10)),
        slow(("SIGHUP", 129, ["malach2019/lemma8", "--seeds", "6"], 6)),
        slow(("SIGINT", 130, ["malach2019/lemma8", "--seeds", "6"], 6)),
    ],
)
def test_an_interrupted_run_resumes(tmp_path, monkeypatch, name, status, what, total):
    """After three records the process is killed or interrupted; the same command runs the rest."""
    store = tmp_path / "store.sqlite"
    arguments = ["reproduce", *what, "--scale", "smoke", "--store", str(store)]
    cut = subprocess.run(
        [sys.executable, "-c", FAULTY.format(signal=name), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert cut.returncode == status, cut.stderr
    if name != "SIGKILL":
        assert f"Interrupted; 3 of {total} trials saved." in cut.stdout
    with Store(store, read_only=True) as opened:
        kept = {record.key: record.seconds for record in opened.records()}
    assert len(kept) == 3
    given = count_runs(monkeypatch)
    result = call(*arguments)
    assert (
        result.exit_code == 0
        and sum(given) == total - 3
        and f"3 of {total} are stored" in result.output
    )
    with Store(store, read_only=True) as opened:
        records = {record.key: record for record in opened.records()}
    assert len(records) == total and all(
        records[key].seconds == seconds for key, seconds in kept.items()
    )


def test_fresh_replaces_records_one_by_one(tmp_path, monkeypatch):
    """An interrupted run keeps the earlier records that it has not replaced."""
    store = tmp_path / "s.sqlite"
    exact = ["reproduce", "malach2019/lemma8", "--scale", "smoke", "--store", store]

    def times():
        with Store(store, read_only=True) as opened:
            return {record.id: record.created for record in opened.records()}

    def stop(self, trials, callback=None):
        raise KeyboardInterrupt
        yield

    call(*exact)
    before = times()
    with monkeypatch.context() as patch:
        patch.setattr(LocalEngine, "run", stop)
        assert call(*exact, "--fresh").exit_code == 130
    assert times() == before and "malach2019/lemma8" in call("show", "--store", store).output
    assert call(*exact, "--fresh").exit_code == 0
    after = times()
    assert after.keys() == before.keys() and all(after[each] > before[each] for each in before)
    refused = call(*exact, "--fresh", "--reuse-older")
    assert refused.exit_code == 2 and "--fresh runs all trials again" in refused.output


def test_criteria_younger_than_the_records_are_noted(finished, tmp_path, monkeypatch):
    """The criteria change after the run; the verdict notes that they were not fixed before."""
    import dataclasses

    assert "older than the stored" not in finished[2].output
    store = tmp_path / "copy.sqlite"
    store.write_bytes(finished[0].read_bytes())
    table1 = registry.claims()["shi2022/table1"]
    changed = dataclasses.replace(table1, checks=table1.checks[1:])
    for module in (registry, entries, api):
        monkeypatch.setattr(module, "claims", lambda: {changed.id: changed})
    for command in (
        ["show", "shi2022/table1"],
        ["reproduce", "shi2022/table1", "--scale", "smoke"],
    ):
        result = call(*command, "--store", store)
        output = " ".join(result.output.split())
        assert "10 of 10 records are older than the stored acceptance criteria" in output


def test_show(finished):
    assert "shi2022/table1" in call("show", "--store", finished[0]).output
    whole = call("show", "shi2022/*", "--details", "--store", finished[0]).output
    assert call("show", "shi2022/*", "-v", "--store", finished[0]).output == whole
    assert "deviations from the paper" in whole and "Definitions" in whole
    nothing = call("show", "--scale", "paper", "--store", finished[0])
    assert nothing.exit_code == 2 and "unlazy reproduce" in nothing.output


def test_output_files_are_ordinary_files(finished, tmp_path):
    fifo, real, link = tmp_path / "fifo", tmp_path / "real.csv", tmp_path / "link.csv"
    os.mkfifo(fifo)
    assert "not an ordinary file" in call(
        "export", "--store", finished[0], "--out", fifo
    ).output.replace("\n", " ")
    real.touch()
    link.symlink_to(real)
    assert call("export", "--store", finished[0], "--out", link).exit_code == 0
    assert link.is_symlink() and real.stat().st_size > 0


def test_report_writes_a_page_and_figures(finished, tmp_path):
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    result = call("report", "--store", finished[0], "--out", page, "--figures", figures)
    assert result.exit_code == 0 and "shi2022/table1" in page.read_text()
    assert any(path.suffix == ".png" for path in figures.iterdir())


def test_demo_is_reproduce_and_report(finished, tmp_path, monkeypatch):
    given = count_runs(monkeypatch)
    result = call(
        "demo", "--scale", "smoke", "--store", finished[0], "--out", tmp_path / "page.html"
    )
    assert (
        result.exit_code == 0 and sum(given) == 0 and (tmp_path / "page.html").stat().st_size > 1e5
    )


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_export(finished, tmp_path, kind):
    out = tmp_path / f"table.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    assert call("export", "--store", finished[0], "--format", kind, "--out", out).exit_code == 0
    if kind == "parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(out).to_pylist()
    else:
        lines = out.read_text().splitlines()
        rows = (
            list(csv.DictReader(lines)) if kind == "csv" else [json.loads(line) for line in lines]
        )
    (row,) = [
        r
        for r in rows
        if r["arm"] == "RF" and r["measure"] == "test_accuracy" and int(r["step"]) == 40
    ]
    assert float(row["value"]) == pytest.approx(finished[1][0]["measured"]["RF test_accuracy"])
    assert row["claim"] == "shi2022/table1" and json.loads(row["family_json"])["D"] == 12


def test_export_to_standard_output(finished):
    result = call("export", "--store", finished[0])
    assert (
        result.stdout.startswith("id,key,fingerprint,claim,scale,arm,")
        and len(result.stdout.splitlines()) > 100
    )


def test_parquet_needs_its_extra_and_a_file(finished, tmp_path, monkeypatch):
    assert "add --out" in call("export", "--store", finished[0], "--format", "parquet").output
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = call(
        "export", "--store", finished[0], "--format", "parquet", "--out", tmp_path / "x.parquet"
    )
    assert (
        refused.exit_code == 2
        and "unlazy[parquet]" in refused.output
        and not (tmp_path / "x.parquet").exists()
    )


@pytest.mark.parametrize("kind", ["tasks", "learners", "kernels"])
def test_list(kind):
    assert ("ntk" if kind == "kernels" else "shi2022") in call("list", kind).output
    entries = json.loads(call("list", kind, "--json").output)
    assert all(entry["id"] for entry in entries)
    assert len(json.loads(call("list", kind, "n*", "--json").output)) < len(entries)


def test_list_claims_leads_from_a_statement_to_claims_verdicts_code_and_tests(
    finished, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "300")  # another number cuts the lines
    index = ["list", "claims", "--index", "--store", finished[0]]
    everything = call(*index).output
    assert all(f"{paper} (" in everything for paper in ("shi2022", "malach2019"))
    (line,) = (
        line
        for line in call(*index, "shi2022").output.splitlines()
        if line.split()[:2] == ["Table", "1"]
    )
    assert "table1 ?," in line and "table1:" in line and "test_" in line
    (entry,) = json.loads(call(*index, "Theorem 26", "--json").output)
    assert entry["paper"] == "shi2022" and entry["claims"][0]["rule"].startswith("holds if")
    assert call(*index, "shi2022/tabel1").exit_code == 2


def test_list_claims_shows_the_last_verdict(finished):
    def claims(*options):
        output = call("list", "claims", *options, "--json", "--store", finished[0]).output
        return {row["id"]: row["verdict"] for row in json.loads(output)}

    assert claims("--verdict", "undecided") == {"shi2022/table1": "undecided"}
    assert claims("shi2022/table1", "--verdict", "not-run") == {}
    lines = call("list", "claims", "shi2022/table1", "--store", finished[0]).output.splitlines()
    assert lines[0] == "shi2022 (1 claim, named shi2022/...)" and "? undecided" in lines[1]


def test_rules_define_what_is_measured():
    text = " ".join(call("rules", "malach2019/lemma8").output.split())
    assert "≥ 1 + 1e-12" in text and "≥ 1 − 1e-12" in text and "max_C max_{i,j}" in text
    (rule,) = json.loads(call("rules", "shi2022/table1", "--json").output)
    assert rule["quantities"]["test_accuracy"]["unit"] == "%"
    assert {"required", "origin", "measures"} <= rule["checks"][0].keys()


def test_compare_runs_learners_and_stores_a_comparison(tmp_path, monkeypatch):
    store, out, figure = tmp_path / "s.sqlite", tmp_path / "c.json", tmp_path / "c.png"
    small = [
        "--set",
        "d=24",
        "--set",
        "D=12",
        "--set",
        "k=3",
        "--n",
        "200,400",
        "--seeds",
        "2",
        "--budget",
        "4",
        "--test",
        "500",
    ]
    arguments = [
        "compare",
        "shi2022/task",
        *small,
        "--learner",
        "linear",
        "--learner",
        "mean-histogram",
        "--store",
        store,
    ]
    result = call(*arguments, "--json", out, "--figure", figure)
    assert result.exit_code == 0, result.output
    for text in ("linear, mean-histogram", "4 configurations per learner", "At n = 400, "):
        assert text in result.output
    data = json.loads(out.read_text())
    assert (
        data["task"] == "shi2022/task with d=24, D=12, k=3"
        and data["sizes"] == [200, 400]
        and data["budget"] == 4
        and len(data["results"]) == 8
    )
    assert len(data["conclusions"]) == 2 and figure.read_bytes().startswith(b"\x89PNG")
    given = count_runs(monkeypatch)
    again = call(*arguments, "--json", "-")
    assert (
        given == []
        and "8 trials, already stored" in again.stderr
        and json.loads(again.stdout)["results"] == data["results"]
    )
    with Store(store, read_only=True) as opened:
        assert len(list(opened.records())) == 16
    assert call("export", "--store", store).exit_code == 0
    assert (
        "Comparisons" in call("show", "--store", store).output
        and "mean-histogram" in call("show", "shi2022/task", "--store", store).output
    )
    page = tmp_path / "page.html"
    assert (
        call("report", "--store", store, "--out", page, "--figures", tmp_path / "figures").exit_code
        == 0
    )
    assert (
        "Comparison on shi2022/task" in page.read_text()
        and (tmp_path / "figures" / "shi2022-task-with-d-24-d-12-k-3-benchmark.png").exists()
    )
    missing = call("show", "shi2022/tsk", "--store", store)
    assert missing.exit_code == 2 and "Did you mean" in missing.output


OWN = """
import equinox as eqx, jax, jax.numpy as jnp
from unlazy.core.random import normal
from unlazy.kernels.feature_maps import RawFeatures
from unlazy.learners.features import FeatureRidge
from unlazy.tasks.base import Batch, Data, Family

class Side(Data):
    u: jax.Array

    @property
    def dimension(self):
        return len(self.u)

    def draw(self, n, key):
        x = normal(key, (n, len(self.u)))
        return Batch(x, jnp.where(x @ self.u >= 0, 1.0, -1.0))

class Halfspace(Family):
    d: int = eqx.field(static=True, default=4)

    @property
    def dimension(self):
        return self.d

    def task(self, *, key):
        return Side(normal(key, (self.d,)))

Plane = FeatureRidge(RawFeatures())
"""


def test_a_task_and_a_learner_of_ones_own(tmp_path):
    """By file and name, in comparisons and scaling studies; tables use the short name."""
    (tmp_path / "my.py").write_text(OWN)
    mine, store = (
        [f"{tmp_path / 'my.py'}:Halfspace", "--learner", f"{tmp_path / 'my.py'}:Plane"],
        tmp_path / "s.sqlite",
    )
    small = ["--seeds", "2", "--budget", "2", "--test", "500", "--store", store]
    benchmark = call("compare", *mine, "--n", "50", *small)
    assert benchmark.exit_code == 0 and "Plane has" in benchmark.output.replace("\n", " ")
    out, figure = tmp_path / "o.json", tmp_path / "o.png"
    options = [*mine, "--vary", "d=4,8", "--target-error", "0.1", *small, "--json", out]
    study = call("scaling", *options, "--figure", figure)
    assert (
        study.exit_code == 0
        and "Plane, the number of examples needed grows as d^" in study.output.replace("\n", " ")
    ), study.output
    (row,) = json.loads(out.read_text())["learners"]
    assert (
        row["learner"] == "Plane"
        and [cell["place"] for cell in row["cells"]] == [4, 8]
        and len(row["interval"]) == 2
    )
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert "All trials are stored" in call("scaling", *options).output
    assert "Plane, the number of examples needed grows as" in call(
        "show", "Halfspace", "--store", store
    ).output.replace("\n", " ")
    page = tmp_path / "page.html"
    assert (
        call("report", "--store", store, "--out", page).exit_code == 0
        and "as d grows" in page.read_text()
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["reproduce", "shi2022/tabel1"], "Did you mean 'shi2022/table1'"),
        (["reproduce", "nothing/*"], "No claim matches"),
        (["reproduce"], "Missing argument"),
        (["reproduce", "shi2022/table1", "--scale", "huge"], "'huge' is not one of"),
        (["reproduce", "shi2022/table1", "--seeds", "0"], "0 is not in the range"),
        (["reproduce", "shi2022/table1", "--first-seed", "-1"], "not in the range"),
        (
            ["reproduce", "shi2022/table1", "--json", "no-such-folder/v.json"],
            "folder no-such-folder does not exist",
        ),
        (["reproduce", "shi2022/table1", "--store", "."], "cannot be opened"),
        (["compare", "shi2022/tsk", "--learner", "linear"], "Did you mean 'shi2022/task'"),
        (["compare", "shi2022/task", "--learner", "linaer"], "Did you mean 'linear'"),
        (["compare", "shi2022/task"], "Name at least one learner"),
        (
            ["compare", "shi2022/task", "--learner", "linear", "--n", "many"],
            "takes comma-separated integers",
        ),
        (["compare", "shi2022/task", "--learner", "linear", "--n", "1"], "integers ≥ 2"),
        (
            ["compare", "shi2022/task", "--learner", "linear", "--set", "dd=3"],
            "There is no parameter of shi2022/task named 'dd'",
        ),
        (
            ["compare", "shi2022/task", "--learner", "linear", "--set", "d=x"],
            "`d` must be an integer, such as 500",
        ),
        (["compare", "shi2022/task", "--learner", "linear", "--set", "d"], "must be NAME=VALUE"),
        (["compare", "shi2022/task", "--learner", "linear", "--set", "d=3"], "d"),
        (
            ["compare", "shi2022/task", "--learner", "linear", "--figure", "c.gif"],
            "must end with .png, .pdf or .svg",
        ),
        (
            ["compare", "shi2022/task", "--learner", "linear", "--json", "no-such-folder/c.json"],
            "folder no-such-folder does not exist",
        ),
        (["scaling", "shi2022/task", "--learner", "ntk"], "Missing option '--vary'"),
        (
            ["scaling", "shi2022/task", "--vary", "D=50..100"],
            "Name at least one learner",
        ),
        (["scaling", "shi2022/task", "--learner", "ntk", "--vary", "D"], "NAME=FIRST..LAST"),
        (
            ["scaling", "shi2022/task", "--learner", "ntk", "--vary", "E=5"],
            "There is no parameter of shi2022/task named 'E'",
        ),
        (
            ["scaling", "shi2022/task", "--learner", "ntk", "--vary", "D=200..100"],
            "from a smaller to a larger",
        ),
        (
            [
                "scaling",
                "shi2022/task",
                "--learner",
                "ntk",
                "--vary",
                "D=50",
                "--target-error",
                "2",
            ],
            "fraction of wrong labels",
        ),
        (
            ["scaling", "shi2022/task", "--learner", "ntk", "--vary", "D=50", "--out", "c.gif"],
            "must end with .png, .pdf or .svg",
        ),
        (["reprduce", "x"], "Did you mean 'reproduce'"),
        (["list", "papers"], "'papers' is not one of"),
        (["show", "--store", "no-such.sqlite"], "There is no store"),
        (["export", "--store", "no-such.sqlite"], "There is no store"),
        (["report", "--store", "no-such.sqlite"], "There is no store"),
        (["report", "--out", "."], "is a folder"),
    ],
)
def test_bad_input_has_status_2_and_names_what_was_expected(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNLAZY_STORE", str(tmp_path / "default.sqlite"))
    result = call(*arguments)
    assert result.exit_code == 2 and says in result.output.replace("\n", " ")
    assert list(tmp_path.iterdir()) == [], "a refused command left something behind"


def test_too_little_memory_is_refused_before_a_run(tmp_path):
    result = call(
        "reproduce",
        "shi2022/table1",
        "--scale",
        "smoke",
        "--store",
        tmp_path / "s.sqlite",
        "--memory",
        "0.00001",
    )
    assert result.exit_code == 2 and "--memory" in result.output


def test_help_does_not_import_jax():
    code = (
        "import sys, unlazy.cli.main; sys.exit('jax' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_default_store_can_be_chosen_by_environment(tmp_path, monkeypatch):
    from unlazy.cli.common import default_store

    monkeypatch.setenv("UNLAZY_STORE", str(tmp_path / "mine.sqlite"))
    assert default_store() == tmp_path / "mine.sqlite"
    monkeypatch.delenv("UNLAZY_STORE")
    assert isinstance(default_store(), Path) and "unlazy" in os.fspath(default_store())
