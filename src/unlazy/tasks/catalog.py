"""Built-in tasks that belong to no single paper, by name."""

from __future__ import annotations

from unlazy.core.naming import Entry
from unlazy.tasks.gaussians import CubeGaussians
from unlazy.tasks.images.families import ImageClasses, ImagePatches, StackedDigits
from unlazy.tasks.multi_index import MultiIndex, product

TASKS = {
    "parity": Entry(
        MultiIndex(d=32, polynomial=product(2)),
        "parity of 2 hidden coordinates of 32 signs",
    ),
    "gaussians": Entry(
        CubeGaussians(d=20, k=3, spread=0.3),
        "Gaussian mixture at the vertices of a cube with parity labels",
    ),
    "images/mnist": Entry(ImageClasses("mnist"), "MNIST digits (10 classes)"),
    "images/cifar10": Entry(
        ImageClasses("cifar10"),
        "CIFAR-10 photographs (10 classes); --set data=FOLDER uses your own images",
    ),
    "images/svhn": Entry(ImageClasses("svhn"), "SVHN house-number digits (10 classes)"),
    "images/tinyimagenet": Entry(
        ImageClasses("tinyimagenet"), "Tiny ImageNet photographs (up to 200 classes)"
    ),
    "images/digits": Entry(
        StackedDigits("mnist"),
        "parity of the sum of two stacked MNIST digits; also --set k=3",
    ),
    "images/patches": Entry(
        ImagePatches("cifar10"),
        "class of a CIFAR-10 image from one random 3 × 3 patch",
    ),
}
