"""Elastic searches: trials change their number of slots while they run."""
