"""RubberBand: the cheapest cluster for a fixed schedule."""
