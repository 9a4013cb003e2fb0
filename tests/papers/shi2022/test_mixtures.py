import jax
import pytest

from unlazy.papers.shi2022.mixtures import EXPERIMENTS, TABLE6_SETTINGS, CenterNetwork, table6

KEY = jax.random.key(0)


def test_the_printed_signs_need_biases():
    """With biases −(k − 2) the network equals 2y at every center. Without them it is −4y for k = 4
    and zero for odd k.
    """
    for k in (3, 4, 5, 6):
        found = CenterNetwork(k, biased=True).measure(key=KEY)
        assert found["right"] == 1.0 and found["value"] == 2.0
        assert CenterNetwork(k, -1.0, biased=True).measure(key=KEY)["right"] == 0.0
    assert CenterNetwork(4).measure(key=KEY)["value"] == -4.0
    for k in (3, 5):
        odd = CenterNetwork(k).measure(key=KEY)
        assert odd["right"] == 0.0 and abs(odd["value"]) < 1e-12


def test_noise_reduces_the_accuracy():
    quiet, noisy = (CenterNetwork(5, biased=True, noise=s).measure(key=KEY) for s in (0.0, 0.3))
    assert quiet["accuracy"] == 100 and 70 < noisy["accuracy"] < 99


@pytest.mark.parametrize("setting", TABLE6_SETTINGS)
def test_settings_are_arguments_of_the_study(setting):
    why, arguments = TABLE6_SETTINGS[setting]
    arms = table6("smoke", **arguments)
    assert why and arms.keys() == EXPERIMENTS.keys()
    keys = {
        name: [arm.trials([0])[0].key for arm in table6("smoke", **each).values()]
        for name, (_, each) in TABLE6_SETTINGS.items()
    }
    assert sum(found == keys[setting] for found in keys.values()) == 1


def test_the_printed_epochs_are_recorded():
    """10,000 examples in batches of 250 are 40 steps per epoch."""
    for arm, mixture in zip(table6("laptop").values(), EXPERIMENTS.values(), strict=True):
        recorded = arm.learner.recorded(10_000)
        assert {40 * epoch for epoch in (0, *mixture.epochs)} <= {*recorded}
        assert recorded[-1] == 40 * mixture.epochs[-1]
