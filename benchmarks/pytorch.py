"""The engine versus a PyTorch loop that trains the same networks one at a time, in time per
gradient step of one network.

PyTorch runs eagerly with its faster thread count, and only its training loop is timed. The time of
the engine includes drawing the data and building records.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import LARGE, SMALL, EngineRun, Workload, use_own_program_cache

#: Target speedup per step: many small networks in parallel, and one large one.
TARGETS = {SMALL: 8.0, LARGE: 1.0}
ROUNDS = 5
#: Number of timed steps of PyTorch.
TORCH_STEPS = {SMALL: 1_000, LARGE: 100}
THREADS = (1, 2)
MISSING = "PyTorch is not installed: skipped. Install it with `pip install -e .[bench]`."


def torch_training(workload: Workload, steps: int) -> Any:
    """Return a function that trains one new network for `steps` steps and returns the seconds."""
    import torch

    class Net(torch.nn.Module):
        """Σ_i a_i · clip(⟨w_i, x⟩ + b_i, 0, 1) with antisymmetric initialization."""

        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(workload.d, 2 * workload.pairs)
            self.second = torch.nn.Linear(2 * workload.pairs, 1, bias=False)
            w, b, a = (
                scale * torch.randn(workload.pairs, size)
                for scale, size in zip(workload.scales, (workload.d, 1, 1), strict=True)
            )
            with torch.no_grad():
                self.first.weight.copy_(torch.cat([w, w]))
                self.first.bias.copy_(torch.cat([b, b])[:, 0])
                self.second.weight.copy_(torch.cat([a, -a]).T)

        def forward(self, x: Any) -> Any:
            """Return the scores of a batch."""
            return self.second(torch.clamp(self.first(x), 0, 1))[:, 0]

    x = torch.randn(workload.n, workload.d) / workload.d**0.5
    y = torch.sign(x[:, 0] * x[:, 1])
    rate = dict(workload.rates)

    def train() -> None:
        net = Net()
        optimizer = torch.optim.SGD(
            [
                {"params": [net.first.weight], "lr": rate["w"]},
                {"params": [net.first.bias], "lr": rate["b"]},
                {"params": [net.second.weight], "lr": rate["a"]},
            ]
        )
        done = 0
        while done < steps:
            for rows in torch.randperm(workload.n)[
                : workload.n // workload.batch * workload.batch
            ].split(workload.batch):
                optimizer.zero_grad()
                loss = torch.relu(1 - y[rows] * net(x[rows])).mean()
                loss.backward()
                optimizer.step()
                done += 1
                if done == steps:
                    return

    return lambda: seconds(train)


def with_threads(threads: int, train: Any) -> Any:
    """Run `train` with this number of threads."""
    import torch

    def run() -> float:
        torch.set_num_threads(threads)
        return train()

    return run


def compare(workload: Workload, rounds: int = ROUNDS) -> Comparison:
    """Time both on one workload."""
    import torch

    say(f"PyTorch, {workload.name}: compiling the engine's program …")
    steps = TORCH_STEPS[workload]
    train = torch_training(workload, steps)
    ours = EngineRun(workload)
    ours()
    train()
    methods = {
        "engine": ours,
        **{f"torch ({threads} threads)": with_threads(threads, train) for threads in THREADS},
    }
    times = interleaved(methods, rounds, f"PyTorch, {workload.name}")
    peers = {threads: times[f"torch ({threads} threads)"] for threads in THREADS}
    fastest = min(peers, key=lambda threads: statistics.median(peers[threads]))
    return Comparison(
        f"engine / PyTorch eager: {workload.name}",
        "model-step",
        [total / workload.model_steps for total in times["engine"]],
        [total / steps for total in peers[fastest]],
        TARGETS[workload],
        notes={"torch": torch.__version__, "torch_threads": fastest},
    )


def run() -> list[Comparison]:
    """Run all workloads; none if PyTorch is not installed."""
    try:
        import torch  # noqa: F401
    except ImportError:
        say(MISSING)
        return []
    use_own_program_cache()
    return [compare(workload) for workload in TARGETS]
