"""Learning curves: how a trial will end, from its first values."""
