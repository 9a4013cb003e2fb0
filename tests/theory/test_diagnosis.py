import numpy as np
import pytest
from click.testing import CliRunner

from unlazy.cli.main import main
from unlazy.core.errors import BadInput
from unlazy.report.view import view_of
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    ProductDistribution,
    draw,
    signs,
)
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.theory.diagnosis import diagnose


def data(kind, n, count, seed):
    """Examples of a random circuit whose inputs come in random order, and that order."""
    rng = np.random.default_rng(seed)
    if kind == "generative":
        circuit = random_circuit(n, rng)
        distribution = GenerativeDistribution(circuit)
    else:
        circuit = parity_circuit(n, rng.choice(n, n.bit_length() - 1, replace=False).tolist())
        distribution = ProductDistribution(np.full(n, 0.5 if kind == "uniform parity" else 0.75))
    x, y = signs(draw(circuit, distribution, count, rng))
    order = rng.permutation(n)
    return x[:, order], y, order


@pytest.mark.parametrize(
    ("kind", "n"), [("generative", 8), ("generative", 16), ("parity", 8), ("uniform parity", 8)]
)
@pytest.mark.parametrize("seed", [10, 11])
def test_the_prediction_is_right_on_circuits_with_hidden_input_order(kind, n, seed):
    x, y, _ = data(kind, n, 20_000, seed)
    found = diagnose(x, y)
    assert found.works == (kind != "uniform parity")
    assert found.error == 0 if found.works else found.error > 0.4


def test_siblings_are_found():
    x, y, order = data("generative", 16, 20_000, 12)
    pairs = [{order[join.left] // 2, order[join.right] // 2} for join in diagnose(x, y).joins[:8]]
    assert all(len(pair) == 1 for pair in pairs)


def test_inputs_without_influence_are_removed_and_reported():
    rng = np.random.default_rng(0)
    x = np.where(rng.random((4000, 5)) < 0.6, 1, -1)
    found = diagnose(x, np.where((x[:, 1] > 0) & (x[:, 3] > 0), 1, 0), tuple("abcde"))
    assert found.works and found.formula() == "AND(b, d)" and found.set_aside == (0, 2, 4)
    shown = view_of(found)
    assert (
        "training works here" in shown.takeaway and "3 of 5 inputs" in dict(shown.lines)["Unused"]
    )
    noise = diagnose(x, np.where(rng.random(4000) < 0.5, 1, -1))
    assert (
        not noise.works and "does not work" in view_of(noise).takeaway and noise.formula() == "none"
    )


def test_non_binary_data_are_refused():
    x, y = np.ones((30, 2)), np.ones(30)
    for inputs, labels, says in [
        (np.arange(60).reshape(30, 2), y, "input x1 must take at most two"),
        (x, np.arange(30), "the label must take at most two"),
        (x[:5], y[:5], "At least 20"),
        (x, y[:5], "one row per label"),
    ]:
        with pytest.raises(BadInput, match=says):
            diagnose(inputs, labels)


def test_a_file_is_checked_from_the_command_line(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, (400, 3))
    rows = np.column_stack([x, x[:, 0] | x[:, 2]])
    path = tmp_path / "bits.csv"
    np.savetxt(path, rows, fmt="%d", delimiter=",", header="a,b,c,y", comments="")
    run = CliRunner().invoke(main, ["circuit-check", str(path), "--target", "y"])
    assert (
        run.exit_code == 0
        and "training works here" in run.output.replace("\n", " ")
        and "OR(a, c)" in run.output
    )
    path.write_text("a,y\n1,0\n1\n")
    for target, says in (("z", "no column named 'z'"), ("y", "Line 3")):
        run = CliRunner().invoke(main, ["circuit-check", str(path), "--target", target])
        assert run.exit_code == 2 and says in run.output
    path.write_text("a,y\n1,maybe\n")
    for name, says in ((path, "only numbers"), (tmp_path / "none.csv", "cannot be read")):
        run = CliRunner().invoke(main, ["circuit-check", str(name), "--target", "y"])
        assert run.exit_code == 2 and says in run.output
