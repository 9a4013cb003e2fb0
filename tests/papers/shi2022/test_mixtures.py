import jax

from unlazy.papers.shi2022.mixtures import CenterNetwork

KEY = jax.random.key(0)


def test_the_printed_signs_are_wrong():
    """At the centers the printed network is −y for k = 4 and zero for k = 5; for k = 4 the opposite
    signs are correct.
    """
    assert CenterNetwork(4).measure(key=KEY) == {"right": 0.0, "value": -1.0}
    assert CenterNetwork(4, -1.0).measure(key=KEY)["right"] == 1.0
    assert (
        CenterNetwork(5).measure(key=KEY)["right"] == 0.0
        and abs(CenterNetwork(5).measure(key=KEY)["value"]) < 1e-12
    )
