import json

import pytest
from click.testing import CliRunner

from unlazy.cli.main import main
from unlazy.core.errors import BadInput
from unlazy.lab import registry as catalogue
from unlazy.lab.scaling import CONTENDERS, contender, dimensions, lay_out
from unlazy.tasks.multi_index import MultiIndex


@pytest.mark.parametrize(("text", "row"), [("d=32..256", (32, 64, 128, 256)), ("d=32..100", (32, 64)), ("d=24,16", (16, 24))])
def test_dimensions_are_read(text, row):
    assert dimensions(text) == row


@pytest.mark.parametrize("text", ["n=3", "d=", "d=64..32", "d=1..8", "d=a"])
def test_bad_dimensions_are_refused(text):
    with pytest.raises(BadInput):
        dimensions(text)


def test_kernels_are_run_as_far_as_is_feasible_and_predicted_beyond():
    study = lay_out(MultiIndex(d=8), {name: CONTENDERS[name] for name in ("sgd", "ntk")}, (32, 64, 128, 256))
    sgd, ntk = study.rows
    assert sgd.run == (32, 64, 128, 256) and not sgd.predicted
    assert ntk.run == (32, 48, 64, 96) and sorted(ntk.predicted) == [32, 48, 64, 96, 128, 192, 256]
    keys = [each.key for each in study.measurements(range(2))]
    assert len(set(keys)) == len(keys) == 16
    assert keys == [each.key for each in study.measurements(range(2))]


def test_what_cannot_be_scaled_is_refused():
    shi = catalogue.tasks()["shi2022/task"].thing
    with pytest.raises(BadInput, match="hidden coordinates"):
        lay_out(shi, CONTENDERS, (32,))
    with pytest.raises(BadInput, match="Did you mean 'sgd'"):
        contender("sdg", {})
    with pytest.raises(BadInput, match="target error"):
        lay_out(MultiIndex(d=8), {}, (32,), target=0.7)


def test_the_command_measures_once_and_draws(tmp_path):
    options = ["--learner", "quadratic", "--vary", "d=8,12", "--target-error", "0.2", "--seeds", "2", "--store", str(tmp_path / "s.sqlite")]
    options += ["--out", str(tmp_path / "f.png"), "--json", str(tmp_path / "f.json")]
    first = CliRunner().invoke(main, ["scaling", "glasgow2023/task", *options])
    assert first.exit_code == 0, first.output
    assert "searches" in first.output and "to run" in first.output and (tmp_path / "f.png").stat().st_size > 10_000
    (found,) = json.loads((tmp_path / "f.json").read_text())["learners"]
    assert found["dimensions"] == [8, 12] and len(found["samples"]) == 2 and found["exponent"] > 1
    again = CliRunner().invoke(main, ["scaling", "glasgow2023/task", *options])
    assert "in the store" in again.output
    wrong = CliRunner().invoke(main, ["scaling", "glasgow2023/tusk", *options])
    assert wrong.exit_code == 2 and "Did you mean" in wrong.output
