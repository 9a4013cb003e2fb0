import numpy as np
import pytest

from unlazy.core.threefry import new_key
from unlazy.papers.daniely2020.setting import Mixture


@pytest.mark.slow
def test_the_family_equals_the_mixture_of_the_paper():
    found = Mixture(7, 3, examples=20_000).measure(key=new_key(0))
    assert found["law"] < 1e-6 and found["label"] == 0 and found["drawn"] < 5
    assert (
        np.isclose(found["inside"], 0.5) and found["outside"] < 1e-12 and found["balance"] < 1e-12
    )
    other = Mixture(7, 3, 0.0, examples=20_000).measure(key=new_key(0))
    assert other["law"] > 1e-3 and other["drawn"] > 20
