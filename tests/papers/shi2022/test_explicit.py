import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlazy.papers.shi2022.explicit import explicit_network
from unlazy.tasks.dictionary.patterns import HiddenPatterns, PatternDistribution


@pytest.mark.slow
@settings(max_examples=4, deadline=None, derandomize=True)
@given(
    data=st.data(),
    k=st.sampled_from((1, 3, 10)),
    rate=st.floats(0.02, 0.98),
    seed=st.integers(0, 2**16),
)
def test_every_input_of_any_task_is_labeled_exactly(data, k, rate, seed):
    P = tuple(sorted(data.draw(st.sets(st.integers(1, k), min_size=1))))
    D, rng = k + 3, np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(D, D)))
    with jax.enable_x64(True):
        distribution = PatternDistribution(
            jnp.ones(1), jnp.full(1, rate), jnp.full(1, 0.5), D, k, P
        )
        task = HiddenPatterns(jnp.asarray(q), jnp.asarray(rng.permutation(D) < k), distribution)
        # Every number of relevant patterns, each with the background absent, present and random.
        relevant, count = np.flatnonzero(task.relevant), np.repeat(np.arange(k + 1), 3)
        present = (
            np.zeros((len(count), D)) + np.array([0, 1, 2])[np.arange(len(count)) % 3][:, None]
        )
        present = np.where(present == 2, rng.random(present.shape) < 0.5, present)
        for row, s in enumerate(count):
            present[row, relevant] = rng.permutation(k) < s
        x = (
            jnp.asarray((present - np.asarray(task.mean)) / float(distribution.moments.sigma))
            @ task.dictionary
        )
        y = np.where(np.isin(count, P), 1.0, -1.0)
        net = explicit_network(task)
        np.testing.assert_allclose(net(x), y, atol=1e-9)
        np.testing.assert_array_equal(task.target(x), y)
        a, b = np.abs(net.a), np.abs(net.b)
        assert (
            len(a) == 3 * (k + 1)
            and a.max() <= 32 * k
            and b.max() <= 0.5
            and b.min() >= 1 / (32 * k) - 1e-12
        )
        assert np.abs(x @ net.w.T + net.b[None, :]).max() <= 1
