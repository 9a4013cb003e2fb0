"""Trials, engines, stores and verdicts."""
