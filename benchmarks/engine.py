"""The engine versus `jax.jit(jax.vmap(scan))` written by hand for this one computation.

Both draw the same tasks, samples and initial networks from the same seeds, and shuffle the sample
in each epoch (the manual program by `jax.random.permutation`). First, a check on full-batch steps,
which do not depend on the order, shows that both train the same networks. Remaining differences
favor the manual program: its arguments are prepared, its loss and groups are fixed, and it returns
parameters only. The time of the engine includes planning, stacking of inputs and building of
records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import Comparison, interleaved, say, seconds
from benchmarks.workloads import SMALL, WORKLOADS, EngineRun, Workload, use_own_program_cache

TARGET = 0.9
ROUNDS = 5


def by_hand(workload: Workload) -> Callable[[jax.Array], Any]:
    """Return the training of one network as a function of its seed.

    An epoch is one shuffle and one scan over its minibatches.
    """
    d, m, n, batch = workload.d, workload.pairs, workload.n, workload.batch
    rate = dict(workload.rates)
    w_scale, b_scale, a_scale = workload.scales
    batches = n // batch
    epochs, rest = divmod(workload.steps, batches)
    assert rest == 0, "the hand-written program trains for whole epochs"

    def loss(parameters: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
        hidden = jnp.clip(x @ parameters["w"].T + parameters["b"], 0, 1)
        return jnp.mean(jax.nn.relu(1 - y * (hidden @ parameters["a"])))

    def train(seed: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
        key_task, key_learner, _ = jax.random.split(jax.random.key(seed), 3)
        key_init, key_data, key_order = jax.random.split(key_learner, 3)
        key_order = jax.random.fold_in(key_order, 0)

        first, second = jax.random.permutation(key_task, d)[:2]
        x = jax.random.normal(key_data, (n, d)) / jnp.sqrt(d)
        y = jnp.where(x[:, first] * x[:, second] > 0, 1.0, -1.0)

        key_w, key_b, key_a = jax.random.split(key_init, 3)
        w = w_scale * jax.random.normal(key_w, (m, d))
        b = b_scale * jax.random.normal(key_b, (m,))
        a = a_scale * jax.random.normal(key_a, (m,))
        parameters = {
            "w": jnp.concatenate([w, w]),
            "b": jnp.concatenate([b, b]),
            "a": jnp.concatenate([a, -a]),
        }

        def step(
            parameters: dict[str, jax.Array], batch: tuple[jax.Array, jax.Array]
        ) -> tuple[dict[str, jax.Array], jax.Array]:
            value, gradient = jax.value_and_grad(loss)(parameters, *batch)
            return {
                name: parameters[name] - rate[name] * gradient[name] for name in parameters
            }, value

        def epoch(carry: Any, index: jax.Array) -> Any:
            parameters, order = carry
            order = jax.random.permutation(jax.random.fold_in(key_order, index * batches), order)
            rows = order[: batches * batch].reshape(batches, batch)
            parameters, values = jax.lax.scan(step, parameters, (x[rows], y[rows]))
            return (parameters, order), jnp.mean(values)

        (parameters, _), values = jax.lax.scan(
            epoch, (parameters, jnp.arange(n)), jnp.arange(epochs)
        )
        return parameters, jnp.mean(values)

    return train


def check_same_training(workload: Workload) -> None:
    """Raise an error unless both programs have equal mean losses over a few full-batch steps."""
    few = dataclasses.replace(workload, nets=2, n=workload.batch, steps=20)
    engine = EngineRun(few)
    engine()
    _, expected = jax.jit(jax.vmap(by_hand(few)))(jnp.arange(few.nets, dtype=jnp.uint32))
    found = [record.value("loss") for record in engine.records]
    np.testing.assert_allclose(
        found,
        expected,
        rtol=1e-5,
        err_msg="the engine and the hand-written program train different networks",
    )


def compare(workload: Workload, rounds: int = ROUNDS) -> Comparison:
    """Time both on one workload."""
    say(f"Engine, {workload.name}: compiling both programs …")
    seeds = jnp.arange(workload.nets, dtype=jnp.uint32)
    compiled: list[Any] = []
    hand_compile = seconds(
        lambda: compiled.append(jax.jit(jax.vmap(by_hand(workload))).lower(seeds).compile())
    )
    program = compiled[0]
    ours = EngineRun(workload)

    ours()
    jax.block_until_ready(program(seeds))
    times = interleaved(
        {"engine": ours, "by hand": lambda: seconds(lambda: jax.block_until_ready(program(seeds)))},
        rounds,
        f"Engine, {workload.name}",
    )
    return Comparison(
        f"engine / hand-written jit(vmap(scan)): {workload.name}",
        "run",
        times["engine"],
        times["by hand"],
        TARGET,
        notes={
            "engine_compile_seconds": round(ours.compile_seconds[0], 2),
            "by_hand_compile_seconds": round(hand_compile, 2),
        },
    )


def run() -> list[Comparison]:
    """Run all workloads, with an empty cache of compiled programs."""
    use_own_program_cache()
    say("Engine: checking that both programs train the same networks …")
    check_same_training(SMALL)
    return [compare(workload) for workload in WORKLOADS]
