"""What layerwise learning asks of data: how often each pattern of two nodes comes with each
label.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np


class Statistics:
    """P(pattern, label) at the gates of a level, as the layers below were learned."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of inputs."""

    @abstractmethod
    def table(self, learned: Sequence[np.ndarray]) -> np.ndarray:
        """`(gates, pattern, label)` for the next level up; `learned` holds the gates of the levels
        below, the inputs' level first.
        """
