"""Search spaces, parameters and constraints."""
