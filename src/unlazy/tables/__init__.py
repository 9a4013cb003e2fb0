"""Audits and rankings on tabular data."""
