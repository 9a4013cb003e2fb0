"""Studies: claims, benchmarks, scaling studies, audits, rankings."""
