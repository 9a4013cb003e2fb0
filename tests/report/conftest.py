"""A claim, its verdict and its records, made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from toys import hand_record
from unlazy.lab.claims import Claim
from unlazy.lab.judging import judge
from unlazy.lab.rules import Check, Control, Published, Quantity

STEPS = (0, 1, 2, 10, 100)


def _snapshots(steps=STEPS, count=12, d=6):
    """Random neurons at first, then half of them near u and half near -u, as small as after one
    step of the theorem.
    """
    draw = np.random.default_rng(0)
    u = np.eye(d)[0]
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    gathered = signs[:, None] * u + 0.05 * draw.normal(size=(count, d))
    neurons = np.stack(
        [
            draw.normal(size=(count, d)) if step == 0 else gathered * (1e-9 if step == 1 else 1)
            for step in steps
        ]
    )
    return {
        "neurons": neurons.astype(np.float32),
        "directions": np.broadcast_to(u, (len(steps), 1, d)).astype(np.float32),
    }


def _network_record(seed=10, **options):
    accuracy = tuple(50 + 12.4 * place + 0.1 * (seed % 10) for place in range(len(STEPS)))
    cosine = (0.2, 0.99, 0.99, 0.995, 0.998)
    options = {
        "steps": STEPS,
        "arrays": _snapshots(),
        "test_accuracy": accuracy,
        "cosine": cosine,
    } | options
    return hand_record(f"network{seed}", seed=seed, **options)


def _claim(**changes):
    defaults = {
        "id": "toy2020/table9",
        "where": "Table 9",
        "kind": "table",
        "statement": "A network wins & a kernel does not.",
        "study": lambda scale: {},
        "checks": (
            Check(Quantity("Network", "test_accuracy"), lower=90.0),
            Check(Quantity("Kernel", "test_accuracy"), upper=80.0),
        ),
        "published": (
            Published(Quantity("Network", "test_accuracy"), "100", 1.25),
            Published(Quantity("Kernel", "test_accuracy"), "90", 1.25),
        ),
        "control": Control("no network at all", lambda scale: {}),
        "deviations": ("Fewer examples than in the paper.",),
    }
    return Claim(**(defaults | changes))


@pytest.fixture
def records():
    """Two arms with curves, one of them with neurons, and one arm with a single step."""
    seeds = (10, 11, 12)
    return {
        "Network": [_network_record(seed) for seed in seeds],
        "Kernel": [
            hand_record(
                f"kernel{s}", seed=s, steps=STEPS, test_accuracy=(50, 55, 60, 65, 70 + s / 10)
            )
            for s in seeds
        ],
        "Readout": [
            hand_record(f"readout{s}", seed=s, steps=(2,), test_accuracy=99.0) for s in seeds
        ],
    }


@pytest.fixture
def verdict(records):
    return judge(_claim(), "laptop", records, source="here")


@pytest.fixture
def claim():
    """Makes the claim, with changes."""
    return _claim


@pytest.fixture
def network_record():
    """Makes a record with neurons, with changes."""
    return _network_record
