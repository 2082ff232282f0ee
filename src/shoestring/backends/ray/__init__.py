"""Trials on nodes of a Ray cluster."""
