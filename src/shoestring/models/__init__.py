"""Predictions, no decisions: how a curve goes on, how fast a trial trains, whether a machine will be taken away."""
