"""Trials of all claims at smoke scale, which several contracts choose from."""

import functools

from unlazy.lab import registry


@functools.cache
def smoke_trials():
    """Return the trials with one seed by claim, arm and place."""
    return {
        f"{claim.id}: {name} {place}": trial
        for claim in registry.claims().values()
        for name, arm in claim.arms("smoke").items()
        for place, trial in enumerate(arm.trials([0]))
    }
