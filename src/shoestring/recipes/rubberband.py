"""RubberBand: a fixed elimination schedule at the lowest cost that the deadline allows.

Options, beside those of every recipe: stages (or eta and grace_steps), step_s, scaling, spread, provision_s, start_s,
p_max, margin, sampler. Its default placement is `on_demand`: machines that may be preempted cannot be planned with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import msgspec

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.placement.cheapest import Cheapest
from shoestring.policies.placement.on_demand import OnDemand
from shoestring.policies.placement.renting.release_by_plan import AsPlanned
from shoestring.policies.search.halving.rungs import rung_steps
from shoestring.policies.search.rubberband.inputs import PlanInputs
from shoestring.policies.search.rubberband.plan import Round, RubberbandPlan, Schedule
from shoestring.policies.search.rubberband.policy import Rubberband
from shoestring.policies.search.rubberband.speed import Guess
from shoestring.policies.search.samplers.protocol import planned
from shoestring.recipes.classic import bundle, halving_options, require_metric
from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.sampler import chosen_sampler
from shoestring.values import Value

HOLD_S = 600.0
"""A machine that the next stage needs is kept idle so long for the last trial of this one."""
_STAGE = re.compile(r"\s*(\d+)\s*[x*×]\s*(\d+)\s*")


def rubberband(spec: RunSpec) -> Sequence[Policy]:
    """A fixed elimination schedule at the lowest cost that meets the deadline (stages or eta, grace_steps; step_s)."""
    search, placement, *rest = _policies(spec)
    if spec.listings:  # known once the market is
        search.outlook.opening_plan(spec, search.schedule)
    return (search, placement, AsPlanned(), *rest)


def plan_of(spec: RunSpec) -> RubberbandPlan:
    """The plan with which a run of this spec begins."""
    search, *_ = _policies(spec)
    return search.outlook.opening_plan(spec, search.schedule)


def _policies(spec: RunSpec) -> tuple[Rubberband, Policy, *tuple[Policy, ...]]:
    words: dict[str, Value] = {"placement": "on_demand", **spec.options}
    options = Options(msgspec.structs.replace(spec, options=words))
    search = Rubberband(
        _schedule(options, spec),
        _outlook(options, spec, spot=words["placement"] == "cheapest"),
        sampler=chosen_sampler(options),
    )
    _, placement, *rest = bundle(search, options, widths=True, placement="cheapest")
    return (search, replace(cast("Cheapest | OnDemand", placement), idle_s=HOLD_S), *rest)


def _outlook(options: Options, spec: RunSpec, *, spot: bool) -> PlanInputs:
    p_max = options.whole("p_max", max(16, spec.slots), least=1)
    if p_max < spec.slots:
        raise SpecError(
            f"options.p_max={p_max} is less than slots={spec.slots}, which one worker takes",
            hint=f"raise it to at least {spec.slots}",
        )
    return PlanInputs(
        guess=Guess(
            step_s=options.seconds("step_s", Guess.step_s),
            scaling=options.share("scaling", Guess.scaling),
            spread=options.share("spread", Guess.spread),
        ),
        provision_s=options.seconds("provision_s", PlanInputs.provision_s),
        start_s=options.seconds("start_s", PlanInputs.start_s),
        p_max=p_max,
        margin=options.share("margin", PlanInputs.margin, most=0.9),
        spot=spot,
    )


# -- the schedule ---------------------------------------------------------------------------------------------------
def _schedule(options: Options, spec: RunSpec) -> Schedule:
    """As listed by the user, or that of successive halving."""
    if "stages" not in spec.options:
        eta, grace_steps = halving_options(options, spec)
        ends = rung_steps(grace_steps, eta, spec.max_steps)
        counts = [planned(spec)]
        while len(counts) < len(ends):
            counts.append(max(1, counts[-1] // eta))
        lengths = [later - earlier for earlier, later in pairwise((0, *ends))]
        return _in_rounds(zip(counts, lengths, strict=True))
    require_metric(spec)
    text = options.text("stages", "")
    pairs = [_STAGE.fullmatch(part) for part in text.split(",")]
    stages = [(int(pair[1]), int(pair[2])) for pair in pairs if pair is not None]
    if len(stages) < len(pairs) or not all(trials and steps for trials, steps in stages):
        raise SpecError(
            f"options.stages={text!r} is not a schedule",
            hint="write trials x steps for each stage, e.g. '64x1, 16x4, 4x16': 16 of the 64 are trained 4 steps more",
        )
    _check(text, stages, spec)
    return _in_rounds(stages)


def _check(text: str, stages: list[tuple[int, int]], spec: RunSpec) -> None:
    for (before, _), (after, _) in pairwise(stages):
        if after > before:
            raise SpecError(
                f"options.stages={text!r} has {after} trials after {before}",
                hint="a stage has at most as many trials as the one before",
            )
    if stages[0][0] != planned(spec):
        raise SpecError(
            f"options.stages={text!r} begins with {stages[0][0]} trials, and trials={planned(spec)}",
            hint=f"set trials to {stages[0][0]}, or begin with {planned(spec)}",
        )
    last = sum(steps for _, steps in stages)
    if last != spec.max_steps:
        raise SpecError(
            f"options.stages={text!r} ends at step {last}, and max_steps={spec.max_steps}",
            hint=f"set max_steps to {last}: the steps of all stages add up to it",
        )


def _in_rounds(stages: Iterable[tuple[int, int]]) -> Schedule:
    rounds: list[Round] = []
    for trials, steps in stages:
        reached = rounds[-1].until_step if rounds else 0
        rounds.append(Round(trials=trials, steps=steps, until_step=reached + steps))
    return tuple(rounds)
