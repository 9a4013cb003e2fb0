"""Further peers: convolutions versus PyTorch, recursive feature machines versus xRFM, wide kernels
versus neural-tangents.

xRFM is optional (`pip install xrfm`). neural-tangents needs its own version of JAX: name a Python
with both in `UNLAZY_NEURAL_TANGENTS`; it is timed in that process, in the same rounds. Missing
peers are reported and skipped.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from benchmarks.pytorch import MISSING, THREADS, with_threads
from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import use_own_program_cache
from unlazy.core.random import normal
from unlazy.estimators import RecursiveFeatureMachineRegressor
from unlazy.kernels.gram import gram
from unlazy.kernels.wide import NTK
from unlazy.lab.engines.local import LocalEngine
from unlazy.lab.trials import Trial
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.networks.convolutional import ConvolutionalInit
from unlazy.tasks.base import Batch, Family, Task

ROUNDS = 3
SIDE, CHANNELS, NETS, BATCH, STEPS, SAMPLE = 16, (16, 32), 8, 50, 60, 1_000
RFM_N, RFM_D, RFM_ITERATIONS = 1_500, 30, 3
WIDE_N, WIDE_D, WIDE_DEPTH = 2_000, 100, 3


class Pixels(Task):
    """Gaussian images; the label is the sign of the mean of one quarter."""

    side: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an input."""
        return (self.side, self.side, 1)

    @property
    def dimension(self) -> int:
        """Number of pixels."""
        return self.side**2

    def draw(self, n: int, key: PRNGKeyArray) -> Batch:
        """Draw images and their labels."""
        x = normal(key, (n, *self.shape))
        return Batch(x, self.target(x))

    def target(self, x: Float[Array, "n h w c"]) -> Float[Array, " n"]:
        """The label."""
        return jnp.where(
            jnp.mean(x[:, : self.side // 2, : self.side // 2], axis=(1, 2, 3)) > 0, 1.0, -1.0
        )

    @property
    def features(self) -> Float[Array, "1 d"]:
        """The quarter."""
        return jnp.zeros((1, self.dimension)).at[:, 0].set(1.0)

    @property
    def chance(self) -> Float[Array, ""]:
        """Both labels are equally likely."""
        return jnp.asarray(0.5)


class PixelsFamily(Family):
    """One task without hidden parameters."""

    side: int = eqx.field(static=True, default=SIDE)

    @property
    def dimension(self) -> int:
        """Number of pixels."""
        return self.side**2

    def task(self, *, key: PRNGKeyArray) -> Pixels:
        """The task."""
        return Pixels(self.side)


def torch_convolutions() -> Callable[[], float]:
    """Train one network with the same layers and steps in a PyTorch loop."""
    import torch

    first, second = CHANNELS
    x = torch.randn(SAMPLE, 1, SIDE, SIDE)
    y = torch.sign(x[:, 0, : SIDE // 2, : SIDE // 2].mean(dim=(1, 2)))

    def train() -> None:
        net = torch.nn.Sequential(
            *(torch.nn.Conv2d(1, first, 3, padding=1), torch.nn.ReLU(), torch.nn.AvgPool2d(2)),
            *(torch.nn.Conv2d(first, second, 3, padding=1), torch.nn.ReLU(), torch.nn.AvgPool2d(2)),
            *(torch.nn.Flatten(), torch.nn.Linear(second * (SIDE // 4) ** 2, 1)),
        )
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for step in range(STEPS):
            rows = torch.randint(SAMPLE, (BATCH,)) if step else slice(0, BATCH)
            optimizer.zero_grad()
            torch.relu(1 - y[rows] * net(x[rows])[:, 0]).mean().backward()
            optimizer.step()

    return lambda: seconds(train)


def convolutions() -> list[Comparison]:
    """Time networks in the engine, per step of one network."""
    try:
        import torch
    except ImportError:
        say(MISSING)
        return []
    use_own_program_cache()
    rates = {"filters": 0.01, "biases": 0.01, "a": 0.01, "c": 0.01}
    learner = GradientDescent(
        ConvolutionalInit(CHANNELS), (Descent(rates, steps=STEPS, batch=BATCH, loss="hinge"),)
    )
    trials = [Trial(PixelsFamily(), learner, SAMPLE, seed, ()) for seed in range(NETS)]
    engine, train = LocalEngine(), torch_convolutions()

    def ours() -> float:
        before = engine.compile_seconds
        return seconds(lambda: list(engine.run(trials))) - (engine.compile_seconds - before)

    say("Convolutions: compiling …")
    ours()
    train()
    methods = {
        "engine": ours,
        **{f"torch ({threads} threads)": with_threads(threads, train) for threads in THREADS},
    }
    times = interleaved(methods, ROUNDS, "Convolutions")
    peers = {threads: times[f"torch ({threads} threads)"] for threads in THREADS}
    fastest = min(peers, key=lambda threads: statistics.median(peers[threads]))
    return [
        Comparison(
            f"convolutional networks, {NETS} at once / PyTorch eager: {SIDE}×{SIDE}, channels "
            f"{CHANNELS}, batch {BATCH}",
            "model-step",
            [total / (NETS * STEPS) for total in times["engine"]],
            [total / STEPS for total in peers[fastest]],
            1.0,
            notes={"torch": torch.__version__, "torch_threads": fastest},
        )
    ]


def feature_machines() -> list[Comparison]:
    """Time both with the same points and iterations, a Laplace kernel and one ridge."""
    try:
        import torch
        from xrfm import RFM
    except ImportError:
        say("xRFM is left out: it is not installed (pip install xrfm).")
        return []
    rng = np.random.default_rng(0)
    x = rng.standard_normal((RFM_N, RFM_D))
    y = x[:, 0] * x[:, 1]
    points, values = (
        torch.tensor(x, dtype=torch.float32),
        torch.tensor(y[:, None], dtype=torch.float32),
    )

    def ours() -> None:
        RecursiveFeatureMachineRegressor(iterations=RFM_ITERATIONS, ridge=1e-3).fit(x, y)

    def theirs() -> None:
        machine = RFM(
            "laplace",
            iters=RFM_ITERATIONS,
            bandwidth=float(RFM_D) ** 0.5,
            device="cpu",
            verbose=False,
        )
        machine.fit(
            (points, values),
            (points[:50], values[:50]),
            reg=1e-3,
            early_stop_rfm=False,
            return_best_params=False,
        )

    ours()
    theirs()
    times = interleaved(
        {"ours": lambda: seconds(ours), "xRFM": lambda: seconds(theirs)},
        ROUNDS,
        "Recursive feature machines",
    )
    what = f"recursive feature machine / xRFM: n={RFM_N:,}, d={RFM_D}, {RFM_ITERATIONS} iterations"
    return [
        Comparison(
            what,
            "fit",
            times["ours"],
            times["xRFM"],
            1.0,
            notes={"ours": "float64", "xRFM": "float32"},
        )
    ]


#: Program of the other Python: compile, then time one run per input line.
_TANGENTS = f"""
import json, sys, time
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np, neural_tangents
from neural_tangents import stax
x = np.random.default_rng(0).standard_normal(({WIDE_N}, {WIDE_D}))
layers = [part for _ in range({WIDE_DEPTH}) for part in (stax.Dense(1), stax.Relu())]
layers.append(stax.Dense(1))
kernel = jax.jit(lambda x: stax.serial(*layers)[2](x, x, "ntk"))
kernel(x).block_until_ready()
print(json.dumps([neural_tangents.__version__, jax.__version__]), flush=True)
for _ in sys.stdin:
    begin = time.perf_counter()
    kernel(x).block_until_ready()
    print(time.perf_counter() - begin, flush=True)
"""


def wide_kernels() -> list[Comparison]:
    """Time the tangent kernel of a deep wide ReLU network in double precision."""
    python = os.environ.get("UNLAZY_NEURAL_TANGENTS")
    if not python:
        say("neural-tangents is left out: name a Python that has it in UNLAZY_NEURAL_TANGENTS.")
        return []
    other = subprocess.Popen(
        [python, "-c", _TANGENTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdin is not None and other.stdout is not None
    versions: list[Any] = json.loads(other.stdout.readline())

    def theirs() -> float:
        other.stdin.write("go\n")
        other.stdin.flush()
        return float(other.stdout.readline())

    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).standard_normal((WIDE_N, WIDE_D)))
        kernel = NTK(depth=WIDE_DEPTH)
        ours = lambda: seconds(lambda: jax.block_until_ready(gram(kernel, x)))  # noqa: E731
        ours()
        times = interleaved(
            {"ours": ours, "neural-tangents": theirs}, ROUNDS, "Wide tangent kernels"
        )
    other.stdin.close()
    other.wait()
    what = (
        f"NTK Gram / neural-tangents: {WIDE_N:,}², d={WIDE_D}, {WIDE_DEPTH} hidden layers, float64"
    )
    notes = dict(zip(("neural-tangents", "its JAX"), versions, strict=True))
    return [Comparison(what, "matrix", times["ours"], times["neural-tangents"], 1.0, notes=notes)]


def run() -> list[Comparison]:
    """Run the benchmarks of available peers."""
    return [*convolutions(), *feature_machines(), *wide_kernels()]
