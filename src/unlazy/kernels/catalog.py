"""Kernels by name: one meaning each, in contests, scaling studies and estimators.

Their numbers are where tuning starts.
"""

from __future__ import annotations

import dataclasses

from unlazy.core.errors import unknown
from unlazy.core.naming import Entry
from unlazy.kernels.base import Kernel
from unlazy.kernels.products import ArcCosine, ArcSine, Linear, Polynomial
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NNGP, NTK

KERNELS = {
    "linear": Entry(Linear(), "⟨x, z⟩"),
    "polynomial": Entry(Polynomial(3), "(⟨x, z⟩ + 1)³"),
    "quadratic": Entry(Polynomial(2, 0.0), "⟨x, z⟩²: products of two coordinates alone"),
    "rbf": Entry(RBF(0.5), "Gaussian, exp(−γ‖x − z‖²)"),
    "laplace": Entry(Laplace(0.5), "exp(−γ‖x − z‖)"),
    "arc-cosine": Entry(ArcCosine(1), "infinitely many random ReLU features"),
    "arcsine": Entry(ArcSine(1.0, 0.1), "infinitely many random erf features"),
    "nngp": Entry(NNGP(1, "relu", 2.0, 0.1), "conjugate kernel of an infinitely wide ReLU network"),
    "ntk": Entry(NTK(1, "relu", 2.0, 0.1), "tangent kernel of an infinitely wide ReLU network"),
}


def kernel_named(name: str, **numbers: object) -> Kernel:
    """The kernel of that name, with some of its numbers changed."""
    if name not in KERNELS:
        raise unknown("kernel", name, KERNELS)
    kernel: Kernel = KERNELS[name].value
    fields = [field.name for field in dataclasses.fields(kernel)]
    for number in numbers:
        if number not in fields:
            raise unknown(f"number of the kernel {name}", number, fields)
    return dataclasses.replace(kernel, **numbers)
