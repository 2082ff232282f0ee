"""An optimiser that others ask beside, each in its own process: somebody else keeps the list of what is under way."""

from __future__ import annotations

from collections.abc import Iterable

from shoestring.optimizer.observations import Suggestion
from shoestring.optimizer.optimizer import Optimizer


class SharedOptimizer(Optimizer):
    def ask_beside(self, under_way: Iterable[Suggestion]) -> Suggestion:
        """The next run, while these are under way and nothing else is: neither what was asked here before and given
        up, nor what was asked here and then run otherwise."""
        self._pending.clear()
        for suggestion in under_way:
            self.expect(suggestion)
        return self.ask()
