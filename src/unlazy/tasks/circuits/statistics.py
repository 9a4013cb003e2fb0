"""Interface of the statistics used by layerwise learning: joint patterns and labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np


class Statistics:
    """P(pattern, label) at the gates of a level, given the learned layers below."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of inputs."""

    @abstractmethod
    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        """Return probabilities `(gates, pattern, label)` for the next level up.

        `learned` holds the gates of the levels below, that of the inputs first.
        """
