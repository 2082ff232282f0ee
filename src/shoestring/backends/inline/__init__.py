"""Trials in the process of the caller, for debugging."""
