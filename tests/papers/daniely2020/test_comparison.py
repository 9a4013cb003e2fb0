import pytest

from unlazy.lab.arms import Row, Tuned
from unlazy.lab.engines.local import LocalEngine
from unlazy.papers.daniely2020.comparison import (
    ALONG,
    COMPARISON,
    COUNTS,
    FIXED,
    SHOWN,
    SIZES,
    TERNARY,
    benchmark,
)


def test_every_method_has_the_same_examples_at_every_k():
    for scale in ("smoke", "laptop", "paper"):
        arms = benchmark(scale)
        for name in ("network", "one step", *TERNARY, *FIXED, SHOWN[0]):
            row = arms[name]
            assert isinstance(row, Row) and tuple(row.arms) == COUNTS
            assert all(
                part.n == SIZES[scale].n and part.family.d == SIZES[scale].d
                for part in row.arms.values()
            )
            assert (name in ("network", "one step", *TERNARY)) != isinstance(row.arms[3], Tuned)
        assert {quantity.arm for quantity in COMPARISON.quantities} <= arms.keys()
    assert SHOWN[1] in benchmark("paper") and SHOWN[1] not in benchmark("laptop")


@pytest.mark.slow
def test_one_step_and_a_linear_model_differ_on_the_uniform_part():
    arms = benchmark("smoke")
    found = {}
    for name in ("one step", "linear"):
        trials = arms[name].trials((10,))
        records = {record.key: record for record in LocalEngine().run(trials)}
        (found[name],) = arms[name].join([records[trial.key] for trial in trials], (10,))
    assert found["linear"].steps == COUNTS
    assert found["linear"].value("structured_error", 3) < 0.2
    assert found["one step"].value("uniform_error", 3) < found["linear"].value("uniform_error", 3)
    assert ALONG in arms
