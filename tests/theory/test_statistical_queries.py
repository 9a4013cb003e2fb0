import math

import numpy as np
import pytest

from unlazy.theory.statistical_queries import (
    correlations,
    parities,
    parity_dimension,
    queries_needed,
    query_dimension,
)


@pytest.mark.parametrize(("D", "k"), [(4, 1), (5, 2), (5, 3)])
def test_dimension_of_parities_is_their_number(D, k):
    assert (
        query_dimension(correlations(parities(D, k))) == parity_dimension(D, k) == math.comb(D, k)
    )


def test_concepts_that_agree_count_once():
    concepts = parities(4, 1)
    assert query_dimension(correlations(np.concatenate([concepts, concepts]))) == 4
    assert query_dimension(correlations(np.concatenate([concepts, -concepts]))) == 4
    assert query_dimension(np.ones((3, 3))) == 1


def test_slight_correlation_limits_the_dimension():
    """Pairwise correlations of 1/27 allow three concepts, and no fourth."""
    matrix = np.full((6, 6), 1 / 27) + np.eye(6) * (26 / 27)
    assert query_dimension(matrix) == 3


def test_another_distribution_makes_parities_correlated():
    concepts = parities(3, 1)
    weight = np.where(np.all(concepts == 1, axis=0), 0.5, 0.5 / 7)
    assert query_dimension(correlations(concepts, weight)) == 1


def test_queries_at_the_size_of_table_1():
    assert queries_needed(parity_dimension(100, 5)) == pytest.approx(211.2, abs=0.1)
