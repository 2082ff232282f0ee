"""Everything that decides: search, placement, checkpointing, housekeeping."""
