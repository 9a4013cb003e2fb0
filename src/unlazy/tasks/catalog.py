"""The shelf: families by name that belong to no paper alone."""

from __future__ import annotations

from unlazy.core.naming import Entry
from unlazy.tasks.gaussians import CubeGaussians
from unlazy.tasks.images.families import ImageClasses, ImagePatches, StackedDigits
from unlazy.tasks.multi_index import MultiIndex, product

TASKS = {
    "parity": Entry(
        MultiIndex(d=32, polynomial=product(2)),
        "the product of two hidden coordinates out of 32 signs",
    ),
    "gaussians": Entry(
        CubeGaussians(d=20, k=3, spread=0.3),
        "Gaussians at the vertices of a cube, neighbours with opposite labels",
    ),
    "images/mnist": Entry(ImageClasses("mnist"), "MNIST: which of ten digits"),
    "images/cifar10": Entry(
        ImageClasses("cifar10"),
        "CIFAR-10: which of ten kinds of things; --set data=FOLDER takes pictures of your own",
    ),
    "images/svhn": Entry(ImageClasses("svhn"), "SVHN: which of ten digits of house numbers"),
    "images/tinyimagenet": Entry(
        ImageClasses("tinyimagenet"), "Tiny ImageNet: which of up to 200 kinds of things"
    ),
    "images/digits": Entry(
        StackedDigits("mnist"),
        "parity of the sum of two digits of MNIST, one above the other; also --set k=3",
    ),
    "images/patches": Entry(
        ImagePatches("cifar10"),
        "the class of a CIFAR-10 image from one random patch of 3 × 3 pixels of it",
    ),
}
