"""Constrained multi-fidelity Bayesian optimisation, ask and tell, without any cloud."""
