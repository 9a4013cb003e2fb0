"""Dictionary data with hidden patterns."""

from unlazy.tasks.dictionary.balance import BalancedParity
from unlazy.tasks.dictionary.codes import HiddenRepresentations
from unlazy.tasks.dictionary.incoherent import GeneralParity
from unlazy.tasks.dictionary.patterns import (
    HiddenPatterns,
    ParityMixture,
    ProductPatterns,
    UnstructuredPatterns,
    interval,
    parity,
    threshold,
)

__all__ = [
    "BalancedParity",
    "GeneralParity",
    "HiddenPatterns",
    "HiddenRepresentations",
    "ParityMixture",
    "ProductPatterns",
    "UnstructuredPatterns",
    "interval",
    "parity",
    "threshold",
]
