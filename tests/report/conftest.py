"""A claim, its verdict and its records, made by hand, and one outcome of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from toys import hand_record
from unlazy.core.metrics import ACCURACY
from unlazy.lab.claims import Claim, Plot, PlotLine
from unlazy.lab.conditions import Condition
from unlazy.lab.exponents import SampleComplexity, ScalingOutcome, ScalingRow
from unlazy.lab.judging import judge
from unlazy.lab.outcomes import BenchmarkResult, Cell, Result
from unlazy.lab.rules import Change, Check, Control, Published, Quantity
from unlazy.report.view import view_of
from unlazy.studies.audit import Audit
from unlazy.studies.ranking import RankingOutcome
from unlazy.tables.cross_validation import CVResults, FoldResult, schedule
from unlazy.tables.explain import Explanation
from unlazy.tables.folds import TableData
from unlazy.tables.uci_benchmark import PairedTest, Standing
from unlazy.tasks.tables.files import table_of
from unlazy.tasks.tables.problems import problem_of
from unlazy.theory.diagnosis import diagnose

STEPS = (0, 1, 2, 10, 100)
#: Text that would become markup if it were not escaped; it is part of every kind of outcome.
EVIL = '</script><script>alert("1")</script>[b]'
KINDS = (
    "verdict",
    "comparison",
    "comparison of one size",
    "scaling",
    "audit",
    "ranking",
    "diagnosis",
)


def _snapshots(steps=STEPS, count=12, d=6):
    """Random neurons at first, then half of them near u and half near -u, as small as after one
    step of the theorem.
    """
    draw = np.random.default_rng(0)
    u = np.eye(d)[0]
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    gathered = signs[:, None] * u + 0.05 * draw.normal(size=(count, d))
    neurons = np.stack(
        [
            draw.normal(size=(count, d)) if step == 0 else gathered * (1e-9 if step == 1 else 1)
            for step in steps
        ]
    )
    return {
        "neurons": neurons.astype(np.float32),
        "directions": np.broadcast_to(u, (len(steps), 1, d)).astype(np.float32),
    }


def _network_record(seed=10, **options):
    accuracy = tuple(50 + 12.4 * place + 0.1 * (seed % 10) for place in range(len(STEPS)))
    cosine = (0.2, 0.99, 0.99, 0.995, 0.998)
    options = {
        "steps": STEPS,
        "arrays": _snapshots(),
        "test_accuracy": accuracy,
        "cosine": cosine,
    } | options
    return hand_record(f"network{seed}", seed=seed, **options)


def _claim(**changes):
    defaults = {
        "id": "toy2020/table9",
        "where": "Table 9",
        "kind": "table",
        "statement": "A network wins & a kernel does not.",
        "study": lambda scale: {},
        "checks": (
            Check(Quantity("Network", "test_accuracy"), lower=90.0),
            Check(Quantity("Kernel", "test_accuracy"), upper=80.0),
        ),
        "published": (
            Published(Quantity("Network", "test_accuracy"), "100", 1.25),
            Published(Quantity("Kernel", "test_accuracy"), "90", 1.25),
        ),
        "control": Control("no network at all", lambda scale: {}),
        "deviations": ("Fewer examples than in the paper.",),
    }
    return Claim(**(defaults | changes))


@pytest.fixture
def records():
    """Two arms with curves, one of them with neurons, and one arm with a single step."""
    seeds = (10, 11, 12)
    return {
        "Network": [_network_record(seed) for seed in seeds],
        "Kernel": [
            hand_record(
                f"kernel{s}", seed=s, steps=STEPS, test_accuracy=(50, 55, 60, 65, 70 + s / 5)
            )
            for s in seeds
        ],
        "Readout": [
            hand_record(f"readout{s}", seed=s, steps=(2,), test_accuracy=99.0) for s in seeds
        ],
    }


@pytest.fixture
def verdict(records):
    return judge(_claim(), "laptop", records)


@pytest.fixture
def claim():
    """Makes the claim, with changes."""
    return _claim


@pytest.fixture
def network_record():
    """Makes a record with neurons, with changes."""
    return _network_record


def full_verdict(records):
    """A verdict that fails, with all that a verdict can have."""
    line = PlotLine("Network", "test_accuracy", EVIL)
    bound = PlotLine("Kernel", "test_accuracy", "bound", theory=True)
    claim = _claim(
        statement=EVIL,
        deviations=(f"Fewer examples. {EVIL}",),
        checks=(
            Check(Quantity("Network", "test_accuracy"), lower=99.9),
            Check(
                Quantity("Network", "test_accuracy", minus=Quantity("Kernel", "test_accuracy")),
                lower=1.0,
            ),
        ),
        plots=(Plot(EVIL, "step", "accuracy", (line, bound), log_y=True),),
        conditions=(Condition("m ≥ k⁴", lambda scale: 700.0, lambda scale: 625.0),),
        history=(Change("2026-11-17", "a bound was moved", EVIL, 1100),),
        corrections=("toy2020/typo",),
    )
    return judge(claim, "laptop", records, older=9, control=records)


def benchmark(sizes=(100, 200)):
    places = [Cell(name, n, seed) for name in (EVIL, "b") for n in sizes for seed in (10, 11)]
    results = {
        p: Result(p, 50.0 + p.n / 10 + p.seed, 50.0, {"rate": 0.1}, 4, 1, 1.0, 0.1, "k")
        for p in places
    }
    names, command = (EVIL, "b"), "unlazy compare toy/task"
    return BenchmarkResult(
        f"toy/{EVIL}", names, sizes, (10, 11), ACCURACY, results, 4, 0.2, 500, command
    )


def scaling():
    cells = tuple(SampleComplexity(d, (10.0 * d, 11.0 * d), (640,), ((0.0, 0.0),)) for d in (8, 16))
    missed = tuple(SampleComplexity(d, (None, None), (640,), ((0.3, 0.3),)) for d in (8, 16))
    rows = (
        ScalingRow("kernel", "search", cells, {8: 81.0, 16: 170.0}),
        ScalingRow(EVIL, "search", missed, {}),
    )
    return ScalingOutcome(f"toy/{EVIL}", "d", rows, 0.05, ACCURACY, (10, 11), 6, 640, 500)


def audit():
    names, draw = ["linear", "RBF kernel", "RFM", "gradient boosting"], np.random.default_rng(0)
    problem = problem_of(table_of(draw.standard_normal((200, 3)), np.arange(200) % 2), name=EVIL)
    standings, common = CVResults(problem, names), draw.random(200)
    losses = {"linear": 60, "RBF kernel": 40, "RFM": 10, "gradient boosting": 20}
    for repeat, fold, test in schedule(problem, 1):
        for name in names:
            wrong = tuple(100.0 * (common[test] < losses[name] / 100))
            standings.add(FoldResult(name, repeat, fold, 0, losses[name], tuple(test), wrong, 1.0))
    spectrum = {"spectrum": [0.7, 0.3], "low": [0.6, 0.2], "high": [0.8, 0.4]}
    shares = {"columns": [EVIL, "b"], "shares": [0.9, 0.1]}
    gradients = spectrum | shares | {"shares low": [0.8, 0.0], "shares high": [1.0, 0.2]}
    curves = {"fixed": {"name": "RBF kernel", "rows": [20, 40], "losses": [45.0, None]}}
    rich = {"scales": [0.1, 10.0], "losses": [10.0, 30.0], "unit": "error (%)"}
    data = {
        "learning curves": {"curves": curves, "unit": "error (%)"},
        "gradients": gradients,
        "from lazy to rich": rich | {"tangent before": 40.0, "tangent after": 12.0},
        "kernel alignment": {"ranks": [1, 10], "shares": {"NTK": [0.1, 0.5]}},
        "rotation": {},
    }
    findings = tuple(Explanation(name, f"{name}: {EVIL}", each) for name, each in data.items())
    study = Audit(TableData(EVIL, problem), tuple(names))
    return study._outcome(standings, findings, (f"2 folds {EVIL}",), 12.0, {})


def ranking():
    found = [
        Standing(f"{EVIL}{i}", i % 2 == 0, 80.0 - i, 10.0 + i, 2.0, 90.0, 80.0, 95.0)
        for i in range(4)
    ]
    tests = (PairedTest("a", EVIL, 0.5, 3, 1, 0.04),)
    return RankingOutcome("", 9, 0, {}, tuple(found), tuple(found), tests)


def diagnosis():
    x = np.where(np.random.default_rng(0).random((400, 3)) < 0.6, 1, -1)
    return diagnose(x, np.where((x[:, 0] > 0) & (x[:, 2] > 0), 1, 0), ("a", EVIL, "c"))


@pytest.fixture(params=KINDS)
def shown(request, records):
    """The view of an outcome of each kind."""
    makers = {
        "comparison": benchmark,
        "comparison of one size": lambda: benchmark((100,)),
        "scaling": scaling,
        "audit": audit,
        "ranking": ranking,
        "diagnosis": diagnosis,
    }
    if request.param == "verdict":
        return view_of(full_verdict(records), records=records)
    return view_of(makers[request.param]())
