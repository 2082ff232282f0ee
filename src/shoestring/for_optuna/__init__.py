"""The optimiser as a sampler of Optuna's, for studies that stay with Optuna.

from shoestring.for_optuna import TrimTunerSampler
study = optuna.create_study(sampler=TrimTunerSampler(seed=0, fractions=[1/16, 1/4, 1]))

Needs the extra `optuna`, and says so when it is imported.
"""

from shoestring.for_optuna.sampler import TrimTunerSampler

__all__ = ["TrimTunerSampler"]
