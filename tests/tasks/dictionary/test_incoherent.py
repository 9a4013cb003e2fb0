import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts import check_family
from programs import drawn, sampled
from unlazy.core.errors import BadInput
from unlazy.tasks.dictionary.incoherent import GeneralParity, incoherence, incoherent_dictionary


def test_the_dictionary_reports_its_true_mu():
    for coherence in (0.0, 0.3, 2.0):
        rows = np.asarray(incoherent_dictionary(40, 10, coherence, key=jax.random.key(0)))
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        largest = max(abs(rows[i] @ rows[j]) for i in range(10) for j in range(i))
        assert float(incoherence(jnp.asarray(rows))) == pytest.approx(
            np.sqrt(40) * largest, rel=1e-5, abs=1e-5
        )
        assert (largest < 1e-5) == (coherence == 0.0)


@pytest.mark.slow
def test_the_general_setting():
    family = GeneralParity(d=60, D=30, k=3)
    check_family(family)
    task = drawn(family, jax.random.key(0))
    assert 0.3 < float(task.mu) < 4
    x, y = (np.asarray(part) for part in sampled(task, 30_000, jax.random.key(1)))
    assert np.mean(y < 0) == pytest.approx(0.7, abs=0.01)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.02)
    assert np.mean(np.sum(x**2, axis=1)) == pytest.approx(1, rel=0.25), (
        "σ̃ leaves out the correlations of patterns"
    )
    assert family.sigma == pytest.approx(float(task.sigma), rel=0.1)
    present = np.asarray(x * task.sigma) @ np.linalg.pinv(np.asarray(task.dictionary))
    background = present[:, ~np.asarray(task.relevant)]
    covariance = np.cov(background.T)
    off = covariance[~np.eye(len(covariance), dtype=bool)]
    assert off.mean() == pytest.approx(family.swing**2, abs=0.003), (
        "one hidden sign shifts all background rates"
    )
    assert np.std(np.asarray(task.rates)) > 0.05, "rates differ"
    relevant = present[:, np.asarray(task.relevant)].sum(axis=1)
    assert abs(np.corrcoef(relevant, background.sum(axis=1))[0, 1]) < 0.03, (
        "the background is independent of A"
    )


def test_gamma_is_that_of_balanced_classes():
    assert GeneralParity(d=60, D=30, k=3, negative=0.9).gamma == pytest.approx(
        GeneralParity(d=60, D=30, k=3, negative=0.5).gamma
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"swing": 0.3}, "probabilities"),
        ({"noise": -1}, "negative"),
        ({"k": 2}, "odd"),
        ({"D": 90}, "D ≤ d"),
    ],
)
def test_parameters_outside_are_refused(change, says):
    with pytest.raises(BadInput, match=says):
        GeneralParity(**({"d": 60, "D": 30, "k": 3} | change))
