"""Predictions without decisions: learning curves, lifetimes, revocations, speed, cost."""
