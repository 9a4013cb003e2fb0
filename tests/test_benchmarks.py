"""Comparison of `make bench` with earlier runs, and its page."""

import importlib
import json
import sys
from pathlib import Path

import pytest


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    yield lambda name: importlib.import_module(f"benchmarks.{name}")
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)


def test_a_ratio_that_became_worse_by_a_fifth_is_named(bench, tmp_path):
    of = bench("timing").Comparison
    last = bench("last")
    fast, slow = of("a / b", "run", [1.0], [2.0], 1.0), of("a / b", "run", [1.0], [1.5], 1.0)
    cheap, dear = (
        of("c / d", "run", [1.0], [2.0], 1.0, "lower"),
        of("c / d", "run", [1.5], [2.0], 1.0, "lower"),
    )
    file = tmp_path / "all.json"
    file.write_text(json.dumps({"comparisons": [fast.summary(), cheap.summary()]}))
    before = last.measured([file])
    (one, two) = last.fallen([slow, dear], before)
    assert one == "a / b: 2.00 before, 1.50 now (25 % worse)" and two.startswith(
        "c / d: 0.50 before, 0.75 now"
    )
    assert (
        last.fallen([fast, cheap], before) == []
        and last.fallen([of("new", "run", [1.0], [2.0], 1.0)], before) == []
    )
    assert [row["what"] for row in last.joined([slow], before)] == ["a / b", "c / d"]


def test_the_page_escapes_what_it_shows(bench):
    one = (
        bench("timing")
        .Comparison("<b>x</b>", "run", [1.0], [2.0], 3.0, notes={"note": "<i>"})
        .summary()
    )
    report = {
        "machine": {"processor": "<script>"},
        "versions": {"jax": "1"},
        "comparisons": [one],
        "command": "python -m x",
    }
    text = bench("page").page(report)
    assert "<script>" not in text and "&lt;b&gt;x" in text and "2.00" in text and ">no<" in text
