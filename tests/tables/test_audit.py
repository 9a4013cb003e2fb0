"""The rule of an audit on planted standings, a contest on small tables, and the page."""

import io
import json

import numpy as np
import pandas
import pytest
from click.testing import CliRunner
from rich.console import Console
from sklearn.dummy import DummyClassifier

import unlazy
from unlazy.cli import main
from unlazy.cli.audit import seconds_of
from unlazy.core.errors import BadInput
from unlazy.estimators.catalog import Method
from unlazy.report.audits import print_audit
from unlazy.tables import contest, spectra
from unlazy.tables.contest import Bout, Standings, schedule
from unlazy.tables.diagnostics import DIAGNOSTICS
from unlazy.tables.judgement import judge
from unlazy.tasks.tables.files import table_of
from unlazy.tasks.tables.problems import problem_of

NAMES = ["linear", "RBF kernel", "RFM", "gradient boosting"]
QUICK = {"contenders": NAMES, "explain": False}


def planted(losses, n=600, seed=0):
    """Standings in which each contender errs on so many rows in a hundred, at random."""
    draw = np.random.default_rng(seed)
    problem = problem_of(table_of(draw.standard_normal((n, 3)), np.arange(n) % 2))
    standings = Standings(problem, NAMES)
    common = draw.random(n)  # hard rows are hard for all
    for repeat, fold, test in schedule(problem, 1):
        for name in NAMES:
            wrong = common[test] < losses[name] / 100
            standings.add(
                Bout(name, repeat, fold, 0, losses[name], tuple(test), tuple(100.0 * wrong), 1.0)
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
def test_the_rule_decides_as_it_says(fixed, learned, decision):
    found = judge(
        planted({"RBF kernel": fixed, "RFM": learned, "linear": 60, "gradient boosting": 25})
    )
    assert found.decision == decision
    assert found.paragraph.count(".") > 3 and "fixed features" in found.paragraph
    assert (
        "RecursiveFeatureMachineClassifier" in found.code
        if decision == "learn features"
        else "KernelRidge" in found.code
    )


@pytest.mark.parametrize(("plain", "ahead"), [(5, True), (9.8, False), (25, False)])
def test_plain_methods_are_recommended_where_they_are_surely_better_than_both_sides(plain, ahead):
    found = judge(planted({"RBF kernel": 12, "RFM": 10, "linear": 60, "gradient boosting": plain}))
    assert found.decision == "learn features"
    assert (
        ("surely better than both" in found.paragraph)
        == ahead
        == ("HistGradientBoostingClassifier" in found.code)
    )


def test_a_side_speaks_through_its_best_on_inner_rows_not_on_test_rows():
    standings = planted({"RBF kernel": 30, "RFM": 10, "linear": 60, "gradient boosting": 25})
    standings.names.append("NTK")
    for found in standings.of("RBF kernel") or list(standings.bouts.values()):
        if found.contender == "RBF kernel":
            rows = len(found.rows)
            standings.add(
                Bout("NTK", found.repeat, found.fold, 0, 90.0, found.rows, (0.0,) * rows, 1.0)
            )
    assert standings.favourite("fixed") == "RBF kernel"


def made(kind, n=160, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.choice([-1.0, 1.0], (n, 8)) if kind == "parity" else draw.standard_normal((n, 4))
    score = x[:, 0] * x[:, 1] if kind == "parity" else x[:, 0] + 0.2 * draw.standard_normal(n)
    return x, score


def test_an_audit_of_a_linear_table_and_what_it_keeps(tmp_path):
    x, y = made("linear")
    journal = tmp_path / "journal.jsonl"
    outcome = unlazy.audit(x, y, journal=journal, **QUICK)
    assert (
        outcome.judgement.decision == "a kernel is enough" and outcome.problem.kind == "regression"
    )
    assert json.loads(json.dumps(outcome.to_json()))["gap"]["mean"] == outcome.judgement.gap.mean
    lines = journal.read_text().splitlines()
    assert len(lines) == 10 * len(NAMES)
    journal.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])  # killed while it wrote
    again = unlazy.audit(x, y, journal=journal, **QUICK)
    assert len(again.standings.complete) == 10 and again.answer == outcome.answer


def test_instruments_see_what_was_planted(monkeypatch):
    monkeypatch.setattr(spectra, "BOOTSTRAP", 2)
    monkeypatch.setattr(spectra, "SCALES", (0.5, 32.0))
    monkeypatch.setattr(spectra, "RATES", (0.03, 1e6))  # of which the second diverges
    monkeypatch.setattr(spectra, "STEPS", 160)
    x, y = made("parity", 200)
    outcome = unlazy.audit(x, y > 0, contenders=NAMES)
    assert {finding.name for finding in outcome.findings} == set(DIAGNOSTICS)
    found = {finding.name: finding.data for finding in outcome.findings}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {found["gradients"]["columns"][0], found["gradients"]["columns"][1]} == {"x0", "x1"}
    assert found["kernel alignment"]["shares"]["NTK"] == sorted(
        found["kernel alignment"]["shares"]["NTK"]
    )
    rich = found["from lazy to rich"]
    assert all(np.isfinite(rich["losses"])) and (rich["diverged"], rich["trainings"]) == (4, 8)
    printed = Console(width=40, record=True, file=io.StringIO())
    print_audit(outcome, printed)
    assert outcome.judgement.code in "\n".join(
        line.rstrip() for line in printed.export_text().splitlines()
    )
    text = page([view(outcome)])
    assert (
        text.index("<h1")
        < text.index('id="the-table-audit-methods"')
        < text.index("Feature learning versus lazy training")
    )
    assert "http" not in text.split("<script>")[0].replace("http-equiv", "")


def test_an_audit_with_other_contenders_has_its_own_explanations(tmp_path, monkeypatch):
    """Diagnostics are kept by their inputs."""
    refits = {"rotation": DIAGNOSTICS["rotation"]}
    monkeypatch.setattr("unlazy.tables.audit.DIAGNOSTICS", refits)
    x, y = made("linear", 60)
    for fixed in ("linear", "RBF kernel", "linear"):
        outcome = unlazy.audit(x, y, contenders=[fixed, "RFM"], journal=tmp_path / "kept.jsonl")
        assert outcome.findings[0].data["sides"]["fixed"]["name"] == fixed
    kept = (tmp_path / "kept.jsonl").read_text()
    assert kept.count("/explain/rotation/") == 2


def test_words_and_missing_values_lead_back_to_their_columns():
    draw = np.random.default_rng(0)
    colour = draw.choice(["red", "green", "blue"], 80).astype(object)
    size = np.where(draw.random(80) < 0.2, np.nan, draw.standard_normal(80))
    problem = problem_of(
        table_of(
            pandas.DataFrame({"size": size, "colour": colour}),
            np.where(colour == "red", "yes", "no"),
        )
    )
    found = spectra.gradient_spectrum(problem)
    assert found.data["columns"][0] == "colour"
    assert spectra.kernel_alignment(problem).data["kare"]["RBF kernel"] < 0.5


def test_the_command_reads_a_file_and_keeps_to_the_time(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x, y = made("linear", 60)
    path, out = tmp_path / "t.csv", tmp_path / "t.json"
    path.write_text(
        "a,b,c,d,y\n"
        + "\n".join(
            ",".join(f"{v:.3f}" for v in (*row, target)) for row, target in zip(x, y, strict=True)
        )
    )
    options = [option for name in NAMES for option in ("--contender", name)]
    command = [
        "audit",
        str(path),
        "--target",
        "y",
        "--no-explain",
        "--json",
        str(out),
        "--out",
        str(tmp_path / "t.html"),
        *options,
    ]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == 0, found.output
    written = json.loads(out.read_text())
    assert written["rows"] == 60 and (tmp_path / "t.html").exists()
    assert (
        written["command"].startswith("unlazy audit t.csv --target y --time 15m --contender ")
        and "--no-explain" in written["command"]
    )
    assert "make_pipeline" in found.output
    refused = CliRunner().invoke(main, ["audit", str(path), "--target", "z"])
    assert refused.exit_code == 2 and "no column named" in refused.output


def test_a_data_frame_and_the_name_of_its_target():
    x, y = made("linear", 60)
    frame = pandas.DataFrame(x, columns=list("abcd")).assign(target=y)
    outcome = unlazy.audit(frame, "target", **QUICK)
    assert outcome.problem.names == tuple("abcd")
    assert outcome.answer == unlazy.audit(x, y, **QUICK).answer


def test_bad_questions_are_refused():
    x, y = made("linear", 60)
    with pytest.raises(BadInput, match="no contender named"):
        unlazy.audit(x, y, contenders=["RBF"])
    with pytest.raises(BadInput, match="at least one contender with fixed"):
        unlazy.audit(x, y, contenders=["linear"])
    with pytest.raises(BadInput, match="length of time"):
        seconds_of("soon")
    assert seconds_of("1.5h") == 5400 and seconds_of("90s") == 90 and seconds_of("2m") == 120


def test_who_speaks_is_chosen_by_fits_to_all_rows_that_do_not_score(monkeypatch):
    """A contender is known by what it learns from many rows, though settings are tried on few."""
    monkeypatch.setattr(contest, "TUNING_ROWS", 40)
    x, y = made("parity", 200)
    problem = problem_of(table_of(x, y > 0))
    data = contest.Encoded(problem, problem.folds(0)[0])
    tried, free, scoring = data.inner(0)
    assert (
        len(tried) == 40 < len(free)
        and not np.isin(scoring, free).any()
        and np.isin(tried, free).all()
    )
    seen = []
    monkeypatch.setattr(
        contest,
        "fitted",
        lambda estimator, x, y: seen.append((estimator, len(x))) or DummyClassifier().fit(x, y),
    )
    contest.tuned(Method("made", "fixed", None, lambda kind, d: ["first", "second"]), data, 0)
    assert seen == [("first", 40), ("second", 40), ("first", len(free))]
