"""The live world: a backend, timers, background tasks, user requests."""
