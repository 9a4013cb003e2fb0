"""Kernels and solvers versus scikit-learn, and the tangent kernel of a finite network versus its
Jacobian.

On shared cores LAPACK can be slower with several threads than with one; each side gets its faster
thread count. The large fit (`run_large`) takes some minutes.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from benchmarks.timing import Candidate, Comparison, interleaved, say, seconds
from unlazy.kernels.finite import Tangent
from unlazy.kernels.gram import gram
from unlazy.kernels.wide import NTK
from unlazy.networks.inits import ResNetInit
from unlazy.networks.residual import ThreeLayerResNet
from unlazy.solvers.conjugate import product
from unlazy.solvers.exact import Solution, ridge_path
from unlazy.solvers.krylov import krylov_path

THREADS = (1, 2)
RIDGES = np.logspace(-3, 2, 20)
LARGE_RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
#: Kernel products of the large fit. Small ridges do not converge within these; validation points
#: select among the results.
PRODUCTS = 30


def with_threads(threads: int, work: Callable[[], object]) -> Candidate:
    """Return the seconds of `work` with this number of threads in BLAS and LAPACK."""

    def run() -> float:
        with threadpool_limits(threads):
            return seconds(work)

    return run


def fastest(times: dict[str, list[float]], name: str) -> tuple[int, list[float]]:
    """Return the thread count with the best median, and its times."""
    best = min(THREADS, key=lambda threads: statistics.median(times[f"{name} ({threads})"]))
    return best, times[f"{name} ({best})"]


def gram_matrix(double: bool, n: int = 10_000, d: int = 100, rounds: int = 5) -> Comparison:
    """Time the Gram matrix of the NTK of a ReLU network with one hidden layer versus an RBF."""
    name = "float64" if double else "float32"
    x = np.random.default_rng(0).standard_normal((n, d)).astype(name)
    with jax.enable_x64(double):
        points, kernel = jnp.asarray(x), NTK(1, "relu")
        jax.block_until_ready(gram(kernel, points))
        methods = {
            "ours": lambda: seconds(lambda: jax.block_until_ready(gram(kernel, points))),
            "scikit-learn": lambda: seconds(lambda: rbf_kernel(x)),
        }
        times = interleaved(methods, rounds, f"Gram matrix, {name}")
    return Comparison(
        f"NTK Gram / rbf_kernel: {n:,}², d={d}, {name}",
        "matrix",
        times["ours"],
        times["scikit-learn"],
        1.5,
        "lower",
    )


def ridges(n: int = 3_000, d: int = 100, rounds: int = 2) -> Comparison:
    """Time twenty ridges by leave-one-out versus a 5-fold grid search over the same ridges."""
    draw = np.random.default_rng(0)
    x = draw.standard_normal((n, d))
    y = np.tanh(x[:, 0]) + 0.1 * draw.standard_normal(n)
    with jax.enable_x64(True):
        K = np.asarray(gram(NTK(1, "relu"), jnp.asarray(x)))
    search = GridSearchCV(
        KernelRidge(kernel="precomputed"),
        {"alpha": RIDGES},
        cv=KFold(5),
        scoring="neg_mean_squared_error",
        refit=False,
    )
    work: dict[str, Callable[[], Any]] = {
        "leave one out": lambda: ridge_path(K, y, RIDGES).leave_one_out(),
        "scikit-learn": lambda: search.fit(K, y),
    }
    methods = {
        f"{name} ({threads})": with_threads(threads, job)
        for name, job in work.items()
        for threads in THREADS
    }
    times = interleaved(methods, rounds, "Ridge path")
    (threads, our_times), (peer_threads, peer_times) = (fastest(times, name) for name in work)
    notes = {
        "threads": threads,
        "scikit_learn_threads": peer_threads,
        "greatest_difference_of_coefficients": max_difference(K, y),
    }
    return Comparison(
        f"ridge path, leave one out / GridSearchCV, 5 folds: n={n}",
        "20 ridges",
        our_times,
        peer_times,
        7.0,
        notes=notes,
    )


def max_difference(K: np.ndarray, y: np.ndarray) -> float:
    """Return the differences to scikit-learn's coefficients at the smallest, a middle and the
    largest ridge.
    """
    found = ridge_path(K, y, RIDGES).coefficients
    gaps = [
        np.abs(
            KernelRidge(alpha=RIDGES[i], kernel="precomputed").fit(K, y).dual_coef_ - found[i]
        ).max()
        for i in (0, 10, 19)
    ]
    return float(max(gaps))


def network(width: int, d: int) -> ThreeLayerResNet:
    """A three-layer ReLU network in double precision."""
    init = ResNetInit(
        m=width,
        w_scale=d**-0.5,
        b_scale=0.1,
        v_scale=width**-0.5,
        e_scale=0.1,
        a_scale=width**-0.5,
        bottleneck=False,
    )
    return init(d, key=jax.random.key(0))


def by_jacobian(net: ThreeLayerResNet, x: jax.Array) -> jax.Array:
    """Return the tangent kernel from the full Jacobian."""
    J = jax.jacobian(lambda net: net(x))(net)
    return sum(
        (leaf.reshape(len(x), -1) @ leaf.reshape(len(x), -1).T for leaf in jax.tree.leaves(J)),
        start=jnp.zeros(()),
    )


def finite_tangent(n: int = 1_000, width: int = 200, d: int = 100, rounds: int = 3) -> Comparison:
    """Time the tangent kernel of a three-layer network versus the product of its Jacobians."""
    with jax.enable_x64(True):
        net, x = network(width, d), jnp.asarray(np.random.default_rng(1).standard_normal((n, d)))
        naive = jax.jit(by_jacobian)
        np.testing.assert_allclose(gram(Tangent(net), x), naive(net, x), rtol=1e-8, atol=1e-8)
        methods = {
            "ours": lambda: seconds(lambda: jax.block_until_ready(gram(Tangent(net), x))),
            "Jacobian": lambda: seconds(lambda: jax.block_until_ready(naive(net, x))),
        }
        times = interleaved(methods, rounds, "Finite tangent kernel")
    notes = {f"{name}_peak_megabytes": peak(name) for name in ("tangent", "jacobian")}
    return Comparison(
        f"tangent kernel of three layers / Jacobian: n={n}, width {width}",
        "matrix",
        times["ours"],
        times["Jacobian"],
        1.0,
        notes=notes,
    )


def peak(name: str) -> float:
    """Return the peak memory in MB of a process that runs `name` once, minus that of imports."""
    sizes = [
        json.loads(
            subprocess.run(
                [sys.executable, "-m", "benchmarks.kernels", job],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for job in ("nothing", name)
    ]
    return round(sizes[1]["peak_megabytes"] - sizes[0]["peak_megabytes"], 1)


def high_water() -> float:
    """Return the peak memory of this process in MB; NaN if the system does not report it.

    On Linux `getrusage` would include the peak of the parent process.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return math.nan
    return next(
        (int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM")), math.nan
    )


def large(n: int = 50_000, d: int = 100) -> dict[str, Any]:
    """Fit the NTK with the best of six ridges on validation points, from one Krylov space and
    without storing the kernel.
    """
    x, y, z, truth = large_data(n, d)
    kernel, held = NTK(1, "relu", 1.0, 0.1), len(z) // 2
    products = 0

    def multiply(v: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        say(f"product {products}")
        return product(kernel, x, v[:, None])[:, 0]

    found: list[Any] = []
    took = seconds(
        lambda: found.append(
            krylov_path(multiply, y - y.mean(), LARGE_RIDGES, tolerance=1e-3, products=PRODUCTS)
        )
    )
    scores = Solution(kernel, x, found[0].coefficients.T, "float32").predict(z) + y.mean()
    chosen = chosen_on_validation(scores, truth, held, LARGE_RIDGES)
    residual = float(found[0].residuals[LARGE_RIDGES.index(chosen["ridge"])])
    return {"seconds": took, "products": products, "residual": residual, **chosen}


def large_nystroem(n: int = 50_000, d: int = 100, components: int = 2_000) -> dict[str, Any]:
    """Fit ridge regression on scikit-learn's Nystroem features, with the best of three bandwidths
    and six ridges on validation points.
    """
    x, y, z, truth = large_data(n, d)
    held, best, took = len(z) // 2, {}, 0.0
    for gamma in (0.1 / d, 0.5 / d, 2.0 / d):
        features = Nystroem(gamma=gamma, n_components=components, random_state=0)
        scores = []

        def fit(features: Nystroem = features, scores: list[Any] = scores) -> None:
            phi, phi_test = features.fit_transform(x), features.transform(z)
            scores.extend(
                Ridge(alpha=alpha).fit(phi, y).predict(phi_test) for alpha in LARGE_RIDGES
            )

        took += seconds(fit)
        one = chosen_on_validation(np.stack(scores, axis=1), truth, held, LARGE_RIDGES) | {
            "gamma": gamma
        }
        best = one if not best or one["validation_error"] < best["validation_error"] else best
    return {"seconds": took, **best}


def chosen_on_validation(
    scores: np.ndarray, truth: np.ndarray, held: int, ridges: tuple[float, ...]
) -> dict[str, Any]:
    """Return the ridge with the smallest error on the first `held` points, and its other error."""
    errors = np.mean(np.square(scores - truth[:, None])[:held], axis=0)
    best = int(np.argmin(errors))
    test = float(np.mean(np.square(scores[held:, best] - truth[held:])))
    return {"ridge": ridges[best], "validation_error": float(errors[best]), "test_error": test}


def large_data(n: int, d: int) -> tuple[np.ndarray, ...]:
    """Return single-precision points with noisy targets, and noiseless test points."""
    draw = np.random.default_rng(0)
    x, z = (
        draw.standard_normal((n, d)).astype(np.float32),
        draw.standard_normal((4_000, d)).astype(np.float32),
    )
    u = draw.standard_normal((d, 3)) / np.sqrt(d)

    def target(points: np.ndarray) -> np.ndarray:
        return np.abs(points @ u).sum(axis=1) - 2.4

    return x, target(x) + 0.1 * draw.standard_normal(n), z, target(z)


def run_large() -> list[Comparison]:
    """Run the fit to 50,000 points, once per side in separate processes. Takes many minutes."""
    results = {}
    for job in ("nothing", "large", "large_nystroem"):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.kernels", job],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        results[job] = json.loads(done.stdout)
        say(f"{job}: {results[job]}")
    ours, peer = results["large"], results["large_nystroem"]
    notes: dict[str, float | str] = {
        f"{name}_{key}": value
        for name, entry in (("ours", ours), ("peer", peer))
        for key, value in entry.items()
        if key != "seconds"
    }
    return [
        Comparison(
            "NTK ridge path, kernel never stored / Nystroem + Ridge, three bandwidths: n=50,000",
            "fit",
            [ours["seconds"]],
            [peer["seconds"]],
            1.0,
            notes=notes,
        )
    ]


def run() -> list[Comparison]:
    """Run all benchmarks except the large fit (`run_large`)."""
    return [gram_matrix(True), gram_matrix(False), finite_tangent(), ridges()]


def job(name: str) -> dict[str, Any]:
    """Run the fit of a process that measures its memory."""
    if name in ("tangent", "jacobian"):
        with jax.enable_x64(True):
            net, x = (
                network(200, 100),
                jnp.asarray(np.random.default_rng(1).standard_normal((1_000, 100))),
            )
            jax.block_until_ready(
                gram(Tangent(net), x) if name == "tangent" else jax.jit(by_jacobian)(net, x)
            )
        return {}
    if name == "nothing":
        return {}
    return large() if name == "large" else large_nystroem()


if __name__ == "__main__":
    outcome = job(sys.argv[1])
    print(json.dumps(outcome | {"peak_megabytes": high_water()}))
