"""Which candidates the acquisition function is computed for."""
