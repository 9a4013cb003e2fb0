"""Command line: one file per command."""

from unlazy.cli.main import main

__all__ = ["main"]
