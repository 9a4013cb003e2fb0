import json

import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.one_step import first_step_network
from unlazy.probes import PartWeights, ScoreByOnes
from unlazy.report.parities import (
    has_parity,
    parity_figure,
    parity_signs,
    scores_chart,
    shown_steps,
    weights_chart,
)
from unlazy.tasks.equal_bits import EqualBits


@pytest.fixture(scope="module")
def record():
    learner = first_step_network(16, steps=20, record=(0, 1, 5, 11))
    (found,) = LocalEngine().run(
        [Trial(EqualBits(d=12, k=3), learner, 300, 10, (PartWeights(), ScoreByOnes(40)))]
    )
    return found


def test_the_figure_has_a_column_a_step(record):
    assert has_parity(record) and record.steps == (0, 1, 5, 11, 22)
    assert shown_steps(record) == [0, 1, 11, 22]
    figure = parity_figure(record)
    assert len(figure.axes) == 8
    assert [axes.get_title(loc="left") for axes in figure.axes[:4]] == [
        "initialisation",
        "step 1",
        "step 11",
        "step 22",
    ]
    assert len(parity_figure(record, steps=(1,)).axes) == 2
    with pytest.raises(BadInput, match=r"Step \[7\] is not recorded"):
        parity_figure(record, steps=(7,))


def test_one_step_separates_the_weights_and_the_end_zigzags(record):
    assert record.value("separation", 1) > 5 * record.value("separation", 0)
    assert parity_signs(record).tolist() == [-1, 1, -1, 1]
    assert (
        np.array_equal(np.sign(record.arrays["ones_mean"][-1]), parity_signs(record))
        and record.value("ones_right") == 1
    )


def test_charts_are_plain_data(record):
    for chart in (weights_chart(record), scores_chart(record)):
        text = json.dumps(chart, allow_nan=False)
        assert "step 22" in text and len(text) < 100_000
    assert len(scores_chart(record)["data"]) == 8


def test_records_without_these_arrays_have_no_picture(record):
    import dataclasses

    bare = dataclasses.replace(record, arrays={})
    assert not has_parity(bare)
    with pytest.raises(BadInput, match="holds no weights by part"):
        parity_figure(bare)
