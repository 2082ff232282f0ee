"""A random study for each seed: prices from 1e-6 to 1e4 $/h, deadlines from seconds to months, 1 to 500 machines.

Recipe, placement and checkpointing are dealt out in turn, so that every combination is played equally often. The rest
is drawn. The amount of work is kept in proportion: if all is well, no study needs more than thousands of entries.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from shoestring import recipes
from shoestring.errors import SpecError
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import Listing, Offer
from shoestring.recipes.options.checkpointing import CHECKPOINTING
from shoestring.recipes.options.placement import PLACEMENTS
from shoestring.space.constraints import Constraint
from shoestring.space.space import Float, Space, machine_count, machine_type, on_spot, zone
from tests.fuzz.draft import NO_SPEC, Draft, World
from tests.studies import ELASTIC, MODEL_BASED, PREDICTING, START

FRACTIONAL = ("trimtuner", "trimtuner_gp_as_printed", "trimtuner_dt_as_printed")
OWN_WIDTHS = (*ELASTIC, "flex", "rubberband")
MOST_STEPS, MOST_STEPS_IF_LARGE = 400, 1500
MOST_RENEWALS, MOST_PREEMPTIONS = 1500, 300
DAY_S = 86400.0


class Mix(NamedTuple):
    recipe: str
    placement: str
    """Empty where the recipe has its own."""
    checkpointing: str

    @property
    def options(self) -> dict[str, Any]:
        placing = {"placement": self.placement} if self.placement else {}
        return {**placing, "checkpointing": self.checkpointing}


@cache
def mixes() -> tuple[Mix, ...]:
    """Every combination that recipes accept, in an order without meaning."""
    found = []
    for recipe in sorted(described.name for described in recipes.describe()):
        for placement, checkpointing in product((*PLACEMENTS, ""), CHECKPOINTING):
            mix = Mix(recipe, placement, checkpointing)
            if _is_accepted(mix) and (placement or not _is_accepted(Mix(recipe, "cheapest", checkpointing))):
                found.append(mix)
    random.Random("mixes").shuffle(found)
    return tuple(found)


def _is_accepted(mix: Mix) -> bool:
    def listing(*, spot: bool) -> Listing:
        offer = Offer(provider="aws", zone="z", machine="m", spot=spot)
        return Listing(offer=offer, vcpus=4, memory_gb=8, on_demand_usd_per_hour=0.1)

    spec = RunSpec(
        name="mix",
        metric="loss",
        space=Space(params={"x": Float(low=0.0, high=1.0)}),
        given=({"x": 0.5},) if mix.recipe == "given" else (),
        trials=4,
        max_steps=4,
        budget_usd=100.0,
        deadline_s=DAY_S,
        recipe=mix.recipe,
        options=mix.options,
        listings=(listing(spot=True), listing(spot=False)),
    )
    try:
        recipes.build(spec)
    except SpecError:
        return False
    return True


def draft(seed: int, attempt: int = 0) -> Draft:
    """The study of a seed. A refused one is drawn again: with each attempt there is more money and time."""
    rng = random.Random(f"study/{seed}/{attempt}")
    mix = mixes()[seed % len(mixes())]
    large = mix.recipe not in FRACTIONAL and rng.random() < 0.15
    machines = _machines(rng, mix, large)
    shortest = 1.0 if not attempt and rng.random() < 0.1 else 3.0 if attempt else 2.0
    deadline_s = 10 ** rng.uniform(shortest, 7.0)
    listings, traces = _market(rng, mix, deadline_s)
    pinned = mix.recipe not in OWN_WIDTHS and not large and rng.random() < 0.15
    trials, max_steps = _sizes(rng, mix, large)
    work_s, slice_s = _work(rng, deadline_s, machines, trials)
    cheapest, widest = min(x.on_demand_usd_per_hour for x in listings), max(x.slots for x in listings)
    hours = min(machines * deadline_s, trials * work_s) / 3600 + machines / 60
    # Work that is lost is done again, until the deadline.
    busy = machines * widest if mix.recipe in ELASTIC else min(machines, trials)
    most_per_hour = MOST_PREEMPTIONS / (busy * deadline_s / 3600)
    fields: dict[str, Any] = {
        "name": "fuzz",
        "kind": "bag" if mix.recipe == "given" else "study",
        "recipe": mix.recipe,
        "options": {**mix.options, **_options(rng, mix, deadline_s, machines)},
        "max_steps": max_steps,
        "budget": cheapest * hours * 10 ** rng.uniform(-0.7, 1.3) * 4**attempt,
        "deadline": deadline_s,
        "max_machines": machines,
        "max_failures": rng.randint(0, 2),
        "seed": rng.randrange(1000),
        **({} if slice_s is None else {"slice_s": slice_s}),
        **_sometimes(rng, 0.2, "wind_down_s", lambda: min(0.9 * deadline_s, 10 ** rng.uniform(0.0, 3.3))),
        **_sometimes(rng, 0.15, "slots", lambda: _rarely(rng, 2 * widest, rng.randint(1, widest))),
        **_sometimes(rng, 0.2, "time_limit", lambda: _rarely(rng, 60.0, work_s * rng.uniform(1.0, 20.0) + 300.0)),
        **_jobs(rng, mix, trials, pinned, listings, machines),
    }
    world = World(
        spec=NO_SPEC,
        seed=rng.randrange(1000),
        traces=traces,
        revoked_per_hour=min(rng.choice((0.0, 0.0, 0.02, 0.3, 3.0, _rarely(rng, 30.0, 1.0))), most_per_hour),
        shocks_per_hour=min(rng.choice((0.0, 0.0, 1.0)), most_per_hour),
        denial_share=_rarely(rng, 1.0, rng.choice((0.0, 0.0, 0.02, 0.3, _rarely(rng, 0.9, 0.1)))),
        provision_s=_mostly_below(rng, deadline_s / 20, rng.choice((0.0, 40.0, 40.0, 300.0, 1000.0))),
        base_step_s=work_s / max_steps,
        checkpoint_gb=rng.choice((None, 0.05, 0.05, 20.0)),
        trouble_share=rng.choice((0.0, 0.0, 0.0, 0.05)),
        fixed_s=rng.choice((0.0, 0.5, 2.0, 5.0) if mix.recipe in FRACTIONAL else (0.0, 0.0, 0.0, 1.0)) * work_s,
        spread=rng.choice((0.0, 1.0)),
        start_s=_mostly_below(rng, deadline_s / 20, rng.choice((0.05, 1.0, 20.0, 20.0, 120.0))),
    )
    return _limited(rng, Draft(fields, listings, world), mix)


def _machines(rng: random.Random, mix: Mix, large: bool) -> int:
    """Elastic searches start as many trials as they can pay, so they get fewer."""
    most = (20, 25, 30) if mix.recipe in ELASTIC else (20, 30, 50, 100, 500)
    return rng.choice(most) if large else rng.choice((1, 1, 2, 3, 4, 4, 6, 10, 25))


def _sizes(rng: random.Random, mix: Mix, large: bool) -> tuple[int, int]:
    """Trials and steps."""
    if large:
        trials = rng.randint(50, 150)
        return trials, rng.randint(1, max(1, MOST_STEPS_IF_LARGE // trials))
    counts = (1, 2, 4, 8, 16, 30)
    if mix.recipe in FRACTIONAL:  # a model for each trial; those as printed take seconds
        counts = (1, 3, 5, 8, 8, 14) if mix.recipe == "trimtuner" else (1, 3, 5, 5, 5, 6)
    trials = rng.choice(counts)
    return trials, rng.choice((1, 2, 5, 9, 27, max(1, MOST_STEPS // trials)))


def _work(rng: random.Random, deadline_s: float, machines: int, trials: int) -> tuple[float, float | None]:
    """Seconds of training of each trial, in proportion to what deadline and machines allow; the slice, if given."""
    share = 10 ** rng.uniform(-2.0, 0.3)
    work_s = max(0.05, min(rng.choice((0.01, 0.1, 0.1, 0.3, 1.5)) * deadline_s, deadline_s * machines * share / trials))
    slice_s = 10 ** rng.uniform(_rarely(rng, 1.0, 2.5), 4.5) if rng.random() < 0.5 else None
    held_s = min(machines * deadline_s, 2 * trials * work_s)
    if held_s / (slice_s or 900.0) > MOST_RENEWALS:
        slice_s = held_s / MOST_RENEWALS * rng.uniform(1.0, 3.0)
    return work_s, slice_s


def _market(rng: random.Random, mix: Mix, deadline_s: float) -> tuple[tuple[Listing, ...], tuple[Any, ...]]:
    level = 10 ** rng.uniform(-6.0, 3.5)
    kinds: tuple[bool, ...] = rng.choice(((True,), (False,), (True, False), (True, False), (True, False)))
    if mix.placement == "on_demand" and False not in kinds:
        kinds = _rarely(rng, kinds, (False,))
    zones = [f"z{number}" for number in range(rng.choice((1, 1, 2)))]
    listings, traces = [], []
    types = rng.randint(1, 3)
    if mix.recipe in FRACTIONAL and rng.random() < 0.6:
        types = 1  # what a run on a part of the data takes can be compared with the limit
    for number in range(types):
        price, slots, vcpus = level * 10 ** rng.uniform(0.0, 0.5), rng.choice((1, 1, 2, 4, 8)), 2.0 ** rng.randint(0, 4)
        for place, spot in product(zones, kinds):
            offer = Offer(provider="aws", zone=place, machine=f"m{number}", spot=spot)
            listings.append(
                Listing(
                    offer=offer,
                    vcpus=vcpus,
                    memory_gb=8,
                    slots=slots,
                    on_demand_usd_per_hour=price,
                    billing=rng.choice(("per_second", "per_hour", "aws_spot", "gcp_preemptible"))
                    if spot
                    else "per_second",
                    notice_s=rng.choice((0.0, 30.0, 120.0)),
                    max_life_s=rng.choice((None, None, None, DAY_S)) if spot else None,
                )
            )
            if spot:
                traces.append((offer, *_prices(rng, price, deadline_s)))
    return tuple(listings), tuple(traces)


def _prices(rng: random.Random, on_demand: float, deadline_s: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Below the on-demand price, above it at times, or always above."""
    low, high = _rarely(rng, (1.1, 3.0), rng.choice(((0.1, 0.6), (0.1, 0.9), (0.1, 3.0))))
    moves = sorted(rng.uniform(0.0, deadline_s) for _ in range(rng.randint(0, 20)))
    times = (START - 3600.0, *(START + move for move in moves), START + deadline_s)
    return times, tuple(on_demand * rng.uniform(low, high) for _ in times)


def _options(rng: random.Random, mix: Mix, deadline_s: float, machines: int) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if mix.recipe in MODEL_BASED:
        options["startup"] = rng.choice((1, 4))
    if mix.recipe in ELASTIC:
        options["t_min_s"] = deadline_s / 12  # a stage or two, and not hundreds of trials
    if mix.recipe == "scispot" and rng.random() < 0.5:
        options["gangs"] = ",".join(str(number) for number in (1, 2, 4) if number <= machines)
    if mix.recipe == "grid":
        options["points"] = rng.randint(1, 9)
    if mix.placement in PREDICTING:
        options["revocations"] = rng.choice(("assumed", "frequency"))
    if mix.placement in ("cheapest", "cheapest_step") and mix.recipe not in OWN_WIDTHS and rng.random() < 0.2:
        options["rotate"] = "20m"
    if mix.checkpointing == "periodic" and rng.random() < 0.3:
        options["every_s"] = 10 ** rng.uniform(0.0, 4.0)
    return options


def _jobs(
    rng: random.Random, mix: Mix, trials: int, pinned: bool, listings: tuple[Listing, ...], machines: int
) -> dict[str, Any]:
    if mix.recipe == "given":
        return {"given": [{"x": round(rng.random(), 3)} for _ in range(trials)]}
    space: dict[str, Any] = {"x": Float(low=0.0, high=1.0)}
    if pinned:
        offers = [listing.offer for listing in listings]
        named = {
            "type": machine_type(*sorted({offer.machine for offer in offers})),
            "count": machine_count(1, min(machines, 4)),
            "where": zone(*sorted({offer.zone for offer in offers})),
            "spot": on_spot(*sorted({offer.spot for offer in offers})),
        }
        space |= {name: named[name] for name in named if rng.random() < 0.6} or {"type": named["type"]}
    return {"space": space, "minimize": "loss", "trials": trials}


def _limited(rng: random.Random, drawn: Draft, mix: Mix) -> Draft:
    """With data fractions and constraints: some that every configuration satisfies, some that few do."""
    fractional = mix.recipe in FRACTIONAL
    if drawn.fields["kind"] == "bag" or rng.random() > (0.8 if fractional else 0.15):
        return drawn
    fields = dict(drawn.fields)
    if fractional:
        fields["fractions"] = rng.choice(((0.25, 1.0), (1 / 16, 0.25, 1.0), (0.1, 0.5, 1.0)))
    longest_s = drawn.world.longest_run_s(drawn.listings, fields["max_steps"])
    all_feasible = rng.random() < 0.6
    limit_s = longest_s * (rng.uniform(1.02, 1.3) if all_feasible else rng.uniform(0.05, 0.9))
    fields["constraints"] = [Constraint("seconds", limit_s)]
    if not all_feasible and rng.random() < 0.5:
        fields["constraints"].append(Constraint("loss", rng.uniform(0.1, 1.0)))
    return replace(drawn, fields=fields, all_feasible=all_feasible)


def _rarely(rng: random.Random, strange: Any, usual: Any) -> Any:
    return strange if rng.random() < 0.05 else usual


def _mostly_below(rng: random.Random, bound: float, value: float) -> float:
    """Start-up that takes longer than a study has is a study of nothing else: rare."""
    return _rarely(rng, value, min(bound, value))


def _sometimes(rng: random.Random, share: float, name: str, value: Any) -> dict[str, Any]:
    return {name: value()} if rng.random() < share else {}
