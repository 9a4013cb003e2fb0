import jax
import numpy as np
import pytest

from programs import drawn, sampled
from unlazy.core.threefry import new_key
from unlazy.kernels.feature_maps import RawFeatures
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.features import FeatureRidge
from unlazy.probes.performance import Performance
from unlazy.tasks.base import Population
from unlazy.tasks.dictionary.patterns import ParityMixture
from unlazy.tasks.multi_index import MultiIndex
from unlazy.tasks.shuffled_labels import ShuffledLabels

FAMILY = ParityMixture(d=12, D=12, k=3)


def test_labels_keep_their_frequencies_and_are_independent_of_the_inputs():
    task = drawn(FAMILY, new_key(0))
    x, y = sampled(FAMILY.handed(task), 20_000, new_key(1))
    null_x, null_y = sampled(ShuffledLabels(FAMILY).handed(task), 20_000, new_key(1))
    assert float(np.mean(null_y)) == pytest.approx(float(np.mean(y)), abs=0.03)
    linear = (
        np.linalg.norm(np.asarray(x.T @ y) / 20_000),
        np.linalg.norm(np.asarray(null_x.T @ null_y) / 20_000),
    )
    assert linear[1] < 0.2 * linear[0]


def test_a_population_has_every_point_with_both_labels():
    family = MultiIndex(d=4)
    task = drawn(family, new_key(0))
    population, null = task.population(), ShuffledLabels(family).handed(task).population()
    assert isinstance(null, Population) and len(null.y) == 2 * len(population.y)
    assert float(np.sum(null.weight)) == pytest.approx(1.0, abs=1e-6) and np.allclose(
        null.x.T @ (null.weight * null.y), 0, atol=1e-6
    )


def test_nothing_can_be_learned_and_the_truth_is_the_test():
    learner, probes = FeatureRidge(RawFeatures()), (Performance(4000),)
    trials = [
        Trial(family, learner, 4000, 10, probes) for family in (FAMILY, ShuffledLabels(FAMILY))
    ]
    assert trials[0].key != trials[1].key
    true, null = (next(iter(LocalEngine().run([trial]))).value("test_accuracy") for trial in trials)
    assert true > 60 and abs(null - 50) < 15
    same = zip(
        *(
            jax.tree.leaves(drawn(family, new_key(3)))
            for family in (FAMILY, ShuffledLabels(FAMILY))
        ),
        strict=True,
    )
    assert all(np.array_equal(a, b) for a, b in same)
