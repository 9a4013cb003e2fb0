"""The decision of an audit on constructed results; audits of small tables and their commands."""

import dataclasses
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner
from rich.console import Console
from sklearn.dummy import DummyClassifier

import unlazy
from selection import slow
from unlazy.cli import main
from unlazy.cli.audit import seconds_of
from unlazy.core.errors import BadInput
from unlazy.lab.store import Store
from unlazy.report.audits import view
from unlazy.report.html import page
from unlazy.report.terminal import print_outcome
from unlazy.report.view import view_of
from unlazy.studies import audit
from unlazy.tables import folds, spectra
from unlazy.tables.cross_validation import CVResults, FoldResult, schedule
from unlazy.tables.decision import judge
from unlazy.tables.diagnostics import DIAGNOSTICS
from unlazy.tasks.tables.files import table_of
from unlazy.tasks.tables.problems import problem_of

NAMES = ["linear", "RBF kernel", "RFM", "gradient boosting"]
FEW = {"methods": ["linear", "RFM"], "explain": False}


#: Number of folds in these tests, of five.
RUN = 2


@pytest.fixture(autouse=True, scope="module")
def _few_folds():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "schedule", lambda problem, repeats: schedule(problem, 1)[:RUN])
        yield


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Return a linear table, its targets, a store, and its audit."""
    x, y = made("linear", 60)
    store = tmp_path_factory.mktemp("audited") / "s.sqlite"
    return x, y, store, unlazy.audit(x, y, store=store, **FEW)


@pytest.fixture
def copied(audited, tmp_path):
    """Return a copy of the store."""
    return Path(shutil.copy(audited[2], tmp_path / "s.sqlite"))


def planted(losses, n=600, seed=0):
    """Return results in which each method errs on a given percentage of rows, at random."""
    draw = np.random.default_rng(seed)
    problem = problem_of(table_of(draw.standard_normal((n, 3)), np.arange(n) % 2))
    standings = CVResults(problem, NAMES)
    common = draw.random(n)  # hard rows are hard for all
    for repeat, fold, test in schedule(problem, 1):
        for name in NAMES:
            wrong = common[test] < losses[name] / 100
            standings.add(
                FoldResult(
                    name, repeat, fold, 0, losses[name], tuple(test), tuple(100.0 * wrong), 1.0
                )
            )
    return standings


@pytest.mark.parametrize(
    ("fixed", "learned", "decision"),
    [
        (30, 10, "learn features"),
        (10, 10, "a kernel is enough"),
        (10, 14, "a kernel is enough"),
        (11.5, 10, "not decided"),
        (50, 50, "nothing to learn"),
    ],
)
def test_the_decision_follows_the_criteria(fixed, learned, decision):
    found = judge(
        planted({"RBF kernel": fixed, "RFM": learned, "linear": 60, "gradient boosting": 25})
    )
    assert found.decision == decision
    assert found.paragraph.count(".") > 3 and "fixed features" in found.paragraph
    code = {"learn features": "RecursiveFeatureMachineClassifier", "not decided": ""}
    assert code.get(decision, "KernelRidge") in found.code
    assert bool(found.code) == (decision != "not decided")


@pytest.mark.parametrize(
    ("fixed", "learned", "text"),
    [
        (30, 10, "Feature learning helps: 12.3 % error versus 32.3 % (difference 20.0, 95 % CI "),
        (10, 10, "A fixed kernel suffices: a gain ≥ 1 point is ruled out. Learned features"),
        (10.9, 10, "Inconclusive: a gain ≥ 1 point is neither shown nor excluded."),
        (11.1, 10, "Inconclusive: learned features are significantly better, but a gain ≥ 1 point"),
    ],
)
def test_the_paragraph_states_the_decision(fixed, learned, text):
    losses = {"RBF kernel": fixed, "RFM": learned, "linear": 60, "gradient boosting": 25}
    assert text in judge(planted(losses)).paragraph


def test_the_number_of_rows_belongs_to_the_decision_that_the_gain_allows():
    """A gain below the margin can only be excluded, by an interval as narrow as the distance."""
    losses = {"RBF kernel": 10.9, "RFM": 10, "linear": 60, "gradient boosting": 25}
    standings = planted(losses)
    found = judge(standings)
    used = standings.gap(standings.selected("fixed"), standings.selected("learned"), 0.9)
    assert found.decision == "not decided" and used.mean < 1 < used.high
    expected = 600 * ((used.high - used.mean) / (1 - used.mean)) ** 2
    needed = int(found.changes.split("about ")[1].split(" rows")[0].replace(",", ""))
    assert expected <= needed <= expected + 100 and "exclude a gain ≥ 1 point" in found.changes


def test_missing_folds_are_run_before_rows_are_added():
    standings = planted({"RBF kernel": 11.5, "RFM": 10, "linear": 60, "gradient boosting": 25})
    standings.results = {key: found for key, found in standings.results.items() if key[2] < 2}
    found = judge(standings)
    assert found.decision == "not decided" and "Run the missing folds" in found.changes
    assert "rows would be needed" not in found.changes


@pytest.mark.parametrize(
    ("trees", "text"),
    [(25, "%, better than the constant."), (60, "%, not significantly better than the constant.")],
)
def test_without_signal_it_states_whether_trees_beat_the_constant(trees, text):
    losses = {"RBF kernel": 50, "RFM": 50, "linear": 60, "gradient boosting": trees}
    found = judge(planted(losses))
    assert found.decision == "nothing to learn" and text in found.paragraph
    assert "neither fixed nor learned features beat the constant" in found.paragraph


@pytest.mark.parametrize(("plain", "ahead"), [(5, True), (9.8, False), (25, False)])
def test_trees_are_recommended_if_significantly_better_than_both_groups(plain, ahead):
    found = judge(planted({"RBF kernel": 12, "RFM": 10, "linear": 60, "gradient boosting": plain}))
    assert found.decision == "learn features"
    assert (
        ("significantly better than both" in found.paragraph)
        == ahead
        == ("HistGradientBoostingClassifier" in found.code)
    )


def test_a_group_is_represented_by_its_best_on_inner_rows_not_on_test_rows():
    standings = planted({"RBF kernel": 30, "RFM": 10, "linear": 60, "gradient boosting": 25})
    standings.names.append("NTK")
    for found in standings.of("RBF kernel") or list(standings.results.values()):
        if found.method == "RBF kernel":
            rows = len(found.rows)
            standings.add(
                FoldResult("NTK", found.repeat, found.fold, 0, 90.0, found.rows, (0.0,) * rows, 1.0)
            )
    assert standings.most_selected("fixed") == "RBF kernel"


def made(kind, n=160, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.choice([-1.0, 1.0], (n, 8)) if kind == "parity" else draw.standard_normal((n, 4))
    score = x[:, 0] * x[:, 1] if kind == "parity" else x[:, 0] + 0.2 * draw.standard_normal(n)
    return x, score


def count(store):
    with Store(store, read_only=True) as opened:
        return len(opened.all_ids())


def test_an_audit_of_a_linear_table_and_what_it_keeps(audited, copied):
    x, y, _, outcome = audited
    assert outcome.decision.decision == "a kernel is enough" and outcome.kind == "regression"
    told = json.loads(json.dumps(outcome.to_json()))
    assert told["gap"]["mean"] == outcome.decision.gap.mean
    assert told["provenance"]["records"] == count(copied) == 2 * RUN
    with Store(copied) as opened:
        opened.remove(opened.all_ids()[:1])
    again = unlazy.audit(x, y, store=copied, **FEW)
    assert count(copied) == 2 * RUN and again.answer == outcome.answer


def test_other_targets_under_the_same_name_have_their_own_result(audited, copied):
    x, y, _, outcome = audited
    mixed = unlazy.audit(x, np.random.default_rng(1).permutation(y), store=copied, **FEW)
    assert mixed.methods[0].mean > 80 > outcome.methods[0].mean
    assert mixed.provenance["older"] == outcome.provenance["older"] == 0
    older = unlazy.audit(x, -y, store=copied, reuse_older=True, **FEW)
    assert older.provenance["older"] == older.provenance["records"] == 2 * RUN
    assert older.methods[0].losses == mixed.methods[0].losses
    said = " ".join(view_of(older).notes)
    assert f"{2 * RUN} of {2 * RUN} records were made by other code" in said


def test_skipped_parts_are_listed_by_reason(audited):
    *_, outcome = audited
    left_out = ("2 of 5 folds (time limit)", "rotation (time limit)", "gradients")
    shown = view(dataclasses.replace(outcome, left_out=left_out))
    assert (
        dict(shown.lines)["Skipped"]
        == "2 of 5 folds, rotated columns (time limit); relevant directions and columns"
    )
    assert dict(shown.lines)["Next"].startswith("Run the same command again to continue")


@pytest.mark.slow
def test_an_audit_with_other_methods_has_its_own_explanations(tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "DIAGNOSTICS", {"rotation": DIAGNOSTICS["rotation"]})
    x, y = made("linear", 60)
    for fixed in ("linear", "RBF kernel"):
        found = unlazy.audit(x, y, store=tmp_path / "s.sqlite", methods=[fixed, "RFM"])
        (finding,) = found.findings
        assert finding.data["sides"]["fixed"]["name"] == fixed


@pytest.mark.slow
def test_diagnostics_find_the_known_structure(monkeypatch):
    monkeypatch.setattr(spectra, "BOOTSTRAP", 2)
    monkeypatch.setattr(spectra, "SCALES", (0.5, 32.0))
    monkeypatch.setattr(spectra, "RATES", (0.03, 1e6))  # of which the second diverges
    monkeypatch.setattr(spectra, "STEPS", 160)
    x, y = made("parity", 200)
    outcome = unlazy.audit(x, y > 0, methods=NAMES)
    assert {finding.name for finding in outcome.findings} == set(DIAGNOSTICS)
    found = {finding.name: finding.data for finding in outcome.findings}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {found["gradients"]["columns"][0], found["gradients"]["columns"][1]} == {"x0", "x1"}
    shares = found["kernel alignment"]["shares"]["NTK"]
    assert shares == sorted(shares)
    rich = found["from lazy to rich"]
    assert all(np.isfinite(rich["losses"])) and (rich["diverged"], rich["trainings"]) == (4, 8)
    printed = Console(width=40, record=True, file=io.StringIO())
    print_outcome(outcome, printed)
    assert outcome.decision.code in "\n".join(
        line.rstrip() for line in printed.export_text().splitlines()
    )
    text = page([view(outcome)])
    assert (
        text.index("<h1")
        < text.index('id="the-table-audit-methods"')
        < text.index("Does a network gain when its weights move?")
    )
    assert "http" not in text.split("<script>")[0].replace("http-equiv", "")


def test_words_and_missing_values_lead_back_to_their_columns():
    draw = np.random.default_rng(0)
    color = draw.choice(["red", "green", "blue"], 80).astype(object)
    size = np.where(draw.random(80) < 0.2, np.nan, draw.standard_normal(80))
    problem = problem_of(
        table_of(
            pandas.DataFrame({"size": size, "color": color}),
            np.where(color == "red", "yes", "no"),
        )
    )
    found = spectra.gradient_spectrum(problem)
    assert found.data["columns"][0] == "color"
    assert spectra.kernel_alignment(problem).data["kare"]["RBF kernel"] < 0.5


def test_no_kernel_explains_noise():
    """The alignment risk of shuffled targets is about 1, although centering makes K singular."""
    draw = np.random.default_rng(0)
    problem = problem_of(table_of(draw.standard_normal((200, 6)), draw.standard_normal(200)))
    risks = spectra.kernel_alignment(problem).data["kare"]
    assert all(0.8 < risks[name] < 1.2 for name in ("RBF kernel", "Laplace kernel", "NTK"))


def test_the_details_of_an_outcome_are_printed_on_request(audited):
    *_, outcome = audited
    short, full = (Console(width=100, record=True, file=io.StringIO()) for _ in range(2))
    print_outcome(outcome, short)
    print_outcome(outcome, full, details=True)
    texts = [each.export_text() for each in (short, full)]
    assert all(method.name in texts[1] for method in outcome.methods)
    assert "more: -v" not in texts[1]


def written_csv(path, x, y):
    pandas.DataFrame(x, columns=list("abcd")).assign(y=y).to_csv(path, index=False)
    return path


def called(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_command_reads_a_file_and_a_changed_file_has_its_own_result(tmp_path):
    x, y = made("linear", 60)
    path, out, store = (tmp_path / name for name in ("t.csv", "t.json", "s.sqlite"))
    written_csv(path, x, y)
    options = [option for name in FEW["methods"] for option in ("--method", name)]
    command = ["audit", path, "--target", "y", "--no-explain", *options, "--store", store]
    found = called(*command, "--json", out, "--out", tmp_path / "t.html")
    assert found.exit_code == 0, found.output
    first = json.loads(out.read_text())
    assert first["rows"] == 60 and (tmp_path / "t.html").exists()
    assert (
        first["command"].startswith("unlazy audit t.csv --target y --time 15m --method ")
        and "--no-explain" in first["command"]
    )
    assert "make_pipeline" in found.output and first["provenance"]["older"] == 0
    written_csv(path, x, np.random.default_rng(1).permutation(y))
    changed = called(*command, "--json", out)
    assert json.loads(out.read_text())["methods"] != first["methods"]
    assert "Running 2 trials again" in changed.output and "TableData t.csv" in changed.output
    refused = called("audit", path, "--target", "z")
    assert refused.exit_code == 2 and "no column named" in refused.output


KILLED = """
import os, signal
from unlazy.lab.store import Store
inner = Store.add
def add(self, record, **options):
    inner(self, record, **options)
    os.kill(os.getpid(), signal.SIGKILL)
Store.add = add
from unlazy.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "engine", [("local",), slow((("processes", "--workers", "1"),))], ids=lambda words: words[0]
)
def test_an_audit_that_was_killed_resumes_and_is_shown_exported_reported(tmp_path, engine):
    path = written_csv(tmp_path / "t.csv", *made("linear", 60))
    store, out = tmp_path / "s.sqlite", tmp_path / "page.html"
    options = [option for name in FEW["methods"] for option in ("--method", name)]
    words = ["audit", str(path), "--target", "y", "--no-explain", *options]
    words += ["--engine", *engine, "--store", str(store)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    cut = subprocess.run([sys.executable, "-c", KILLED, *words], env=environment, check=False)
    assert cut.returncode == -signal.SIGKILL and count(store) == 1
    with Store(store, read_only=True) as opened:
        (kept,) = [record.created for record in opened.records()]
    assert called(*words).exit_code == 0 and count(store) == 2 * RUN
    with Store(store, read_only=True) as opened:
        assert kept == min(record.created for record in opened.records())
    assert "t.csv" in called("show", "--store", store).output
    assert "linear" in called("show", "t.csv", "--store", store).output
    table = called("export", "--store", store).stdout
    assert table.count(",inner_loss,") == 2 * RUN and ",t.csv,audit,RFM," in table
    assert called("report", "--store", store, "--out", out).exit_code == 0
    assert "t.csv" in out.read_text()
    rerun = called("rerun", table.splitlines()[1].partition(",")[0], "--store", store)
    told = " ".join(rerun.output.split())
    assert rerun.exit_code == 2 and "rows of t.csv are not in the record" in told
    assert "unlazy audit t.csv --target y" in told


def test_a_data_frame_and_the_name_of_its_target(audited):
    x, y, _, outcome = audited
    frame = pandas.DataFrame(x, columns=list("abcd")).assign(target=y)
    named = unlazy.audit(frame, "target", **FEW)
    assert named.columns == 4 and named.answer == outcome.answer


def test_bad_questions_are_refused():
    x, y = made("linear", 60)
    with pytest.raises(BadInput, match="no method named"):
        unlazy.audit(x, y, methods=["RBF"])
    with pytest.raises(BadInput, match="at least one method with fixed"):
        unlazy.audit(x, y, methods=["linear"])
    with pytest.raises(BadInput, match="duration"):
        seconds_of("soon")
    assert seconds_of("1.5h") == 5400 and seconds_of("90s") == 90 and seconds_of("2m") == 120


def test_methods_are_selected_by_fits_to_all_rows_that_do_not_score(monkeypatch):
    """Settings are tuned on few rows, but methods are compared after fits to many."""
    monkeypatch.setattr(folds, "TUNING_ROWS", 40)
    x, y = made("parity", 200)
    problem = problem_of(table_of(x, y > 0))
    data = folds.Encoded(problem, problem.folds(0)[0])
    tried, free, scoring = data.inner(0)
    assert len(tried) == 40 < len(free)
    assert not np.isin(scoring, free).any() and np.isin(tried, free).all()
    seen = []
    monkeypatch.setattr(
        folds,
        "fitted",
        lambda estimator, x, y: seen.append((estimator, len(x))) or DummyClassifier().fit(x, y),
    )
    folds.tuned(["first", "second"], data, 0)
    assert seen == [("first", 40), ("second", 40), ("first", len(free))]
