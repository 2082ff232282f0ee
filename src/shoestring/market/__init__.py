"""Prices, billing rules, machine catalogues and the simulated market."""
