"""Engines with workers: other processes, on this machine or on others. They compute by the local
engine; here work is only handed round.

The coordinator cuts trials into the chunks that the local engine would run, hands them to workers,
and alone writes the store.
"""
