"""Tasks, samples, fits and probes as one compiled program each.

Called eagerly, they would compile each of their operations by itself, which takes seconds.
"""

import equinox as eqx


@eqx.filter_jit
def drawn(family, key):
    """Return a task of a family."""
    return family.task(key=key)


@eqx.filter_jit
def sampled(task, n, key):
    """Return `n` examples in the input space."""
    return task.sample(n, key=key)


@eqx.filter_jit
def fitted(learner, sampler, n, key):
    """Return the trace of a learner."""
    return learner.fit(sampler, n, key=key)


@eqx.filter_jit
def looked(probe, task, trace, *, found, key):
    """Return the measurements of a probe."""
    return probe(task, trace, found=found, key=key)
