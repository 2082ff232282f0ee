"""Spot machines under a deadline, with an on-demand fallback."""
