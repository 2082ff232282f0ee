"""Trials on nodes of a Slurm cluster."""
