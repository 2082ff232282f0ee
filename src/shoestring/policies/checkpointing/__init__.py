"""When to save a checkpoint, and which to keep."""
