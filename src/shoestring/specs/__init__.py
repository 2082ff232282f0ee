"""From the user's words to a RunSpec."""
