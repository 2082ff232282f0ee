"""Shared steps of all placements: rent, assign, pack, consolidate, release."""
