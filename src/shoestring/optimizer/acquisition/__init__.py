"""Acquisition functions: what one more run is worth."""
