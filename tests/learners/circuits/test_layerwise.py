import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from programs import drawn
from unlazy.core.errors import BadInput
from unlazy.learners.base import keys_of
from unlazy.learners.circuits.layerwise import (
    Layerwise,
    StreamStatistics,
    learn_circuit,
    sample_statistics,
)
from unlazy.learners.circuits.neural_gates import step_size, train_gates
from unlazy.learners.circuits.tree import layerwise_network
from unlazy.learners.learning_curves import OnPrefixes
from unlazy.networks.tree import initial_neurons, initial_tree, width_for
from unlazy.papers.malach2019.recovering import COUNTER_EXAMPLE
from unlazy.tasks.base import Batch, Sampler
from unlazy.tasks.circuits.bits import unpack
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    ProductDistribution,
    WeightedSample,
    draw,
    signs,
    stream,
)
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.families import BiasedParity, FixedCircuit, GenerativeCircuits
from unlazy.tasks.circuits.recovery import PopulationStatistics, WeightedSampleStatistics, recovery

N, K, COUNT, LIMIT = 4, 32, 200, 3000


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def plain_descent(pull, w, v, step, limit):
    """Gradient descent of one gate on its four numbers, in the coordinates of the network."""
    patterns = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    for taken in range(limit):
        inner = w @ patterns.T  # k, pattern
        output = v @ np.maximum(inner, 0)
        slope = (v[:, None] * (inner > 0) * (np.abs(output) < 1) * pull) @ patterns
        if not slope.any():
            return w, output, taken
        w = w - step / 2 * slope  # ⟨p, p⟩ = 2
    return w, output, limit


def test_training_on_lines_equals_training_the_neurons():
    rng = np.random.default_rng(0)
    pull = rng.normal(size=(3, 4)) * 0.2
    pull[1, 2] = 0.0
    neurons = initial_neurons(3, 12, key=jax.random.key(1))
    step = step_size("lemma", 8, pull, 12)
    found = train_gates(pull, neurons, step=step, limit=5000)
    for gate in range(3):
        _, output, taken = plain_descent(
            pull[gate], np.asarray(neurons.w[gate]), np.asarray(neurons.v[gate]), step[gate], 5000
        )
        np.testing.assert_allclose(found.values[gate], np.clip(output, -1, 1), atol=1e-9)
        assert found.steps[gate] == taken
    # S_p > 0 pulls towards −1.
    seen = pull != 0
    np.testing.assert_array_equal(found.values[seen] < 0, pull[seen] > 0)
    assert found.settled.all()


def test_a_layer_that_reaches_the_step_limit_is_not_settled():
    pull = np.full((1, 4), 0.01)
    found = train_gates(
        pull,
        initial_neurons(1, 16, key=jax.random.key(0)),
        step=step_size("lemma", 2, pull, 16),
        limit=10,
    )
    assert not found.settled[0] and found.steps[0] == 10


def test_step_sizes():
    pull = np.array([[0.5, -0.25, 0.1, 0.0], [0.0, 0.0, 0.0, 0.0]])
    lemma, theorem, scaled = (
        step_size(rate, 8, pull, 10) for rate in ("lemma", "theorem", "scaled")
    )
    np.testing.assert_allclose(theorem * 8, lemma)
    np.testing.assert_allclose(scaled / lemma, [2.0, 1.0])
    with pytest.raises(BadInput, match="theorem, lemma, scaled"):
        step_size("fast", 8, pull, 10)
    assert width_for(1024, 0.001) >= np.log(8 * 1024 * 10 / 0.001) / np.log(4 / 3)


_LITERAL = jax.jit(
    lambda x, y, key: layerwise_network(N, margin=0.4, steps=LIMIT, k=K).fit(
        Sampler(lambda n, key: Batch(x, y), N), COUNT, key=key
    )
)


@pytest.mark.slow
@given(st.integers(0, 2**31 - 1))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_three_implementations_give_the_same_gates_on_the_same_sample(seed):
    """The network through its loss, gates by counts, and gates by the weighted sample."""
    with jax.enable_x64(True):
        rng, key = np.random.default_rng(seed), jax.random.key(seed)
        circuit = random_circuit(N, rng)
        batch = draw(circuit, GenerativeDistribution(circuit), COUNT, rng)
        x, y = (np.asarray(part, float) for part in signs(batch))
        tree = initial_tree(N, K, key=jax.random.split(key, 3)[0])
        counted = learn_circuit(sample_statistics(batch), tree, margin=0.4, limit=LIMIT)
        weighed = learn_circuit(
            WeightedSampleStatistics(WeightedSample.of(x, y)), tree, margin=0.4, limit=LIMIT
        )
        literal = _LITERAL(x, y, key).at(0)
        assert counted.circuit == weighed.circuit == literal.circuit
        if counted.settled:
            np.testing.assert_array_equal(
                np.asarray(literal(jnp.asarray(x))) > 0, _outputs(counted.circuit, batch)
            )


def _outputs(circuit, batch):
    return unpack(circuit.output(batch.x)[None], batch.count)[:, 0]


@pytest.mark.parametrize(("printed", "low", "high"), [(False, 0.0, 0.0), (True, 0.1, 0.5)])
def test_the_sign_of_the_regularizer(printed, low, high):
    """The printed λ|1 − ŷ| loses OR(x1, x3), which satisfies the local correlation assumption; the
    proof's gradient does not.
    """
    task = drawn(COUNTER_EXAMPLE, jax.random.key(0))
    circuit, population = task.circuit, task.input_distribution
    known = correlations(circuit, population)
    assert known.margin == pytest.approx(0.28) and known.mean_label == pytest.approx(0.16)
    for seed in range(5):
        tree = initial_tree(4, 32, key=jax.random.key(seed))
        found = learn_circuit(
            PopulationStatistics(circuit, population),
            tree,
            margin=known.margin,
            printed_sign=printed,
        )
        assert found.settled and low <= recovery(circuit, population, found.circuit).error <= high


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["generative", "parity", "negative"])
def test_population_statistics_recover_every_influencing_gate(kind, seed):
    rng = np.random.default_rng(seed)
    if kind == "generative":
        circuit = random_circuit(32, rng)
        population = GenerativeDistribution(circuit, positive=0.5)
    else:
        # An odd parity of bits that are mostly −1 has a negative mean: labels are swapped.
        p = 0.75 if kind == "parity" else 0.25
        circuit, population = (
            parity_circuit(32, rng.choice(32, 5, replace=False).tolist()),
            ProductDistribution(np.full(32, p)),
        )
    margin = correlations(circuit, population).margin
    found = learn_circuit(
        PopulationStatistics(circuit, population),
        initial_tree(32, 64, key=jax.random.key(seed)),
        margin=margin,
        rate="scaled",
    )
    assert found.settled and recovery(circuit, population, found.circuit).exact


def test_a_stream_is_learned_from_as_a_sample_is(monkeypatch):
    circuit = random_circuit(16, np.random.default_rng(3))
    population = GenerativeDistribution(circuit)
    tree = initial_tree(16, 64, key=jax.random.key(3))
    monkeypatch.setattr("unlazy.tasks.circuits.distributions.CHUNK_WORDS", 64)
    source = stream(circuit, population, 5000, 5)
    assert len(list(source())) > 10
    by_stream = learn_circuit(StreamStatistics(source, 16), tree, margin=0.19, rate="scaled")
    assert recovery(circuit, population, by_stream.circuit).exact
    with pytest.raises(BadInput, match="empty"):
        StreamStatistics(lambda: iter(()), 16).table([])


def test_without_correlation_a_gate_is_lost():
    for correlated in (True, False):
        # Where x1 is fair, so is the gate on x1, x2, and that on x3, x4 alone has no correlation
        # with the label.
        task = drawn(
            FixedCircuit("XNOR / XNOR XNOR", (0.85 if correlated else 0.5, 0.85, 0.85, 0.85)),
            jax.random.key(0),
        )
        circuit, population = task.circuit, task.input_distribution
        found = learn_circuit(
            PopulationStatistics(circuit, population),
            initial_tree(4, 32, key=jax.random.key(0)),
            margin=0.05,
            rate="scaled",
        )
        seen = recovery(circuit, population, found.circuit)
        assert seen.exact == correlated
        gaps = correlations(circuit, population).gaps[1]
        assert (gaps > 0.01).all() == correlated
        if not correlated:
            assert found.circuit.levels[1][1] in (0, 15)  # the gate on x3, x4 became constant


def test_rounding_does_not_swap_the_labels_of_a_balanced_sample():
    """As fractions, 200 of 400 labels may sum to slightly less than one half."""
    circuit = random_circuit(8, np.random.default_rng(0))
    x, y = signs(draw(circuit, GenerativeDistribution(circuit), 2000, np.random.default_rng(1)))
    chosen = np.concatenate([np.flatnonzero(y > 0)[:190], np.flatnonzero(y < 0)[:190]])
    sample = WeightedSample.of(x[chosen], y[chosen])
    tree = initial_tree(8, 32, key=jax.random.key(0))
    by_counts = learn_circuit(sample_statistics(sample.packed), tree, margin=0.29)
    by_weights = learn_circuit(WeightedSampleStatistics(sample), tree, margin=0.29)
    tilted = np.full(380, 1 / 380) * (1 - 1e-12 * y[chosen])
    by_tilted = learn_circuit(
        WeightedSampleStatistics(WeightedSample(sample.x, sample.y, tilted)), tree, margin=0.29
    )
    assert by_counts.circuit == by_weights.circuit == by_tilted.circuit


@pytest.mark.parametrize(
    "family",
    [
        GenerativeCircuits(16),
        BiasedParity(16, 4, 0.75),
        FixedCircuit("OR / LEFT LEFT", (0.3, 0.5, 0.4, 0.5)),
    ],
)
def test_a_learner_on_the_population_uses_no_sample(family):
    task, key = drawn(family, jax.random.key(5)), jax.random.key(6)
    known = correlations(task.circuit, task.input_distribution)
    learner = Layerwise(margin=known.margin, rate="scaled", source="law", precision=64)
    trace = learner.fit(task.sampler, 1, key=key)
    assert (
        recovery(task.circuit, task.input_distribution, trace.at(0).circuit).exact
        and trace.notes["settled"] == 1
        and trace.notes["steps"] > 0
    )
    # Other examples, and more of them, change nothing.
    blind = dataclasses.replace(
        task.sampler, draw=lambda n, key: Batch(jnp.ones((n, task.dimension)), jnp.ones(n))
    )
    np.testing.assert_array_equal(learner.fit(blind, 7, key=key).models.gates, trace.models.gates)


@pytest.mark.slow
def test_all_sources_start_from_the_sample_and_the_tree_of_the_key():
    """So does the network: learners that split keys in the same way are paired."""
    task, key = drawn(GenerativeCircuits(4), jax.random.key(0)), jax.random.key(7)
    options = dict(margin=0.4, k=K, limit=LIMIT, precision=64)
    counted, weighed = (
        Layerwise(source=source, **options).fit(task.sampler, COUNT, key=key)
        for source in ("sample", "weighted sample")
    )
    literal = layerwise_network(4, margin=0.4, k=K, steps=LIMIT, precision=64).fit(
        task.sampler, COUNT, key=key
    )
    np.testing.assert_array_equal(counted.seen.x, literal.seen.x)
    assert counted.at(0).circuit == weighed.at(0).circuit == literal.at(0).circuit
    np.testing.assert_array_equal(
        counted.losses, [np.mean(np.asarray(counted.at(0)(counted.seen.x)) != counted.seen.y)]
    )


def test_data_without_a_circuit_have_no_population():
    with pytest.raises(BadInput, match="Use a sample"):
        Layerwise(margin=0.4, source="law", precision=64).fit(
            Sampler(drawn(GenerativeCircuits(4), jax.random.key(0)).draw, 4),
            1,
            key=jax.random.key(0),
        )
    with pytest.raises(BadInput, match="sample, weighted sample, "):
        Layerwise(margin=0.4, source="oracle")


@pytest.mark.parametrize("source", ["sample", "weighted sample"])
def test_prefixes_learned_at_once_are_those_learned_one_by_one(source):
    """Also if a prefix ends within a packed word, or its labels are negated."""
    task, key = drawn(BiasedParity(8, 3, 0.3), jax.random.key(0)), jax.random.key(1)
    learner = Layerwise(margin=0.1, k=K, rate="scaled", source=source, precision=64)
    sizes = (40, 100, 1000)
    together = OnPrefixes.of(learner, sizes).fit(task.sampler, 1000, key=key)
    assert together.steps == sizes and np.any(np.asarray(together.losses) > 0)
    whole = task.sampler.draw(1000, keys_of(key)[1])
    for index, size in enumerate(sizes):
        sampler = Sampler(lambda n, key: Batch(whole.x[:n], whole.y[:n]), 8)
        alone = learner.fit(sampler, size, key=key)
        assert together.at(index).circuit == alone.at(0).circuit
        assert (
            together.losses[index] == alone.losses[0]
            and together.notes["steps"][index] == alone.notes["steps"][0]
        )
