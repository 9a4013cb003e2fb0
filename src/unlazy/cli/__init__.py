"""The command line."""

from unlazy.cli.main import main

__all__ = ["main"]
