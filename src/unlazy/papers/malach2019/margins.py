"""Exact correlations versus Lemmas 6 and 8, ε of Section 5, and the number of tree functions.

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

#: Distance of p_j from the ends of the open intervals of Lemma 6.
INSIDE = 1e-6


class ParityMargin(OverSizes):
    """Lemma 6 and ε of Corollary 7 for the parity of k = log₂ n bits.

    p_j ∈ (ξ, ½ − ξ) ∪ (½ + ξ, 1 − ξ); half of the distributions have p_j near the ends, where the
    bounds are tight. `gap_ratio`: minimum (|c_ij| − |E y|) / (2ξ)^k over influencing nodes.
    `inside`: minimum distance of P(z_ij = 1) to ξ and 1 − ξ. `pattern_ratio`: minimum ε/ξ².
    `anywhere` draws p_j from (ξ/10, 1 − ξ/10) instead.
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
        if ends:  # one bit in four at the end far from ½, the others at the end near ½
            low = np.where(rng.random(n) < 0.25, self.xi + INSIDE, 0.5 - self.xi - INSIDE)
        return np.where(rng.random(n) < 0.5, low, 1 - low)


class GenerativeMargin(OverSizes):
    """Lemma 8 and ε of Section 5.2 on random circuits under their generative distributions.

    The first circuit has OR gates only. `gap`: maximum | |c_ij| − (2/3)^i |. `least_ratio`: minimum
    (|c_ij| − |E y|) / (2/3)^d over all levels; `strict_ratio`: the same without the inputs.
    `pattern_ratio`: minimum ε·n². `closed_form`: minimum ε ÷ (¼·(2/3)^d). `influence`: minimum
    I_ij, up to n = 16 (larger n underflow float64). `positive` = P(y = 1).
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
        d, rows = n.bit_length() - 1, []
        for index in range(self.circuits):
            circuit = random_circuit(
                n, rng, ("OR",) if index == 0 and "OR" in self.gates else self.gates
            )
            known = correlations(circuit, GenerativeDistribution(circuit, self.positive))
            gaps = [np.abs(level) - abs(known.mean_label) for level in known.c]
            rows.append(
                {
                    "gap": max(
                        float(np.abs(np.abs(level) - (2 / 3) ** i).max())
                        for i, level in enumerate(known.c)
                    ),
                    "least_ratio": min(float(level.min()) for level in gaps) / (2 / 3) ** d,
                    "strict_ratio": min(float(level.min()) for level in gaps[:-1]) / (2 / 3) ** d,
                    "pattern_ratio": known.epsilon * n**2,
                    "closed_form": known.epsilon / (0.25 * (2 / 3) ** d),
                    "influence": min(float(level.min()) for level in known.influence)
                    if n <= LISTED
                    else 1.0,
                }
            )
        return {
            name: ufunc.reduce([row[name] for row in rows]) for name, ufunc in self.WORST.items()
        }


class CountedFunctions(ExactComputation):
    """Number of functions computed by trees with n inputs; the axis is n.

    Truth tables are enumerated and compared by a 64-bit hash; a collision could only lower the
    count. `count` = |H_n|. `growth`: (log |H_n| − log |H_{n'}|) / ((n − n')·log 6), n' the previous
    size; 1 if |H_n| grows like 6^n. The first size takes the value of the second. `formula_gap`:
    maximum difference to 2 + 2(6^n − 1)/5. `gates`: allowed gates.
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
    """Return all functions computed by trees of n ≤ 8 inputs with these gates, one per row.

    A row holds one word per value of the left half of the inputs; the bits of a word belong to the
    values of the right half.
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
    """Return truth tables of n ≤ 4 inputs as integers."""
    size = 2 ** (n // 2)
    result: np.ndarray = (
        words.astype(np.uint64) << (size * np.arange(size)).astype(np.uint64)
    ).sum(axis=1, dtype=np.uint64)
    return result
