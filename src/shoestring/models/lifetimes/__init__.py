"""How long machines live, and what follows for checkpoints, reuse and cost."""
