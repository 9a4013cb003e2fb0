"""Families of images: what a seed cuts, what an example is made of, and that trials share the
images.
"""

import dataclasses
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from contracts import check_family
from image_files import digits, pixels, write_images, write_mnist, write_svhn
from unlazy.core.errors import BadInput
from unlazy.core.metrics import Outputs
from unlazy.kernels.feature_maps import RawFeatures
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.features import FeatureRidge
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.inits import PlainInit
from unlazy.probes.performance import Performance
from unlazy.tasks.images.families import ImageClasses, ImagePatches, StackedDigits
from unlazy.tasks.shuffled_labels import ShuffledLabels


@pytest.fixture
def mnist(folder):
    """Return images whose brightness is their class: each pixel of digit c is 20·c."""
    y, tests = digits(300), digits(100)
    np.savez(
        folder / "mnist.npz",
        x_train=np.broadcast_to((20 * y)[:, None, None], (300, 28, 28)).astype(np.uint8),
        y_train=y,
        x_test=np.broadcast_to((20 * tests + 1)[:, None, None], (100, 28, 28)).astype(np.uint8),
        y_test=tests,
    )


def brightness(pool, x):
    """Return the bytes of standardized pixels."""
    return np.round(255 * (np.asarray(x) * pool.spread + pool.mean)).astype(int)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ImageClasses("mnist", chosen=(0, 1), flat=True, balanced=True),
        lambda: ImagePatches("mnist", k=3),
    ],
)
def test_they_keep_the_contract(mnist, make):
    check_family(make(), n=60)


def test_a_set_with_a_test_part_keeps_it_and_a_seed_draws_the_order(mnist):
    family = ImageClasses("mnist")
    assert (
        family.most_examples == 300
        and family.outputs == Outputs("classes", 10)
        and family.dimension == 784
    )
    task = family.task(key=jax.random.key(0))
    x, y = task.draw(300, jax.random.key(1))
    found = brightness(task.pool, x[:, 0, 0, 0])
    np.testing.assert_array_equal(found, 20 * np.argmax(y, axis=1))
    assert np.bincount(np.argmax(y, axis=1)).tolist() == [30] * 10, "each image once"
    held, _ = task.test(1000, jax.random.key(2))
    assert len(held) == 100 and set(brightness(task.pool, held[:, 0, 0, 0]) % 20) == {1}
    np.testing.assert_allclose([np.mean(x), np.std(x)], [0, 1], atol=1e-5)
    with pytest.raises(BadInput, match="There are 300 training images, but 301"):
        task.draw(301, jax.random.key(0))
    with pytest.raises(BadInput, match="at most 300"):
        Trial(family, FeatureRidge(RawFeatures()), 301, 0, ())


def test_a_set_without_one_is_cut_by_the_seed(folder):
    write_images(folder / "mine", n=10)
    family = ImageClasses(str(folder / "mine"))
    cuts = [family.task(key=jax.random.key(seed)).pool for seed in (0, 1)]
    assert family.most_examples == 16 and family.outputs.kind == "signs"
    for pool in cuts:
        assert sorted([*pool.train.tolist(), *pool.held.tolist()]) == list(range(20))
    assert cuts[0].held.tolist() != cuts[1].held.tolist()


def test_classes_sizes_and_balance_can_be_chosen(folder):
    x = pixels(12, (4, 4, 3))
    np.savez(
        folder / "own.npz",
        x_train=x,
        y_train=[0, 1, 2, 2, 2, 1, 0, 1, 1, 2, 2, 2],
        classes=["ant", "bee", "cow"],
    )
    data = str(folder / "own.npz")
    two = ImageClasses(data, chosen=("cow", "bee"), side=2, balanced=True)
    catalog = two.catalog
    assert np.bincount(catalog.labels).tolist() == [4, 4] and two.image_shape == (2, 2, 3)
    np.testing.assert_array_equal(
        catalog.images[0], np.round(x[1].reshape(2, 2, 2, 2, 3).mean(axis=(1, 3)))
    )
    assert catalog.labels[0] == 1, "classes are numbered in the order of the choice"
    with pytest.raises(BadInput, match="Did you mean 'cow'"):
        _ = ImageClasses(data, chosen=("cov", "bee")).catalog
    with pytest.raises(BadInput, match="cannot be averaged to 3 × 3"):
        _ = ImageClasses(data, side=3).catalog


def test_digits_are_stacked_and_the_label_is_their_parity(mnist):
    task = StackedDigits("mnist", k=3).task(key=jax.random.key(0))
    x, y = task.draw(50, jax.random.key(1))
    assert x.shape == (50, 84, 28, 1)
    shown = brightness(task.pool, x[:, ::28, 0, 0]) // 20
    np.testing.assert_array_equal(y, np.where(shown.sum(axis=1) % 2 == 0, 1, -1))
    assert set(brightness(task.pool, task.test(50, jax.random.key(1)).x).ravel() % 20) == {1}, (
        "test images differ from training images"
    )


def test_patches_are_squares_of_their_image(folder):
    ramp = np.arange(64).reshape(8, 8)
    np.savez(
        folder / "own.npz",
        x_train=np.stack([ramp, ramp + 100]).astype(np.uint8).repeat(4, 0),
        y_train=[0] * 4 + [1] * 4,
    )
    family = ImagePatches(str(folder / "own.npz"), k=3)
    task = family.task(key=jax.random.key(0))
    x, y = task.draw(50, jax.random.key(1))  # more than there are images: other patches of the same
    shown = brightness(task.pool, x).reshape(50, 3, 3)
    corner = shown[:, 0, 0] - np.where(y > 0, 100, 0)
    np.testing.assert_array_equal(
        shown - shown[:, :1, :1], np.broadcast_to(ramp[:3, :3], (50, 3, 3))
    )
    assert (
        set(corner // 8) <= set(range(6))
        and set(corner % 8) <= set(range(6))
        and len(set(corner)) > 10
    )
    with pytest.raises(BadInput, match="does not fit"):
        ImagePatches("mnist", k=29)


def network(n):
    descent = Descent({"w": 0.01, "a": 0.01}, steps=20, batch=10, loss="natural")
    return GradientDescent(PlainInit(m=4, w_scale=0.1, b_scale=0.0, a_scale=0.1), (descent,))


def test_trials_of_one_program_share_the_images_and_differ_in_what_they_draw(mnist):
    family = ImageClasses("mnist", chosen=(2, 7))
    trials = [
        Trial(each, network(40), 40, seed, (Performance(20),))
        for each in (family, ShuffledLabels(family))
        for seed in (0, 1)
    ]
    together = {record.key: record for record in LocalEngine().run(trials)}
    (alone,) = LocalEngine().run([trials[3]])
    assert together[trials[3].key].measurements["loss"] == pytest.approx(
        alone.measurements["loss"], rel=1e-5
    )
    losses = [together[trial.key].value("loss") for trial in trials]
    assert len(set(losses)) == 4
    (host,) = LocalEngine().run(
        [Trial(family, FeatureRidge(RawFeatures()), 40, 0, (Performance(20),))]
    )
    assert host.value("test_accuracy") == 100


def test_two_sets_of_one_shape_are_not_confused(folder):
    """Programs are shared by shapes; the images of a set are no part of a program."""
    for name, bright in (("a", 0), ("b", 200)):
        np.savez(
            folder / f"{name}.npz",
            x_train=np.full((20, 6, 6), bright, np.uint8) + pixels(20, (6, 6)) // 8,
            y_train=digits(20) % 2,
        )
    trials = [
        Trial(ImageClasses(str(folder / f"{name}.npz")), network(8), 8, 0, (Performance(4),))
        for name in "ab"
    ]
    engine = LocalEngine()
    together = [record.measurements for record in engine.run(trials)]
    apart = [next(iter(LocalEngine().run([trial]))).measurements for trial in trials]
    assert together[0]["loss"] == pytest.approx(apart[0]["loss"]) and together[1][
        "loss"
    ] == pytest.approx(apart[1]["loss"])


def test_the_key_of_a_trial_follows_the_images(folder):
    write_mnist(folder)
    family, learner = ImageClasses("mnist"), FeatureRidge(RawFeatures())
    before = Trial(family, learner, 8, 0, ()).id
    assert before != Trial(dataclasses.replace(family, chosen=(0, 1)), learner, 8, 0, ()).id
    write_mnist(folder, n=50)
    assert Trial(family, learner, 8, 0, ()).id != before


def test_an_image_that_was_overwritten_in_place_is_another_set(tmp_path):
    images = tmp_path / "images"
    for name in "ab":
        (images / name).mkdir(parents=True)
        for index in range(3):
            Image.new("L", (4, 4), 40 * index).save(images / name / f"{index}.png")
    family = ImageClasses(str(images), flat=True)
    trial = lambda: Trial(family, FeatureRidge(RawFeatures()), 4, 0, ())  # noqa: E731
    before, facts = trial(), (images / "a" / "1.png").stat()
    known = before.id
    Image.new("L", (4, 4), 41).save(images / "a" / "1.png")
    # A tool may set the time of the last write back; the folder does not change at all.
    os.utime(images / "a" / "1.png", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    after = trial()
    assert before.key == after.key and known != after.id


def test_without_data_trials_are_laid_out_and_refused_before_anything_runs(folder):
    trial = Trial(ImageClasses("svhn", chosen=(0, 1)), FeatureRidge(RawFeatures()), 8, 0, ())
    with pytest.raises(BadInput, match="SVHN is missing"):
        list(LocalEngine().run([trial]))
    write_svhn(folder)
    (record,) = LocalEngine().run([trial])
    assert record.status == "ok" and jnp.isfinite(record.value("loss"))
