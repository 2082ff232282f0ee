"""The optimizer as an Optuna sampler, for studies that stay with Optuna.

from shoestring.for_optuna import TrimTunerSampler
study = optuna.create_study(sampler=TrimTunerSampler(seed=0, fractions=[1/16, 1/4, 1]))

Needs the extra `optuna`; without it the import fails with a hint.
"""

from shoestring.for_optuna.sampler import TrimTunerSampler

__all__ = ["TrimTunerSampler"]
