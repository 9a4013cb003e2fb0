import pytest

from unlazy.core.errors import BadInput
from unlazy.papers.shi2022.fixed_feature_bounds import fixed_features, shift_invariant


def test_the_bound_at_hand_computed_values():
    assert fixed_features(po=0.5, N=32, B=1, k=5) == pytest.approx(0.5 * (1 - 8 / 32))
    assert fixed_features(po=0.5, N=512, B=1, k=5) == 0.0
    assert shift_invariant(po=0.5, L=4, k=5) == pytest.approx(0.5 * (1 - 8 / 32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 4}, "odd integer above 3, got 4"),
        ({"k": 3}, "odd integer above 3, got 3"),
        ({"po": 0.7}, "`po` must lie"),
        ({"N": 0}, "positive"),
    ],
)
def test_numbers_outside_the_theorem_are_rejected(change, message):
    with pytest.raises(BadInput, match=message):
        fixed_features(**({"po": 0.5, "N": 10, "B": 1.0, "k": 5} | change))
