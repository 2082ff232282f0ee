"""The pure core: events in, decisions out, state as the fold of the journal."""
