"""The command line: one file a command."""

from unlazy.cli.main import main

__all__ = ["main"]
