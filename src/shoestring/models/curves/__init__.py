"""Learning curves: the final value of a trial, predicted from its first ones."""
