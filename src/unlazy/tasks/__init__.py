"""Tasks (distributions with known ground truth), their families and data."""

from unlazy.core.metrics import Outputs
from unlazy.tasks.base import Batch, Data, Family, Population, Sampler, Task
from unlazy.tasks.dictionary import (
    HiddenPatterns,
    ParityMixture,
    ProductPatterns,
    UnstructuredPatterns,
    interval,
    parity,
    threshold,
)
from unlazy.tasks.multi_index import XOR, MultiIndex, product, staircase

__all__ = [
    "XOR",
    "Batch",
    "Data",
    "Family",
    "HiddenPatterns",
    "MultiIndex",
    "Outputs",
    "ParityMixture",
    "Population",
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
