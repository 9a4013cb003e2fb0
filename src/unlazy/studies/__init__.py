"""Kinds of study: claims, contests, scaling studies, audits, rankings."""
