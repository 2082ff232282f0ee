"""BoTorch's constrained expected improvement, on all of the data: one more peer, where it is installed."""

from __future__ import annotations

import math
import warnings

import numpy as np

from benchmarks.trimtuner_peers import START_RUNS, MeasuredBest
from benchmarks.trimtuner_play import Ask, Evaluation
from benchmarks.trimtuner_tables import Table


class BotorchSearch(MeasuredBest):
    """Gaussian processes of the objective and of the logarithm of the cost, with BoTorch's defaults."""

    def __init__(self, table: Table, seed: int) -> None:
        super().__init__(table)
        self.first = np.random.default_rng(seed).permutation(len(table.configs))[:START_RUNS].tolist()
        self.told: list[tuple[int, float, float]] = []
        """Candidate, objective with more being better, logarithm of what it cost in limits."""

    def ask(self) -> Ask | None:
        left = self.unseen()
        if not left:
            return None
        if len(self.seen) < START_RUNS or not self.told:
            return Ask(next((candidate for candidate in self.first if candidate in left), left[0]), self.full)
        return Ask(left[self._most_promising(left)], self.full)

    def tell(self, candidate: int, fraction: int, seen: Evaluation) -> None:
        """As for Optuna: no result counts as the worst; killed counts as twice the limit."""
        super().tell(candidate, fraction, seen)
        sign = 1 if self.table.direction == "maximize" else -1
        objective = sign * seen.objective
        if not math.isfinite(objective):
            objective = min((value for _, value, _ in self.told), default=0.0)
        self.told.append((candidate, objective, math.log(2.0 if seen.killed else seen.usd / self.table.limit_usd)))

    def _most_promising(self, left: list[int]) -> int:
        import torch
        from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import SumMarginalLogLikelihood

        points = torch.tensor(np.asarray(self.table.points), dtype=torch.double)
        rows, objective, spent = map(list, zip(*self.told, strict=True))
        targets = torch.tensor([objective, spent], dtype=torch.double)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models = [SingleTaskGP(points[rows], y[:, None], outcome_transform=Standardize(1)) for y in targets]
            model = ModelListGP(*models)
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            feasible = [value for _, value, over in self.told if over <= 0.0]
            worth = LogConstrainedExpectedImprovement(
                model, best_f=max(feasible, default=min(objective)), objective_index=0, constraints={1: (None, 0.0)}
            )
            with torch.no_grad():
                return int(worth(points[left][:, None, :]).argmax())
