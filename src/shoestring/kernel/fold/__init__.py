"""How events and decisions change the state of a run."""
