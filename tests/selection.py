"""Parameters that `make test` runs; the others are left to `make test-slow`."""

import pytest


def slow(case):
    """Return a parameter, or a tuple of parameters, that only `make test-slow` runs."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)


def slow_but(quick, cases):
    """Return the parameters, of which all but the `quick` ones are slow."""
    return [case if case in quick else slow(case) for case in cases]


def slow_but_first(cases, count=1):
    """Return the parameters, of which all but the first few are slow."""
    return [case if place < count else slow(case) for place, case in enumerate(cases)]
