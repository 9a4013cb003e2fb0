"""Engines: they take trials and yield records."""

from unlazy.lab.engines.base import Engine, Plan, Silent, Watcher
from unlazy.lab.engines.local import LocalEngine

__all__ = ["Engine", "LocalEngine", "Plan", "Silent", "Watcher"]
