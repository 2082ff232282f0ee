"""Ensembles of extremely randomised trees."""
