"""How fast a trial trains on a machine."""
