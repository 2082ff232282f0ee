"""An optimiser without any cloud: which candidate to try next, on how much of the data, and which one to recommend."""
