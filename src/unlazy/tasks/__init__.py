"""Tasks: distributions with a known secret, and the families they are drawn from."""

from unlazy.tasks.base import Batch, Family, Sampler, Task
from unlazy.tasks.dictionary import HiddenPatterns, ParityMixture, ProductPatterns, UnstructuredPatterns, interval, parity, threshold

__all__ = [
    "Batch",
    "Family",
    "HiddenPatterns",
    "ParityMixture",
    "ProductPatterns",
    "Sampler",
    "Task",
    "UnstructuredPatterns",
    "interval",
    "parity",
    "threshold",
]
