"""Benchmarks: this package against its peers, as ratios measured in one run.

`python -m benchmarks.run` runs them all.
"""
