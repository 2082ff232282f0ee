"""Journals: the durable record of a run."""
