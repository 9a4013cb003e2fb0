"""One training step of ResNet(16) on 32 × 32 color images, batch 128, versus the same network in
PyTorch, both on all cores.

Both use group normalization, and take a step of SGD on the logistic loss.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from benchmarks.pytorch import MISSING
from benchmarks.timing import Comparison, interleaved, say, seconds
from unlazy.networks.image_resnet import BLOCKS, STAGES, ImageResNetInit

#: Target time per step over PyTorch's.
TARGET = 1.3
ROUNDS, STEPS = 5, 3
M, BATCH, SIDE, RATE = 16, 128, 32, 0.01
GROUPS = 4


def ours() -> Any:
    """Return a function that takes a few steps and returns the seconds."""
    network = ImageResNetInit(M)((SIDE, SIDE, 3), key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (BATCH, SIDE, SIDE, 3))
    y = jnp.where(x[:, 0, 0, 0] > 0, 1.0, -1.0)
    arrays, rest = eqx.partition(network, eqx.is_array)

    def step(arrays: Any) -> Any:
        def loss(arrays: Any) -> Any:
            return jnp.mean(jax.nn.softplus(-y * eqx.combine(arrays, rest)(x)))

        return jax.tree.map(lambda p, g: p - RATE * g, arrays, jax.grad(loss)(arrays))

    # In a compiled loop, as in training: a convolution may cost many times more there than alone.
    steps = jax.jit(lambda start: jax.lax.fori_loop(0, STEPS, lambda _, now: step(now), start))

    def train() -> None:
        jax.block_until_ready(steps(arrays))

    train()
    return lambda: seconds(train)


def theirs() -> Any:
    """Return the same in PyTorch."""
    import torch
    from torch import nn

    torch.set_num_threads(os.cpu_count() or 1)

    class Block(nn.Module):
        """Two convolutions and a skip."""

        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            stride = 1 if i == o else 2
            self.inner = nn.Sequential(
                nn.Conv2d(i, o, 3, stride, 1, bias=False),
                nn.GroupNorm(GROUPS, o),
                nn.ReLU(),
                nn.Conv2d(o, o, 3, 1, 1, bias=False),
                nn.GroupNorm(GROUPS, o),
            )
            self.skip = (
                nn.Identity()
                if i == o
                else nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.GroupNorm(GROUPS, o))
            )

        def forward(self, x: Any) -> Any:
            """Apply one block."""
            return torch.relu(self.inner(x) + self.skip(x))

    sizes = [M, *(stage * M for stage in STAGES for _ in range(BLOCKS))]
    blocks = [Block(i, o) for i, o in itertools.pairwise(sizes)]
    first = (nn.Conv2d(3, M, 3, 1, 1, bias=False), nn.GroupNorm(GROUPS, M), nn.ReLU())
    network = nn.Sequential(
        *first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * M, 1)
    )
    x = torch.randn(BATCH, 3, SIDE, SIDE)
    y = torch.where(x[:, 0, 0, 0] > 0, 1.0, -1.0)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)

    def train() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.softplus(-y * network(x)[:, 0]).mean().backward()
            optimizer.step()

    train()
    return lambda: seconds(train)


def run() -> list[Comparison]:
    """Run the benchmark; empty if PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        say(MISSING)
        return []
    say("ResNet(16): compiling …")
    times = interleaved({"ours": ours(), "torch": theirs()}, ROUNDS, "ResNet(16)")
    return [
        Comparison(
            f"ResNet({M}), batch {BATCH}, {SIDE} × {SIDE} pixels / PyTorch eager",
            "step",
            [t / STEPS for t in times["ours"]],
            [t / STEPS for t in times["torch"]],
            TARGET,
            better="lower",
            notes={"torch": torch.__version__},
        )
    ]
