"""Tasks: distributions with a known secret, and the families they are drawn from."""

from unlazy.tasks.base import Batch, Family, Sampler, Task
from unlazy.tasks.dictionary import HiddenPatterns, ParityMixture, ProductPatterns, UnstructuredPatterns, interval, parity, threshold
from unlazy.tasks.multi_index import XOR, MultiIndex, product, staircase

__all__ = [
    "XOR",
    "Batch",
    "Family",
    "HiddenPatterns",
    "MultiIndex",
    "ParityMixture",
    "ProductPatterns",
    "Sampler",
    "Task",
    "UnstructuredPatterns",
    "interval",
    "parity",
    "product",
    "staircase",
    "threshold",
]
