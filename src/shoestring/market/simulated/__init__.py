"""A simulated provider: prices, capacity and revocations."""
