"""Experiments: what is measured by a seed and is not a learner on a task. Papers declare which of them are run."""
