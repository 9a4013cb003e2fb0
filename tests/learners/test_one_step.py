import jax
import jax.numpy as jnp
import numpy as np

from programs import drawn, fitted
from unlazy.core.metrics import Outputs
from unlazy.learners.one_step import first_step_network, one_step_readout
from unlazy.tasks.equal_bits import EqualBits


def test_one_step_leaves_multiples_of_the_mean_of_label_times_input():
    with jax.enable_x64(True):
        task = drawn(EqualBits(d=10, k=3), jax.random.key(0))
        trace = fitted(one_step_readout(16, record=(1,)), task.sampler, 400, jax.random.key(1))
        w, b = np.asarray(trace.at(0).w), np.asarray(trace.at(0).b)
        mean = np.asarray(jnp.mean(trace.seen.y[:, None] * trace.seen.x, axis=0))
        open_ones = b > 0.3
        cosines = (
            np.abs(w[open_ones] @ mean)
            / np.linalg.norm(w[open_ones], axis=1)
            / np.linalg.norm(mean)
        )
        assert np.allclose(cosines, 1, atol=1e-9)
        assert np.allclose(w[b < -0.3], 0)


def test_tuning_varies_spread_and_ridge_and_the_hinge_needs_signs():
    tried = one_step_readout(4).tuning(12)
    assert len({tuple(one.settings.items()) for one in tried}) == 12
    assert one_step_readout(4).tuning(1)[0].settings == one_step_readout(4).settings
    classes = Outputs("classes", 3)
    assert one_step_readout(4).suits(classes) and not first_step_network(4).suits(classes)
