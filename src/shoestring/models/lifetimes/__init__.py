"""Machine lifetimes, and what follows for checkpoints, reuse and cost."""
