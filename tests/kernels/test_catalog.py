"""Kernels by name, and their metadata."""

import numpy as np
import pytest

from unlazy.core.errors import BadInput
from unlazy.kernels.catalog import KERNELS, kernel_named
from unlazy.kernels.gram import gram
from unlazy.kernels.products import ArcCosine, ArcSine, Linear, Polynomial
from unlazy.kernels.residual import ResidualNTK
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NNGP, NTK
from unlazy.learners.catalog import LEARNERS
from unlazy.learners.kernel import KernelRidge


def test_a_name_with_other_parameters():
    assert kernel_named("rbf", gamma=2.0) == RBF(2.0)
    assert kernel_named("ntk", depth=3, activation="erf") == NTK(3, "erf", 2.0, 0.1)
    assert kernel_named("polynomial") == Polynomial(3)
    with pytest.raises(BadInput, match=r"no kernel named 'rfb'. Did you mean 'rbf'"):
        kernel_named("rfb")
    with pytest.raises(
        BadInput, match=r"no parameter of the kernel rbf named 'gama'. Did you mean 'gamma'"
    ):
        kernel_named("rbf", gama=1.0)
    with pytest.raises(BadInput, match="gamma must be"):
        kernel_named("rbf", gamma=-1.0)


@pytest.mark.parametrize("name", KERNELS)
def test_every_named_kernel_is_one_and_has_its_learner(name):
    x = np.random.default_rng(0).standard_normal((20, 4))
    assert np.linalg.eigvalsh(np.asarray(gram(KERNELS[name].value, x), np.float64))[0] > -1e-4
    learner = LEARNERS["linear-kernel" if name == "linear" else name].value
    assert isinstance(learner, KernelRidge) and learner.kernel == KERNELS[name].value


@pytest.mark.parametrize(
    "kernel",
    [RBF(0.5), Polynomial(3), NTK(1, "relu", 2.0, 0.1), NTK(2, "relu", 2.0, 0.1), NNGP(1)],
    ids=repr,
)
def test_neighbors_are_other_kernels_of_the_same_kind(kernel):
    others = kernel.neighbors()
    assert len({repr(other) for other in [kernel, *others]}) == len(others) + 1 > 5
    assert all(type(other) is type(kernel) for other in others)


@pytest.mark.parametrize(
    "kernel", [Linear(), ArcCosine(1), ArcSine(), Polynomial(2, 0.0)], ids=repr
)
def test_kernels_without_neighbors(kernel):
    assert not kernel.neighbors()


def test_kernels_that_divide_by_the_dimension_have_a_larger_input_scale():
    for kernel in (NNGP(), NTK(), ResidualNTK()):
        assert kernel.input_scale(9) == 3.0
        x = np.random.default_rng(0).standard_normal((5, 9))
        wide = np.concatenate([x, np.zeros((5, 27))], axis=1)
        np.testing.assert_allclose(
            gram(kernel, 3 * x),
            gram(kernel, 6 * wide),
            rtol=1e-5,
            err_msg="so d does not matter any more",
        )
    for kernel in (Linear(), RBF(1.0), Laplace(1.0), ArcSine()):
        assert kernel.input_scale(9) == 1.0
