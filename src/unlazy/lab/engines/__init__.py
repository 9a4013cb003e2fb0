"""Engines, which run trials and yield records."""

from unlazy.lab.engines.base import Callback, Engine, NullCallback, Plan
from unlazy.lab.engines.local import LocalEngine

__all__ = ["Callback", "Engine", "LocalEngine", "NullCallback", "Plan"]
