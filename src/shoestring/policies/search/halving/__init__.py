"""Successive halving, ASHA and Hyperband."""
