"""Lemmas 6 and 8 beside exact correlations, with the ε that Corollary 7 and Section 5.2 name; and
how many functions trees compute.

Reference: malach2019, Sections 3 and 5.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import PRNGKeyArray

from unlazy.lab.trials import ExactComputation
from unlazy.papers.malach2019.computations import OverSizes, marginals
from unlazy.tasks.circuits.circuit import GATES, MONOTONE_AND_NEGATED, NAMES, TABLE
from unlazy.tasks.circuits.correlation import correlations
from unlazy.tasks.circuits.distributions import GenerativeDistribution, ProductDistribution
from unlazy.tasks.circuits.examples import parity_circuit, random_circuit
from unlazy.tasks.circuits.families import LISTED

#: How far inside the open intervals of Lemma 6 the laws at their ends lie.
INSIDE = 1e-6


class ParityMargin(OverSizes):
    """Lemma 6 and the ε of Corollary 7 on product laws with p_j ∈ (ξ, ½ − ξ) ∪ (½ + ξ, 1 − ξ),
    parity of k = log₂ n bits.

    Half of the laws are drawn from the intervals, half from their ends, where the bounds are tight.
    `gap_ratio`: least (|c_ij| − |E y|) / (2ξ)^k over influencing nodes. `inside`: least distance of
    P(z_ij = 1) to the ends of (ξ, 1 − ξ). `pattern_ratio`: least ε/ξ². `anywhere` draws p_j from
    the whole of (ξ/10, 1 − ξ/10) instead.
    """

    xi: float = eqx.field(converter=float, default=0.1, kw_only=True)
    distributions: int = eqx.field(static=True, default=50, kw_only=True, metadata={"key": "laws"})
    anywhere: bool = eqx.field(static=True, default=False, kw_only=True)

    WORST: ClassVar = {"gap_ratio": np.minimum, "inside": np.minimum, "pattern_ratio": np.minimum}

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        k, xi = n.bit_length() - 1, self.xi
        gap = inside = pattern = np.inf
        for index in range(self.distributions):
            p = self._draw(n, rng, ends=index % 2 == 1)
            circuit, distribution = (
                parity_circuit(n, rng.choice(n, k, replace=False).tolist()),
                ProductDistribution(p),
            )
            known = correlations(circuit, distribution)
            gap, pattern = (
                min(gap, known.margin / (2 * xi) ** k),
                min(pattern, known.epsilon / xi**2),
            )
            used = [
                level[i > 0]
                for level, i in zip(marginals(circuit, p), known.influence, strict=True)
            ]
            inside = min(
                inside, min(float(np.minimum(level - xi, 1 - xi - level).min()) for level in used)
            )
        return {"gap_ratio": gap, "inside": inside, "pattern_ratio": pattern}

    def _draw(self, n: int, rng: np.random.Generator, *, ends: bool) -> np.ndarray:
        if self.anywhere:
            return rng.uniform(self.xi / 10, 1 - self.xi / 10, n)
        low = rng.uniform(self.xi, 0.5 - self.xi, n)
        if ends:  # one bit in four is as far from ½ as can be, the others as near
            low = np.where(rng.random(n) < 0.25, self.xi + INSIDE, 0.5 - self.xi - INSIDE)
        return np.where(rng.random(n) < 0.5, low, 1 - low)


class GenerativeMargin(OverSizes):
    """Lemma 8 and the ε of Section 5.2 on random circuits under their generative laws; the first
    has OR gates alone.

    `gap`: greatest | |c_ij| − (2/3)^i |. `least_ratio`: least (|c_ij| − |E y|) / (2/3)^d, over all
    levels; `strict_ratio`: the same above the inputs. `pattern_ratio`: least ε·n²; `closed_form`:
    least ε over ¼·(2/3)^d. `influence`: least influence of a node, up to n = 16 (above, it is too
    small for a double). `gates` and the share `positive` of labels +1 are those of the text unless
    given.
    """

    circuits: int = eqx.field(static=True, default=10, kw_only=True)
    gates: tuple[str, ...] = eqx.field(static=True, default=MONOTONE_AND_NEGATED, kw_only=True)
    positive: float = eqx.field(converter=float, default=0.5, kw_only=True)

    WORST: ClassVar = {
        "gap": np.maximum,
        "least_ratio": np.minimum,
        "strict_ratio": np.minimum,
        "pattern_ratio": np.minimum,
        "closed_form": np.minimum,
        "influence": np.minimum,
    }

    def at(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        d, found = n.bit_length() - 1, []
        for index in range(self.circuits):
            circuit = random_circuit(
                n, rng, ("OR",) if index == 0 and "OR" in self.gates else self.gates
            )
            known = correlations(circuit, GenerativeDistribution(circuit, self.positive))
            above = [np.abs(level) - abs(known.mean_label) for level in known.c]
            found.append(
                {
                    "gap": max(
                        float(np.abs(np.abs(level) - (2 / 3) ** i).max())
                        for i, level in enumerate(known.c)
                    ),
                    "least_ratio": min(float(level.min()) for level in above) / (2 / 3) ** d,
                    "strict_ratio": min(float(level.min()) for level in above[:-1]) / (2 / 3) ** d,
                    "pattern_ratio": known.epsilon * n**2,
                    "closed_form": known.epsilon / (0.25 * (2 / 3) ** d),
                    "influence": min(float(level.min()) for level in known.influence)
                    if n <= LISTED
                    else 1.0,
                }
            )
        return {
            name: rule.reduce([row[name] for row in found]) for name, rule in self.WORST.items()
        }


class CountedFunctions(ExactComputation):
    """How many functions trees of n = 2, 4, … inputs compute, each counted once, by listing truth
    tables; the axis is n.

    Tables are told apart by a hash of 64 bits: a collision could only lower the count. `count`;
    `growth`: (log |H_n| − log |H_{n/2}|) / (n/2·log 6), 1 where |H| grows like 6^n (the first size
    takes the next one's); `formula_gap`: distance to 2 + 2(6^n − 1)/5. `gates`: those that are
    allowed.
    """

    sizes: tuple[int, ...] = eqx.field(static=True)
    gates: tuple[str, ...] = eqx.field(static=True, default=NAMES, kw_only=True)
    precision: int = eqx.field(static=True, default=64, kw_only=True)  # type: ignore[assignment]

    axis = "sizes"

    def measure(self, *, key: PRNGKeyArray) -> dict[str, Any]:
        counts = np.array([len(functions_of(n, self.gates)) for n in self.sizes], float)
        rise = np.diff(np.log(counts)) / (np.diff(self.sizes) * np.log(6))
        growth = np.array([rise[0], *rise])
        formula = np.array([2 + 2 * (6**n - 1) // 5 for n in self.sizes], float)
        return {
            "count": counts,
            "growth": growth,
            "formula_gap": np.maximum.accumulate(np.abs(counts - formula)),
        }


def functions_of(n: int, gates: tuple[str, ...] = NAMES) -> np.ndarray:
    """All functions that trees of n ≤ 8 inputs with these gates compute, each once: a row of words,
    one for each value of the left half of the inputs, whose bits belong to the values of the right
    half.
    """
    below = (
        np.array([2], np.uint64) if n == 2 else _numbers(functions_of(n // 2, gates), n // 2)
    )  # one input: itself
    size = 2 ** (n // 2)
    full = np.uint64(2**size - 1)
    bits = (below[:, None] >> np.arange(size, dtype=np.uint64)) & np.uint64(1) == 1
    mixing = np.random.default_rng(0).integers(0, 2**63, size, np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    found, hashes = [], []
    for name in gates:
        low, high = (
            (below * t[1] | (full ^ below) * t[0])
            for t in TABLE[GATES[name]].astype(np.uint64).reshape(2, 2)
        )
        words = np.where(bits[:, None], high[None, :, None], low[None, :, None]).reshape(
            -1, size
        )  # left, right, value of the left half
        known, first = np.unique(words @ mixing, return_index=True)
        found.append(words[first].astype(np.uint16))
        hashes.append(known)
    return np.concatenate(found)[np.unique(np.concatenate(hashes), return_index=True)[1]]


def _numbers(words: np.ndarray, n: int) -> np.ndarray:
    """Whole truth tables of n ≤ 4 inputs as numbers."""
    size = 2 ** (n // 2)
    result: np.ndarray = (
        words.astype(np.uint64) << (size * np.arange(size)).astype(np.uint64)
    ).sum(axis=1, dtype=np.uint64)
    return result
