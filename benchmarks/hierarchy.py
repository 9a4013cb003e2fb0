"""A grid of learning rates and decays for the three-layer ResNet, trained as one program, versus
the same grid in a PyTorch loop.

Width 100, N = 500, minibatches of 50, momentum and decay, as in Figure 2(a) of allenzhu2019. Both
are timed per gradient step of one network. The time of the engine includes drawing the data, the
test error and building records. PyTorch trains one cell after the other, with its faster thread
count.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.pytorch import MISSING, THREADS, with_threads
from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import use_own_program_cache
from unlazy.lab.arms import Arm
from unlazy.lab.engines.local import LocalEngine
from unlazy.papers.allenzhu2019.figure2 import ALL_CELLS
from unlazy.papers.allenzhu2019.setting import error_probes, momentum_sgd
from unlazy.tasks.hierarchy import PairHierarchy

TARGET = 8.0
ROUNDS = 5
WIDTH, EXAMPLES, BATCH = 100, 500, 50
#: Epochs of the engine's grid, and of each of PyTorch's cells.
EPOCHS, TORCH_EPOCHS = 400, 10
STEPS = EXAMPLES // BATCH
INPUTS, OUTPUTS = 30, 15


class GridRun:
    """The grid in the engine, timed repeatedly without compilation."""

    def __init__(self) -> None:
        family = PairHierarchy()
        arms = [
            Arm(
                family,
                momentum_sgd("3resnet", "all", WIDTH, EXAMPLES, cell, EPOCHS),
                EXAMPLES,
                error_probes(1000, 1000),
            )
            for cell in ALL_CELLS
        ]
        self.trials = [trial for arm in arms for trial in arm.trials([0])]
        self.engine = LocalEngine()

    def __call__(self) -> float:
        before = self.engine.compile_seconds
        total = seconds(lambda: list(self.engine.run(self.trials)))
        return total - (self.engine.compile_seconds - before)


def torch_grid() -> Any:
    """Return a function that trains all cells of the grid in sequence and returns the seconds."""
    import torch

    class Net(torch.nn.Module):
        """out₁ + A·σ(V·out₁ + b₂), out₁ = A·σ(W·x + b₁)."""

        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(INPUTS, WIDTH)
            self.second = torch.nn.Linear(OUTPUTS, WIDTH)
            self.last = torch.nn.Linear(WIDTH, OUTPUTS, bias=False)
            for parameter in self.parameters():
                torch.nn.init.normal_(parameter, 0, WIDTH**-0.5)

        def forward(self, x: Any) -> Any:
            """Return the outputs of a batch."""
            base = self.last(torch.relu(self.first(x)))
            return base + self.last(torch.relu(self.second(base)))

    x = torch.sign(torch.randn(EXAMPLES, INPUTS))
    base = x[:, ::2] * x[:, 1::2]
    signs = torch.tensor([1.0 if index % 2 else -1.0 for index in range(OUTPUTS)])
    y = base + 0.3 * torch.prod(base[:, :4], dim=1, keepdim=True) * signs

    def train() -> None:
        for rate, decay in ALL_CELLS:
            net = Net()
            optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=decay)
            for _ in range(TORCH_EPOCHS):
                for rows in torch.randperm(EXAMPLES).split(BATCH):
                    optimizer.zero_grad()
                    loss = 0.5 * torch.square(net(x[rows]) - y[rows]).sum(dim=1).mean()
                    loss.backward()
                    optimizer.step()

    return lambda: seconds(train)


def run() -> list[Comparison]:
    """Time the grid in both; empty if PyTorch is not installed."""
    try:
        import torch
    except ImportError:
        say(MISSING)
        return []
    use_own_program_cache()
    say("Grid of a three-layer ResNet: compiling the engine's programs …")
    ours, train = GridRun(), torch_grid()
    ours()
    train()
    methods = {
        "engine": ours,
        **{f"torch ({threads} threads)": with_threads(threads, train) for threads in THREADS},
    }
    times = interleaved(methods, ROUNDS, "Grid of a three-layer ResNet")
    peers = {threads: times[f"torch ({threads} threads)"] for threads in THREADS}
    fastest = min(peers, key=lambda threads: statistics.median(peers[threads]))
    cells = len(ALL_CELLS) * STEPS
    return [
        Comparison(
            f"grid of {len(ALL_CELLS)} as one program / PyTorch eager: three-layer ResNet, "
            f"width {WIDTH}, N = {EXAMPLES}",
            "model-step",
            [total / (cells * EPOCHS) for total in times["engine"]],
            [total / (cells * TORCH_EPOCHS) for total in peers[fastest]],
            TARGET,
            notes={"torch": torch.__version__, "torch_threads": fastest},
        )
    ]
