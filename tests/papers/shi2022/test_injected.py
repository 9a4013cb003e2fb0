"""Injected inputs: regularizer in closed form, labels by the teacher, parts and mixtures."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from programs import drawn
from unlazy.core.errors import BadInput
from unlazy.papers.shi2022.injected import InjectedImages, TeacherDescent, balance
from unlazy.papers.shi2022.structure import DENSE, quadratic, taught_by


@pytest.mark.slow
def test_the_regularizer_in_closed_form():
    even, sure, labeled = jnp.zeros((2, 2)), 50 * jnp.eye(2), jnp.array([[5.0, -3.0]])
    none, one = jnp.zeros((2, 2)), jnp.array([[1.0, 0.0]])
    # Uniform rows: R1 = −ln 2, R2 = ln 2. One-hot rows of different classes: R1 = −ln 2, R2 = 0.
    # One-hot rows of one class: both 0.
    assert balance(even, none, 0.5) == pytest.approx(-0.5 * math.log(2))
    assert balance(sure, none, 0.5) == pytest.approx(-math.log(2), abs=1e-5)
    assert balance(sure[jnp.array([0, 0])], none, 0.5) == pytest.approx(0, abs=1e-5)
    # Labeled rows are ignored.
    assert balance(
        jnp.concatenate([sure, labeled]), jnp.concatenate([none, one]), 0.5
    ) == pytest.approx(-math.log(2), abs=1e-5)
    stage = TeacherDescent({"w": 1.0}, steps=1, loss="softmax", trade=0.0)
    mixed = stage.mean_loss(
        jnp.concatenate([labeled, even]), jnp.concatenate([one, none]), jnp.ones(3)
    )
    assert mixed == pytest.approx(math.log1p(math.exp(-8)) - math.log(2), abs=1e-5)


@pytest.fixture
def images(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    draw = np.random.default_rng(0)
    y = np.arange(90) % 3
    x = draw.integers(0, 30, (90, 4, 4)) + 100 * (np.eye(3, 16, dtype=int)[y].reshape(90, 4, 4))
    np.savez(
        tmp_path / "three.npz",
        x_train=x[:60].astype(np.uint8),
        y_train=y[:60],
        x_test=x[60:].astype(np.uint8),
        y_test=y[60:],
    )
    return str(tmp_path / "three.npz")


@pytest.mark.slow
def test_a_teacher_labels_both_parts(images):
    teacher = taught_by(quadratic(6, 16), DENSE, 0.02, 150, 20)
    family = InjectedImages(images, teacher=teacher, taught=200, flat=True, alpha=0.25)
    task = drawn(family, jax.random.key(0))
    x, y = task.draw(400, jax.random.key(1))
    np.testing.assert_array_equal(jnp.argmax(task.teacher(x), axis=1), jnp.argmax(y, axis=1))
    pool = task.sources.pool
    levels = 255 * (np.asarray(x) * np.asarray(pool.spread) + np.asarray(pool.mean))
    # Pixels are integers, Gaussians are not.
    fraction = np.mean(np.all(np.abs(levels - np.round(levels)) < 0.01, axis=1))
    assert 0.68 < fraction < 0.82, "a quarter of the inputs are Gaussians"
    # The teacher has learned the images, and its labels of Gaussians are spread over the classes.
    original, classes = task.sources.original(200, jax.random.key(2), held=True)
    assert jnp.mean(jnp.argmax(task.teacher(original), axis=1) == classes) > 0.9
    gaussian = task.part(300, jax.random.key(3), injected=True)
    assert (
        jnp.max(jnp.mean(gaussian.y, axis=0)) < 0.6 and abs(float(jnp.std(gaussian.x)) - 1) < 0.05
    )
    with pytest.raises(BadInput, match="`alpha` must lie in"):
        InjectedImages(images, teacher=teacher, alpha=1.5)


def test_a_missing_dataset_is_reported_for_either_part(images, tmp_path, monkeypatch):
    monkeypatch.setenv("UNLAZY_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    teacher = taught_by(quadratic(2, 16), DENSE, 0.02, 5, 20)
    assert InjectedImages(images, teacher=teacher, flat=True).missing is None
    assert (
        "Tiny ImageNet is missing"
        in InjectedImages(images, injected="tinyimagenet", teacher=teacher, flat=True).missing
    )
