"""The contestants, and how each is set up for a cell so that it has enough resources.

Searches without elasticity get the cluster that the budget pays for from start to end, more trials than they can start,
and a model with enough observations: a baseline short of resources flatters its competitors. All others get the budget
and the deadline and rent what they choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.curve_task import MEDIAN_STEP_S
from benchmarks.seer_arena import Setting
from benchmarks.seer_market import MACHINE_SLOTS, Cell
from shoestring.kernel.types import Value
from shoestring.policies.search.halving.hyperband import apportion, bracket_size, bracket_steps

DEFAULT = "flex"
"""The recipe whose claims the rows are about."""

MAX_STEPS = 50
"""Of the longest tables; a shorter one cuts it down."""
GRACE_STEPS, ETA = 1, 3
"""Of ASHA, alone and with a model: the best for ASHA + TPE on the tuning tasks. Of the nine pairs that
`--tune` tries, this one had a mean regret of 0.249 over 10 seeds; any eta with 1 had at most 0.252, the best with 2
steps 0.272, the worst of all 0.349."""
MODEL_STARTUP = 6
"""Trials that a model needs. With the usual ten, the smallest cell would end before the model is used."""
OVERFED = 2.5
"""Hyperband's brackets are planned for so many times the steps that can be afforded: while one waits for a straggler,
the next must have work. The best of 1.1, 1.4, 1.8 and 2.5 on the tuning tasks, with and without a model."""


@dataclass(frozen=True)
class Contestant:
    name: str
    setting: Callable[[Cell], Setting]
    fixed: bool = False
    """On a cluster of one size, from start to end."""
    from_model: bool = False
    """Samples from a model: must have used it."""
    least_busy: float = 0.75
    """Of the slot-time that is paid, the share in which trials must have trained, in every cell. The rest is start-up,
    saving, and steps cut short. Lower where every trial that is widened is saved, started and restored on the way, and
    a first round by the clock lasts little longer than the one step that a trial then has to show for it."""

    @property
    def least_spent(self) -> float:
        """Of the budget. An elastic plan reserves money for the wind-down of each machine, which may take less, and for
        trials that reach their last step sooner."""
        return 0.85 if self.fixed else 0.80


def reachable_steps(cell: Cell) -> int:
    """Steps of a median trial on one slot before the deadline."""
    return min(MAX_STEPS, int(cell.trained_minutes * 60 / MEDIAN_STEP_S))


def affordable_steps(cell: Cell) -> float:
    """Steps of median trials on all slots of the fixed cluster together."""
    return cell.fixed_machines * MACHINE_SLOTS * cell.trained_minutes * 60 / MEDIAN_STEP_S


def _asha(cell: Cell) -> Setting:
    return Setting("asha", {"grace_steps": GRACE_STEPS, "eta": ETA}, machines=cell.fixed_machines)


def asha_tpe(cell: Cell, grace_steps: int = GRACE_STEPS, eta: int = ETA) -> Setting:
    options: dict[str, Value] = {"grace_steps": grace_steps, "eta": eta, "startup": MODEL_STARTUP}
    return Setting("asha_tpe", options, machines=cell.fixed_machines)


def _random(cell: Cell) -> Setting:
    return Setting("random", machines=cell.fixed_machines, max_steps=reachable_steps(cell))


def _tpe(cell: Cell) -> Setting:
    """Trained so briefly that most trials are sampled after others have ended: before that there are no
    observations."""
    trials = max(30, 4 * cell.fixed_machines * MACHINE_SLOTS)
    steps = max(1, min(reachable_steps(cell), int(affordable_steps(cell) / trials)))
    return Setting("tpe", {"startup": MODEL_STARTUP}, machines=cell.fixed_machines, max_steps=steps)


def _hyperband(recipe: str) -> Callable[[Cell], Setting]:
    def setting(cell: Cell) -> Setting:
        """Brackets that end where the deadline lets a trial end, and more trials than can be afforded."""
        steps = reachable_steps(cell)
        brackets = bracket_steps(steps, ETA, 1)
        sizes = [bracket_size(len(brackets), len(rungs), ETA) for rungs in brackets]
        trials, afford = len(brackets), OVERFED * affordable_steps(cell)
        while _cost(brackets, apportion(trials, sizes)) < afford:
            trials += 1
        options: dict[str, Value] = {"eta": ETA}
        if recipe == "bohb":
            options["startup"] = min(MODEL_STARTUP, trials // 3)
        return Setting(recipe, options, machines=cell.fixed_machines, trials=trials, max_steps=steps)

    return setting


def _cost(brackets: list[tuple[int, ...]], trials: list[int]) -> int:
    """Steps that successive halving takes in all brackets together."""
    total = 0
    for rungs, arrived in zip(brackets, trials, strict=True):
        reached = 0
        for step in rungs:
            total += arrived * (step - reached)
            reached, arrived = step, max(1, arrived // ETA)
    return total


def _elastic(recipe: str) -> Callable[[Cell], Setting]:
    return lambda _: Setting(recipe)


_ALL = (
    Contestant("random", _random, fixed=True),
    Contestant("tpe", _tpe, fixed=True, from_model=True),
    Contestant("asha", _asha, fixed=True),
    Contestant("asha_tpe", asha_tpe, fixed=True, from_model=True),
    Contestant("hyperband", _hyperband("hyperband"), fixed=True),
    Contestant("bohb", _hyperband("bohb"), fixed=True, from_model=True),
    Contestant("hypersched", _elastic("hypersched"), least_busy=0.70),
    Contestant("elastic_hyperband", _elastic("elastic_hyperband")),
    Contestant("elastic_grid", _elastic("elastic_grid")),
    Contestant("elastic_successive_halving", _elastic("elastic_successive_halving"), least_busy=0.65),
    Contestant("seer_as_printed", _elastic("seer_as_printed"), least_busy=0.60),
    Contestant("seer", _elastic("seer"), least_busy=0.70),
    Contestant(DEFAULT, _elastic(DEFAULT)),
)
CONTESTANTS: Mapping[str, Contestant] = {contestant.name: contestant for contestant in _ALL}
