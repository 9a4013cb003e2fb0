"""Kernels against closed forms, scikit-learn, expectations and wide random networks."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from selection import slow_but, slow_but_first
from toys import small_init
from unlazy.core.activations import activation_of
from unlazy.core.errors import BadInput
from unlazy.core.gaussian import PiecewiseLinear
from unlazy.kernels.base import Kernel
from unlazy.kernels.finite import Conjugate, Tangent
from unlazy.kernels.gram import gram
from unlazy.kernels.products import ArcCosine, ArcSine, Linear, Polynomial
from unlazy.kernels.stationary import RBF, Laplace
from unlazy.kernels.wide import NNGP, NTK
from unlazy.networks.base import Network
from unlazy.networks.inits import TangentInit
from unlazy.networks.two_layer import TwoLayer

SIMPLE = [
    Linear(),
    Polynomial(3),
    Polynomial(2, 0.5),
    RBF(0.3),
    Laplace(0.4),
    ArcCosine(0),
    ArcCosine(1),
    ArcCosine(2),
    ArcSine(),
    ArcSine(2.0, 0.3),
]
WIDE = [
    kind(*settings)
    for kind in (NNGP, NTK)
    for settings in ((3, "relu", 1.7, 0.2), (2, "erf", 1.7, 0.1), (1, "truncated_relu", 1.5, 0.1))
]
WIDE += [NTK(1, "relu"), NTK(1, "tanh", 1.5), NNGP(1, "hard_tanh", 1.5, 0.1)]
ALL = pytest.mark.parametrize("kernel", SIMPLE + WIDE, ids=repr)
#: One kernel of each class in double precision; `make test-slow` has the others, and single
#: precision.
FIRST = {type(kernel): kernel for kernel in reversed(SIMPLE + WIDE)}
FIRSTS = pytest.mark.parametrize("kernel", slow_but([*FIRST.values()], SIMPLE + WIDE), ids=repr)
PRECISIONS = pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        pytest.param(
            kernel,
            dtype,
            marks=()
            if dtype == jnp.float64 and FIRST[type(kernel)] is kernel
            else pytest.mark.slow,
            id=f"{kernel!r}-{dtype.__name__}",
        )
        for kernel in SIMPLE + WIDE
        for dtype in (jnp.float32, jnp.float64)
    ],
)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def points(n=7, d=4, seed=0):
    return jax.random.normal(jax.random.key(seed), (n, d))


@eqx.filter_jit
def directly(kernel, x, z):
    return kernel(x, x), kernel(x, z), kernel.diagonal(x), gram(kernel, x)


@PRECISIONS
def test_gram_by_blocks_is_the_kernel(kernel, dtype):
    """It is also symmetric, positive semidefinite and invariant under rotations."""
    turn = jnp.linalg.qr(points(4, seed=5))[0].astype(dtype)
    x = points(23).astype(dtype)
    whole, cross, diagonal, traced = directly(kernel, x, x @ turn)
    tolerance = (
        2e-3 if dtype == jnp.float32 else 1e-4
    )  # near the diagonal, where rounding of the cosine counts most
    K = gram(kernel, x, block=5)
    assert K.dtype == dtype
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diag(traced), np.diag(traced.T))
    np.testing.assert_allclose(np.diag(K), diagonal, rtol=32 * jnp.finfo(dtype).eps)
    for other in (traced, gram(kernel, x @ turn, block=5)):
        np.testing.assert_allclose(K, other, rtol=tolerance, atol=tolerance)
    apart = ~np.eye(len(K), dtype=bool)
    np.testing.assert_allclose(
        np.asarray(K)[apart], np.asarray(whole)[apart], rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        np.diag(K), np.diag(whole), rtol=10 * tolerance
    )  # where the cosine is one but for rounding
    np.testing.assert_allclose(
        gram(kernel, x, x @ turn, block=5), cross, rtol=tolerance, atol=tolerance
    )
    assert np.linalg.eigvalsh(np.asarray(K, np.float64)).min() > -1e-5 * np.trace(K)


@FIRSTS
def test_single_precision_is_near_double_precision(kernel):
    x = points(40, 10)
    exact = np.asarray(gram(kernel, x))
    np.testing.assert_allclose(
        gram(kernel, x.astype(jnp.float32)), exact, rtol=2e-5, atol=2e-5 * np.abs(exact).max()
    )


@ALL
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_zero_vectors_duplicates_and_extremes_are_finite(kernel, dtype):
    x = points(6)
    x = jnp.concatenate(
        [x, x[:2], 0 * x[:2], -x[:1], x[:1] * (1 + 1e-7), 1e-20 * x[:1], 1e3 * x[:1]]
    ).astype(dtype)
    K = np.asarray(gram(kernel, x), np.float64)
    assert np.all(np.isfinite(K))
    np.testing.assert_allclose(K[0], K[6], rtol=2e-3, atol=2e-3)  # a duplicate's row
    assert np.linalg.eigvalsh(K).min() > -1e-4 * np.trace(K)


def test_kernels_of_scikit_learn():
    x, z = points(8), points(5, seed=1)
    np.testing.assert_allclose(gram(RBF(0.3), x, z), rbf_kernel(x, z, gamma=0.3), rtol=1e-12)
    np.testing.assert_allclose(
        gram(Polynomial(3, 0.5), x, z),
        polynomial_kernel(x, z, degree=3, gamma=1, coef0=0.5),
        rtol=1e-12,
    )
    np.testing.assert_allclose(gram(Linear(), x, z), x @ z.T, rtol=1e-12)
    distance = np.linalg.norm(np.asarray(x)[:, None] - np.asarray(z), axis=2)
    np.testing.assert_allclose(gram(Laplace(0.4), x, z), np.exp(-0.4 * distance), rtol=1e-12)


def test_distances_far_from_the_origin():
    x = points(8).astype(jnp.float32) + 1000
    exact = rbf_kernel(np.asarray(x, np.float64), gamma=0.3)
    np.testing.assert_allclose(gram(RBF(0.3), x), exact, atol=1e-5)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_its_expectation(order):
    x = points(5, 3)
    g = points(400_000, 3, seed=2)
    z = g @ x.T
    feature = np.asarray(jnp.where(z > 0, z**order, 0))
    np.testing.assert_allclose(
        2 * feature.T @ feature / len(g), gram(ArcCosine(order), x), rtol=0.03, atol=0.03
    )


def test_wide_networks_of_one_layer_are_arc_kernels():
    x, z = points(8), points(5, seed=1)
    np.testing.assert_allclose(
        gram(NNGP(1, "relu", 1.5), x, z), gram(ArcCosine(1), x, z) / 2 * 1.5**2 / 4, rtol=1e-12
    )
    np.testing.assert_allclose(
        gram(NNGP(1, "erf", 1.5, 0.2), x, z),
        1.5 * gram(ArcSine(1.5 / 4, 0.2), x, z) + 0.2,
        rtol=1e-12,
    )


def test_piecewise_linear_relu_is_relu():
    relu = PiecewiseLinear((0.0,), (0.0, 1.0))
    x = points(8)
    for kind in (NNGP, NTK):
        np.testing.assert_allclose(
            gram(kind(2, relu, 1.5, 0.1), x), gram(kind(2, "relu", 1.5, 0.1), x), rtol=1e-7
        )


class Deep(Network):
    """A fully connected network of any depth in NTK parametrization."""

    weights: list
    biases: list
    activation: str = eqx.field(static=True)
    w_variance: float = eqx.field(static=True)
    b_variance: float = eqx.field(static=True)

    def hidden(self, x):
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = activation_of(self.activation)(self._affine(x, W, b))
        return x

    def _affine(self, x, W, b):
        scale = math.sqrt(self.w_variance / x.shape[1])
        return scale * x @ W.T + math.sqrt(self.b_variance) * b[None, :]

    def __call__(self, x, *, smoothing=None):
        return self._affine(self.hidden(x), self.weights[-1], self.biases[-1])[:, 0]

    def enter(self, basis):
        raise NotImplementedError

    leave = get = put = enter

    @property
    def first_layer(self):
        return self.weights[0]


def deep(key, d, width, depth, activation, w_variance, b_variance):
    sizes = [d] + [width] * depth + [1]
    keys = jax.random.split(key, 2 * len(sizes))
    weights = [
        jax.random.normal(keys[2 * i], (sizes[i + 1], sizes[i]), jnp.float32)
        for i in range(depth + 1)
    ]
    biases = [
        jax.random.normal(keys[2 * i + 1], (sizes[i + 1],), jnp.float32) for i in range(depth + 1)
    ]
    return Deep(weights, biases, activation, w_variance, b_variance)


@pytest.mark.parametrize(
    ("depth", "activation"),
    slow_but_first(
        [
            (2, "relu"),
            (2, "erf"),
            (1, "truncated_relu"),
            (2, "gelu"),
            (1, "quadratic"),
            (1, "relu"),
            (3, "relu"),
            (1, "erf"),
            (2, "truncated_relu"),
            (1, "relu6"),
        ]
    ),
)
def test_wide_networks_approach_the_kernels(depth, activation):
    with jax.enable_x64(False):
        x = points(5) * jnp.linspace(0.5, 2, 5)[:, None]
        settings = depth, activation, 1.8, 0.3
        width = 256

        @jax.jit
        def kernels(keys):
            def one(key):
                net = deep(key, 4, width, *settings)
                hidden = net.hidden(x)
                return 1.8 * hidden @ hidden.T / width + 0.3, Tangent(net)(x, x)

            return jax.lax.map(one, keys)

        nngp, ntk = (
            np.mean(K, axis=0) for K in kernels(jax.random.split(jax.random.key(0), 50 * depth))
        )
        np.testing.assert_allclose(gram(NNGP(*settings), x), nngp, rtol=0.05, atol=0.03)
        np.testing.assert_allclose(gram(NTK(*settings), x), ntk, rtol=0.06, atol=0.05)


def jacobian_gram(network, x, z):
    def flat(points):
        parameters, rest = eqx.partition(network, eqx.is_inexact_array)
        J = jax.jit(jax.jacobian(lambda p: eqx.combine(p, rest)(points)))(parameters)
        return np.concatenate(
            [np.asarray(leaf).reshape(len(points), -1) for leaf in jax.tree.leaves(J)], axis=1
        )

    return flat(x) @ flat(z).T


@pytest.mark.parametrize("kind", ["two-layer", "relu", "tangent", "deep"])
def test_tangent_gram_is_the_product_of_jacobians(kind):
    x, z = points(11), points(6, seed=1)
    key = jax.random.key(3)
    if kind == "deep":
        network = jax.tree.map(
            lambda leaf: leaf.astype(jnp.float64), deep(key, 4, 6, 2, "gelu", 1.5, 0.2)
        )
    elif kind == "tangent":
        network = TangentInit(small_init(m=5))(4, key=key)
    else:
        network = small_init(m=5)(4, key=key)
        network = TwoLayer(
            network.w,
            network.b,
            network.a,
            network.c + 0.3,
            "relu" if kind == "relu" else "truncated_relu",
        )
    expected = jacobian_gram(network.base if kind == "tangent" else network, x, z)
    np.testing.assert_allclose(
        gram(Tangent(network), x, z, block=4), expected, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(gram(Tangent(network), x, z), expected, rtol=1e-9, atol=1e-9)
    expected = jacobian_gram(network.base if kind == "tangent" else network, x, x)
    np.testing.assert_allclose(gram(Tangent(network), x, block=4), expected, rtol=1e-9, atol=1e-9)


def test_conjugate_gram_is_the_product_of_hidden_layers():
    x, z = points(11), points(6, seed=1)
    network = small_init(m=5)(4, key=jax.random.key(3))
    np.testing.assert_allclose(
        gram(Conjugate(network), x, z, block=4), network.hidden(x) @ network.hidden(z).T, rtol=1e-9
    )
    np.testing.assert_allclose(
        gram(Conjugate(network), x, block=4), network.hidden(x) @ network.hidden(x).T, rtol=1e-9
    )
    with pytest.raises(BadInput, match="method `hidden`, got Linearized"):
        gram(Conjugate(TangentInit(small_init(m=5))(4, key=jax.random.key(3))), x)


def test_split_weights_have_the_tangent_kernel_of_their_coordinates():
    network = small_init(m=5)(4, key=jax.random.key(3))
    basis = jnp.linalg.qr(points(4, seed=2))[0][:3]
    coordinates = points(6, 3)
    np.testing.assert_allclose(
        gram(Tangent(network.enter(basis)), coordinates),
        gram(Tangent(network), coordinates @ basis),
        rtol=1e-9,
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: Polynomial(0),
        lambda: Polynomial(2, -1.0),
        lambda: RBF(0.0),
        lambda: Laplace(math.nan),
        lambda: ArcCosine(3),
        lambda: ArcSine(-1.0),
        lambda: NTK(0),
        lambda: NTK(1, "relu", 1.0, -0.1),
        lambda: NNGP(1, 3),
        lambda: PiecewiseLinear((1.0, 0.0), (0.0, 1.0, 0.0)),
        lambda: PiecewiseLinear((1.0,), (0.0,)),
        lambda: gram(Linear(), points(3), block=0),
        lambda: gram(Linear(), points(3, 4), points(3, 5)),
        lambda: gram(Linear(), jnp.ones(3)),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused(make):
    with pytest.raises(BadInput):
        make()


def test_error_messages():
    with pytest.raises(BadInput, match=r"no activation named 'rely'\. Did you mean 'relu'"):
        NTK(1, "rely")
    with pytest.raises(BadInput, match="1 of its 3 rows contain NaN"):
        gram(Linear(), points(3).at[1, 2].set(jnp.nan))


def test_float_fields_may_differ_within_one_program():
    x = points(4)
    kernels = jax.jit(
        jax.vmap(lambda w: eqx.tree_at(lambda kernel: kernel.w_variance, NTK(), w)(x, x))
    )
    stacked = kernels(jnp.asarray([0.5, 2.0]))
    np.testing.assert_allclose(stacked[1], NTK(1, "relu", 2.0)(x, x), rtol=1e-12)


def test_a_user_defined_kernel():
    class Cosine(Kernel):
        def __call__(self, x, z):
            return jnp.cos(x[:, :1] - z[None, :, 0])

        def diagonal(self, x):
            return jnp.ones_like(x[:, 0])

    x = points(9)
    expected = jnp.cos(x[:, :1] - x[None, :, 0])
    np.testing.assert_allclose(gram(Cosine(), x, block=4), expected, rtol=1e-12)
