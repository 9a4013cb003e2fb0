"""The shelf: families by name that belong to no paper alone."""

from __future__ import annotations

from unlazy.core.naming import Named
from unlazy.tasks.gaussians import CubeGaussians
from unlazy.tasks.multi_index import MultiIndex, product

TASKS = {
    "parity": Named(MultiIndex(d=32, polynomial=product(2)), "the product of two hidden coordinates out of 32 signs"),
    "gaussians": Named(CubeGaussians(d=20, k=3, spread=0.3), "Gaussians at the vertices of a cube, neighbours with opposite labels"),
}
