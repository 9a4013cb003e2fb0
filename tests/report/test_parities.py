import dataclasses
import json

import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.one_step import first_step_network
from unlazy.probes import PartWeights, ScoreByOnes
from unlazy.report.charts import chart
from unlazy.report.figures import draw
from unlazy.report.parities import has_parity, parity_plots, parity_signs, shown_steps
from unlazy.tasks.equal_bits import EqualBits


@pytest.fixture(scope="module")
def record():
    learner = first_step_network(16, steps=20, record=(0, 1, 5, 11))
    (found,) = LocalEngine().run(
        [Trial(EqualBits(d=12, k=3), learner, 300, 10, (PartWeights(), ScoreByOnes(40)))]
    )
    return found


def test_plots_have_a_panel_per_step(record):
    assert has_parity(record) and record.steps == (0, 1, 5, 11, 22)
    assert shown_steps(record) == [0, 1, 11, 22]
    for plot in parity_plots(record, "Network"):
        assert [axes.get_title(loc="left") for axes in draw(plot).axes] == [
            "initialization",
            "step 1",
            "step 11",
            "step 22",
        ]
        text = json.dumps(chart(plot), allow_nan=False)
        assert "step 22" in text and len(text) < 100_000


def test_one_step_separates_the_weights_and_the_end_alternates(record):
    assert record.value("separation", 1) > 5 * record.value("separation", 0)
    assert parity_signs(record).tolist() == [-1, 1, -1, 1]
    last = parity_plots(record, "Network")[1].series[-1]
    assert np.array_equal(np.sign(last.y), parity_signs(record))
    assert record.value("ones_right") == 1


def test_records_without_these_arrays_have_no_plot(record):
    bare = dataclasses.replace(record, arrays={})
    assert not has_parity(bare)
    with pytest.raises(BadInput, match="has no weights by part"):
        parity_plots(bare, "Network")
