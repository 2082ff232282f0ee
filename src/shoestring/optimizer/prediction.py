"""What a model says of many candidates, each for itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoestring.optimizer.candidates import Numbers


@dataclass(frozen=True)
class Prediction:
    """On the scale of the quantity, of each candidate at one fraction."""

    mean: Numbers
    deviation: Numbers
    noise: float
    """Standard deviation that one measurement adds."""

    @property
    def measured_deviation(self) -> Numbers:
        """Of what a run would measure."""
        return np.hypot(self.deviation, self.noise)
