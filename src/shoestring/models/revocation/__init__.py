"""How likely a spot machine is revoked within a time."""
