"""SEER: sequential elimination with elastic resources."""
