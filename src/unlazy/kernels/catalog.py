"""Built-in kernels by name, for benchmarks, scaling studies and estimators.

Their parameters are the first values that tuning tries.
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
    "quadratic": Entry(Polynomial(2, 0.0), "⟨x, z⟩², all products of two coordinates"),
    "rbf": Entry(RBF(0.5), "Gaussian, exp(−γ‖x − z‖²)"),
    "laplace": Entry(Laplace(0.5), "exp(−γ‖x − z‖)"),
    "arc-cosine": Entry(ArcCosine(1), "arc-cosine kernel, the limit of random ReLU features"),
    "arcsine": Entry(ArcSine(1.0, 0.1), "arcsine kernel, the limit of random erf features"),
    "nngp": Entry(
        NNGP(1, "relu", 2.0, 0.1), "conjugate kernel (NNGP) of an infinitely wide ReLU network"
    ),
    "ntk": Entry(
        NTK(1, "relu", 2.0, 0.1), "neural tangent kernel (NTK) of an infinitely wide ReLU network"
    ),
}


def kernel_named(name: str, **parameters: object) -> Kernel:
    """Return the kernel of that name, with the given parameters replaced."""
    if name not in KERNELS:
        raise unknown("kernel", name, KERNELS)
    kernel: Kernel = KERNELS[name].value
    fields = [field.name for field in dataclasses.fields(kernel)]
    for parameter in parameters:
        if parameter not in fields:
            raise unknown(f"parameter of the kernel {name}", parameter, fields)
    return dataclasses.replace(kernel, **parameters)
