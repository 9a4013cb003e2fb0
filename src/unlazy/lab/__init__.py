"""The laboratory: trials, engine, store, judging."""
