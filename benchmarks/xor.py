"""SGD on XOR: the fraction of time for drawing the data, and the same loop in PyTorch.

Examples are drawn as bits inside the compiled loop. The fraction is the time that fresh
examples add to training on a fixed batch of the same size. PyTorch runs eagerly, one network at a
time, with its faster thread count, and also draws its signs in the loop.
"""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

import jax

from benchmarks.pytorch import MISSING, THREADS, with_threads
from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import use_own_program_cache
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.mean_field import mean_field_sgd
from unlazy.tasks.multi_index import MultiIndex

#: Target: drawing takes less than a fifth of the time, so fresh examples cost at most 1/(1 − 0.2)
#: of fixed ones.
DRAW_TARGET = 1.25
TORCH_TARGET = 5.0
ROUNDS = 5
WIDTH = 128


def program(learner: GradientDescent, d: int, n: int, models: int) -> Any:
    """Return a function that trains networks in one compiled program and returns the seconds."""

    def train(key: jax.Array) -> Any:
        key_task, key_learner = jax.random.split(key)
        return learner.fit(MultiIndex(d=d).task(key=key_task).sampler, n, key=key_learner).models

    keys = jax.random.split(jax.random.key(0), models)
    compiled = jax.jit(jax.vmap(train)).lower(keys).compile()
    jax.block_until_ready(compiled(keys))
    return lambda: seconds(lambda: jax.block_until_ready(compiled(keys)))


def drawing(d: int = 1024, steps: int = 40) -> Comparison:
    """Compare fresh examples with one fixed batch."""
    fresh = mean_field_sgd(width=WIDTH, batch=d, steps=steps)
    stage = fresh.stages[0]
    assert isinstance(stage, Descent)
    fixed = GradientDescent(fresh.init, (dataclasses.replace(stage, batch=None),))
    say(f"XOR, d={d}: compiling both programs …")
    methods = {"fresh": program(fresh, d, steps * d, 1), "fixed": program(fixed, d, d, 1)}
    times = interleaved(methods, 2 * ROUNDS - 1, f"XOR, d={d}")
    fraction = 1 - statistics.median(
        b / a for a, b in zip(times["fresh"], times["fixed"], strict=True)
    )
    return Comparison(
        f"XOR with fresh bits / on a fixed batch: d={d}, width {WIDTH}",
        "step",
        [t / steps for t in times["fresh"]],
        [t / steps for t in times["fixed"]],
        DRAW_TARGET,
        better="lower",
        notes={"share_of_drawing": round(fraction, 3)},
    )


def torch_training(d: int, steps: int) -> Any:
    """Run the same loop in PyTorch: draw signs, forward, backward, step."""
    import torch

    def train() -> None:
        w = torch.randn(WIDTH, d)
        w = (0.3 * w / w.norm(dim=1, keepdim=True)).requires_grad_()
        a = (0.3 * (2.0 * torch.randint(0, 2, (WIDTH,)) - 1) / WIDTH).requires_grad_()
        optimizer = torch.optim.SGD(
            [{"params": [w], "lr": 1.0 * WIDTH}, {"params": [a], "lr": 1.0 / WIDTH}], lr=1.0
        )
        for _ in range(steps):
            x = 2.0 * torch.randint(0, 2, (d, d)) - 1
            y = -x[:, 0] * x[:, 1]
            optimizer.zero_grad()
            torch.nn.functional.softplus(-y * (torch.relu(x @ w.T) @ a)).mean().backward()
            optimizer.step()

    return lambda: seconds(train)


def against_torch(d: int = 128, steps: int = 100, models: int = 16) -> Comparison:
    """Time per step of one network."""
    import torch

    say(f"XOR, d={d}: compiling the program …")
    ours, theirs = (
        program(mean_field_sgd(width=WIDTH, batch=d, steps=steps), d, steps * d, models),
        torch_training(d, steps),
    )
    theirs()
    methods = {
        "ours": ours,
        **{f"torch ({threads} threads)": with_threads(threads, theirs) for threads in THREADS},
    }
    times = interleaved(methods, ROUNDS, f"XOR against PyTorch, d={d}")
    peers = {threads: times[f"torch ({threads} threads)"] for threads in THREADS}
    fastest = min(peers, key=lambda threads: statistics.median(peers[threads]))
    return Comparison(
        f"XOR / PyTorch eager: d={d}, width {WIDTH}, batch {d}",
        "model-step",
        [t / (steps * models) for t in times["ours"]],
        [t / steps for t in peers[fastest]],
        TORCH_TARGET,
        notes={"torch": torch.__version__, "torch_threads": fastest, "models": models},
    )


def run() -> list[Comparison]:
    """Run both; the second only if PyTorch is installed."""
    use_own_program_cache()
    found = [drawing()]
    try:
        import torch  # noqa: F401
    except ImportError:
        say(MISSING)
        return found
    return [*found, against_torch()]
