"""Live page: watch, pause, rewind, change and record training runs."""
