"""Exact computations on circuits and input distributions: recursions versus enumeration.

Reference: malach2019, Sections 3–5.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.core.random import host_generator
from unlazy.lab.trials import ExactComputation
from unlazy.tasks.circuits.bits import pack, unpack
from unlazy.tasks.circuits.circuit import GATES, NAMES, TABLE, Circuit, every_input
from unlazy.tasks.circuits.correlation import correlations, influences, simplified
from unlazy.tasks.circuits.distributions import (
    GenerativeDistribution,
    InputDistribution,
    MixtureDistribution,
    ProductDistribution,
    WeightedSample,
)
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.families import LISTED
from unlazy.theory.local_properties import check_properties

#: Tolerance far above the rounding of sums and products of some hundred float64 values.
EXACT = 1e-12


class OverSizes(ExactComputation):
    """Computation on circuits of several sizes; the axis is the number n of inputs.

    Quantities in `WORST` are accumulated over the sizes up to n; the last value covers all sizes.
    """

    WORST: ClassVar[dict[str, np.ufunc]] = {}

    sizes: tuple[int, ...] = eqx.field(static=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    axis = "sizes"

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Measure one size."""
        raise NotImplementedError

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        rng = host_generator(key)
        rows = [self.at(n, rng) for n in self.sizes]
        table = {name: np.array([row[name] for row in rows], float) for name in rows[0]}
        return table | {name: ufunc.accumulate(table[name]) for name, ufunc in self.WORST.items()}


def all_inputs(n: int) -> np.ndarray:
    """Return all 2^n inputs as Booleans (2^n, n)."""
    return unpack(every_input(n), 2**n)


def plain_evaluation(circuit: Circuit, x: np.ndarray) -> list[np.ndarray]:
    """Return all node values by table look-up, level 0 (output) first."""
    nodes = [x.astype(int)]
    for level in reversed(circuit.levels):
        nodes.append(TABLE[level[None], 2 * nodes[-1][:, 0::2] + nodes[-1][:, 1::2]])
    return nodes[::-1]


class Enumeration(OverSizes):
    """Bit-packed evaluation, c_ij and I_ij of random circuits versus enumeration of all inputs.

    The circuits have all sixteen gates. `evaluation_errors`: number of node values that differ.
    `correlation_gap`, `influence_gap`: maximum differences. `print_errors`: circuits that change
    when printed and parsed. `other` enumerates another circuit, so that nothing agrees.
    """

    circuits: int = eqx.field(static=True, default=5, kw_only=True)
    other: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {
        "evaluation_errors": np.add,
        "print_errors": np.add,
        "correlation_gap": np.maximum,
        "influence_gap": np.maximum,
    }

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        measured = {
            "evaluation_errors": 0.0,
            "print_errors": 0.0,
            "correlation_gap": 0.0,
            "influence_gap": 0.0,
        }
        x = all_inputs(n)
        for _ in range(self.circuits):
            circuit, p = random_circuit(n, rng, NAMES), rng.uniform(0.05, 0.95, n)
            listed = _other(circuit) if self.other else circuit
            nodes = plain_evaluation(listed, x)
            packed = circuit.evaluate(every_input(n))
            measured["evaluation_errors"] += sum(
                np.sum(unpack(a, len(x)) != b) for a, b in zip(packed, nodes, strict=True)
            )
            measured["print_errors"] += Circuit.parse(str(circuit)) != listed
            weights = np.prod(np.where(x, p, 1 - p), axis=1)
            y = 2 * nodes[0][:, 0] - 1
            enumerated = [weights * y @ (2 * level - 1) for level in nodes]
            exact = correlations(circuit, ProductDistribution(p)).c
            measured["correlation_gap"] = max(
                measured["correlation_gap"], _difference(enumerated, exact)
            )
            measured["influence_gap"] = max(
                measured["influence_gap"],
                _difference(enumerated_influences(listed), influences(circuit)),
            )
        return measured


def enumerated_influences(circuit: Circuit) -> list[np.ndarray]:
    """Return the influences I_ij by flipping every node for all values of its level."""
    levels = [np.ones(1)]
    for i in range(1, circuit.depth + 1):
        above = Circuit(circuit.gates[: 2**i - 1])
        output = plain_evaluation(above, all_inputs(2**i))[0][:, 0]
        number = np.arange(2 ** (2**i))
        levels.append(
            np.array(
                [np.mean(output != output[number ^ (1 << (2**i - 1 - j))]) for j in range(2**i)]
            )
        )
    return levels


def _other(circuit: Circuit) -> Circuit:
    """Return the circuit with each gate of the upper levels replaced by the next one."""
    gates = circuit.gates.copy()
    gates[: max(1, circuit.n // 2 - 1)] = (gates[: max(1, circuit.n // 2 - 1)] + 1) % 16
    return Circuit(gates)


def _difference(one: list[np.ndarray], two: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, two, strict=True))


class ParityConstruction(OverSizes):
    """Lemma 5: the printed circuit of the parity of log₂ n random bits, P(x_j = 1) = p.

    `label_errors`: number of outputs that differ from the parity, over all inputs up to n = 16 and
    over a sample above. `frequency_z`: maximum deviation of a sample mean from `stated`, in
    standard errors. `gate` replaces the product (XNOR) in the upper levels.
    """

    p: float = eqx.field(converter=float, default=0.75, kw_only=True)
    stated: float = eqx.field(converter=float, default=0.75, kw_only=True)
    gate: str = eqx.field(static=True, default="XNOR", kw_only=True)
    sample: int = eqx.field(static=True, default=20_000, kw_only=True)

    WORST: ClassVar = {"label_errors": np.add, "frequency_z": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        k = n.bit_length() - 1
        relevant, distribution = (
            rng.choice(n, k, replace=False),
            ProductDistribution(np.full(n, self.p)),
        )
        circuit = parity_circuit(n, relevant.tolist(), printed=True)
        upper = n // 2 - 1
        circuit = Circuit(
            np.concatenate([np.full(upper, GATES[self.gate], np.uint8), circuit.gates[upper:]])
        )
        drawn = unpack(distribution.draw(self.sample, rng), self.sample)
        x = all_inputs(n) if n <= LISTED else drawn
        label = np.prod(np.where(x[:, relevant], 1, -1), axis=1) > 0
        wrong = int(np.sum(unpack(circuit.output(pack(x))[None], len(x))[:, 0] != label))
        z = np.abs(drawn.mean(axis=0) - self.stated) / np.sqrt(
            self.stated * (1 - self.stated) / self.sample
        )
        return {"label_errors": wrong, "frequency_z": z.max()}


def generative_masses(circuit: Circuit) -> np.ndarray:
    """Return P(x) of every input under the generative distribution with balanced labels.

    P(x) is ½ times the product over gates of 1/(number of patterns with the gate's value).
    """
    nodes = plain_evaluation(circuit, all_inputs(circuit.n))
    mass = np.full(len(nodes[0]), 0.5)
    for gates, values in zip(circuit.levels, nodes, strict=False):
        ones = TABLE[gates].sum(axis=1)
        mass = mass * np.prod(1 / np.where(values == 1, ones, 4 - ones), axis=1)
    return mass


def printed_masses(circuit: Circuit) -> np.ndarray:
    """Return P(x) of every input under the recursion as printed.

    There, both values of a gate draw from the patterns with value +1.
    """
    gates = circuit.levels[-1]
    values = plain_evaluation(circuit, all_inputs(circuit.n))[circuit.depth - 1]
    result: np.ndarray = np.prod(
        np.where(values == 1, 1 / np.maximum(1, TABLE[gates].sum(axis=1)), 0.0), axis=1
    )
    return result


class PushForward(OverSizes):
    """Lemma 9 by enumeration.

    `distance`: maximum over levels of the total variation distance of Γ_i(D⁽ⁱ⁾) and D⁽ⁱ⁻¹⁾.
    `chi_square`: χ² per degree of freedom of `sample` drawn inputs against their exact
    probabilities. `printed` uses the distribution as printed in the paper.
    """

    sample: int = eqx.field(static=True, default=200_000, kw_only=True)
    printed: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {"distance": np.maximum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        circuit, masses = (
            random_circuit(n, rng),
            printed_masses if self.printed else generative_masses,
        )
        worst = 0.0
        for i in range(2, circuit.depth + 1):
            lower, upper = (
                Circuit(circuit.gates[: 2**i - 1]),
                Circuit(circuit.gates[: 2 ** (i - 1) - 1]),
            )
            mass = masses(lower)
            index = plain_evaluation(lower, all_inputs(2**i))[i - 1] @ (
                1 << np.arange(2 ** (i - 1))[::-1]
            )
            pushed = np.bincount(index, mass, 2 ** (2 ** (i - 1)))
            worst = max(worst, float(np.abs(pushed - masses(upper)).sum()) / 2)
        expected = masses(circuit) * self.sample
        x = unpack(GenerativeDistribution(circuit).draw(self.sample, rng), self.sample)
        counts = np.bincount(x @ (1 << np.arange(n)[::-1]), minlength=2**n)
        possible = expected > 0
        chi = np.sum((counts[possible] - expected[possible]) ** 2 / expected[possible]) / max(
            1, possible.sum() - 1
        )
        return {"distance": worst, "chi_square": chi}


class LocalCorrelation(OverSizes):
    """Lemma 3 on random circuits and random product distributions.

    Gates without influence are set to TRUE. `with_lca`: number of cases with LCA for some Δ > 0.
    Among these, `broken`: number that violate a property; `rare`: number with ε < Δ²/4, where Δ
    also bounds the input probabilities (Definition 1); `tightest`: minimum ε/(Δ²/4).
    `checker_gap`: maximum difference of Δ and ε between recursion and enumeration. `dependent`
    violates the conditions: distributions are mixtures of two product distributions, Δ does not
    bound the input probabilities, and the enumeration uses one component only.
    """

    circuits: int = eqx.field(static=True, default=200, kw_only=True)
    dependent: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {
        "with_lca": np.add,
        "broken": np.add,
        "rare": np.add,
        "tightest": np.minimum,
        "checker_gap": np.maximum,
    }

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        measured = {
            "with_lca": 0.0,
            "broken": 0.0,
            "rare": 0.0,
            "tightest": 1e3,
            "checker_gap": 0.0,
        }
        x, enumerated = all_inputs(n), 0
        for _ in range(self.circuits):
            circuit, distribution, p, delta = self._draw(n, rng)
            known = correlations(circuit, distribution)
            if not np.isfinite(known.margin):
                continue
            if enumerated < 5:
                enumerated += 1
                y = plain_evaluation(circuit, x)[0][:, 0] > 0
                listed = correlations(
                    circuit, WeightedSample(x, y, np.prod(np.where(x, p, 1 - p), axis=1))
                )
                gap = max(abs(listed.margin - known.margin), abs(listed.epsilon - known.epsilon))
                measured["checker_gap"] = max(measured["checker_gap"], gap)
            if known.margin <= EXACT:
                continue
            measured["with_lca"] += 1
            answers = check_properties(circuit, distribution)
            measured["broken"] += any(answer.answer != "holds" for answer in answers.values())
            ratio = known.epsilon / (min(known.margin, delta) ** 2 / 4)
            measured["rare"] += ratio < 1
            measured["tightest"] = min(measured["tightest"], ratio)
        return measured

    def _draw(
        self, n: int, rng: np.random.Generator
    ) -> tuple[Circuit, InputDistribution, np.ndarray, float]:
        """Return a circuit, its distribution, all P(x_j = 1), and min P(x_j = ±1)."""
        circuit = simplified(random_circuit(n, rng, NAMES))
        if not self.dependent:
            p = rng.uniform(0.1, 0.9, n)
            return circuit, ProductDistribution(p), p, min(p.min(), 1 - p.max())
        p, other = rng.uniform(0.001, 0.999, (2, n)) ** 3
        return (
            circuit,
            MixtureDistribution((0.5, 0.5), (ProductDistribution(p), ProductDistribution(other))),
            p,
            1.0,
        )


def marginals(circuit: Circuit, p: np.ndarray) -> list[np.ndarray]:
    """Return P(z_ij = 1) on levels 0 … d for independent inputs."""
    levels = [p]
    for gates in reversed(circuit.levels):
        left, right = (
            np.stack([1 - side, side], 1) for side in (levels[-1][0::2], levels[-1][1::2])
        )
        levels.append(np.einsum("ga,gb,gab->g", left, right, TABLE[gates].reshape(-1, 2, 2)))
    return levels[::-1]
