"""Live page: watch, pause, rewind, change and share training runs."""
