import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.report.circuits import recovery_plot, recovery_text, summary
from unlazy.report.figures import draw
from unlazy.tasks.circuits.circuit import Circuit
from unlazy.tasks.circuits.distributions import GenerativeDistribution, ProductDistribution
from unlazy.tasks.circuits.recovery import Recovery, recovery

TARGET, LEARNED = Circuit.parse("OR / AND NAND"), Circuit.parse("OR / AND NOR")


def seen():
    return recovery(TARGET, GenerativeDistribution(TARGET), LEARNED)


def test_the_text_shows_each_gate_and_what_is_wrong():
    text = recovery_text(TARGET, LEARNED, seen())
    assert "✗ NOR (target NAND)" in text and "├─ ✓ AND" in text and text.count("x") == 4
    assert text.splitlines()[-1] == summary(seen())
    idle = Circuit.parse("LEFT / AND XOR")
    text = recovery_text(idle, idle, recovery(idle, ProductDistribution(np.full(4, 0.5)), idle))
    assert "└─ · XOR" in text and "2 right, up to sign, 1 without influence; error 0 %" in text


def test_the_tree_marks_every_gate():
    plot = recovery_plot(TARGET, LEARNED, seen())
    series = {each.name: each for each in plot.series}
    assert (
        series["right, up to sign"].text == ("AND",) and "NOR\n(for NAND)" in series["wrong"].text
    )
    assert series["inputs"].text[-1] == "x4" and series["edges"].x.count(0.5) == 2
    (axes,) = draw(plot).axes
    assert "NOR\n(for NAND)" in {text.get_text() for text in axes.texts}


def test_a_tree_that_is_too_wide_is_refused():
    wide = Circuit(np.full(2047, 8))
    with pytest.raises(BadInput, match="at most 1024"):
        recovery_plot(wide, wide, Recovery([], 0.0))
