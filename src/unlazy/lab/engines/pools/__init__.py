"""Engines with worker processes, on this machine or on others.

The coordinator divides trials into the chunks that the local engine would run, sends them to
workers, and writes the store. Workers run chunks by the local engine.
"""
