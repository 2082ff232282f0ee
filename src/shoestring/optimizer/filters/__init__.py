"""Filters: which candidates the acquisition function is computed for."""
