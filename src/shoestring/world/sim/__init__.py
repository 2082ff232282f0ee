"""The simulated world: virtual time, workloads, segments."""
