"""Random studies over hyper-parameters and machines: every trial runs on what its configuration names, and every
guarantee holds, whatever the search, the placement and the market do."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from shoestring import recipes
from shoestring.errors import SpecError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.history import Entry
from shoestring.kernel.types import Listing, Offer
from shoestring.policies.placement.named_machines import count_of, named_listings, whole_slots
from shoestring.space.constraints import Constraint
from shoestring.space.space import Float, Parameter, Space, machine_count, machine_type, on_spot, zone
from tests.studies import CLASSIC, MODEL_BASED, START, Case, play, random_case

BATCHES = 2
STUDIES_PER_BATCH = 100
FOR_JOINT_SPACES = (
    *CLASSIC,
    *MODEL_BASED,
    *("theta", "theta_adaptive", "spottune", "spottune_as_printed", "scispot", "trimtuner"),
)


def joint_case(rng: random.Random) -> Case:
    """A random case on a market that sells every type in every zone, spot and on-demand."""
    case = random_case(rng)
    worker = rng.choice((1, 1, 1, 2))
    listings, traces = [], []
    types = [f"m{number}" for number in range(rng.randint(1, 3))]
    zones = [f"z{number}" for number in range(rng.randint(1, 2))]
    for machine in types:
        price, slots = 10 ** rng.uniform(-2, 0.5), rng.choice((1, 1, 2, 5))
        for place in zones:
            for spot in (True, False):
                offer = Offer(provider="aws", zone=place, machine=machine, spot=spot)
                billing = rng.choice(("per_second", "per_hour", "aws_spot")) if spot else "per_second"
                listings.append(
                    Listing(
                        offer=offer,
                        vcpus=2.0,
                        memory_gb=8,
                        slots=worker * slots,
                        on_demand_usd_per_hour=price,
                        billing=billing,
                        notice_s=rng.choice((0.0, 30.0, 120.0)),
                    )
                )
                if spot:
                    times = (START - 3600.0, *(START + rng.uniform(0, 1e5) for _ in range(rng.randint(0, 9))))
                    traces.append(
                        (
                            offer,
                            tuple(sorted(times)),
                            tuple(price * rng.uniform(0.1, rng.choice((0.8, 2))) for _ in times),
                        )
                    )
    max_machines = rng.randint(1, 5)
    named: dict[str, Parameter] = {
        "type": machine_type(*types),
        "count": machine_count(1, max(1, max_machines)),
        "where": zone(*zones),
        "spot": on_spot(True, False),
    }
    recipe = rng.choice(FOR_JOINT_SPACES)
    some = [name for name in named if rng.random() < 0.6] or ["type"]
    spec = with_fields(
        case.spec,
        space=Space(params={"x": Float(low=0.0, high=1.0), **{name: named[name] for name in some}}),
        recipe=recipe,
        fractions=(0.25, 1.0) if recipe == "trimtuner" else (),
        constraints=(Constraint("cost", 10 ** rng.uniform(-2, 1)),) if recipe == "trimtuner" else (),
        slots=worker,
        listings=tuple(listings),
        max_machines=max_machines,
        budget_usd=case.spec.budget_usd * 5,
    )
    return replace(case, spec=_possible(spec), traces=tuple(traces))


def _possible(spec):
    """Without the options that make no sense for what the space names, or for the recipe."""
    for left_out in ((), ("rotate",), ("rotate", "placement", "revocations"), tuple(spec.options)):
        options = {name: value for name, value in spec.options.items() if name not in left_out}
        fewer = with_fields(spec, options=options)
        try:
            recipes.build(fewer)
        except SpecError:
            continue
        return fewer
    return with_fields(spec, recipe="asha", options={}, fractions=(), constraints=())


def check_machines(case: Case, entries: list[Entry], seen: Counter[str]) -> None:
    spec = case.spec
    configs, offers = {}, {}
    held: dict[str, set[str]] = {}
    listings = {listing.offer: listing for listing in spec.listings}
    for entry in entries:
        if isinstance(entry.event, e.LeaseDenied):
            seen["denied"] += 1
        if isinstance(entry.event, e.LeaseEnded):
            seen["revoked"] += entry.event.cause == "revoked"
        for decision in entry.decisions:
            match decision:
                case d.AddJob(job=job, config=config):
                    configs[job] = config
                case d.RequestLease(lease=lease, offer=offer):
                    offers[lease] = offer
                case d.RunJob(job=job, offer=offer) if offer is not None:
                    held.setdefault(job, set()).add(str(offer))
                case d.StartSegment(job=job, leases=leases):
                    config, on = configs[job], {offers[lease] for lease in leases}
                    assert len(on) == 1, "one offer for all machines of a trial"
                    (offer,) = on
                    assert listings[offer] in named_listings(spec.space, spec.listings, config, spec.slots)
                    assert len(leases) == count_of(spec.space, config)
                    assert decision.slots_on == (whole_slots(listings[offer], spec.slots),) * len(leases)
                    seen["gang"] += len(leases) > 1
                    seen["resumed"] += decision.resume_from is not None
    seen["pinned anew"] += sum(len(offers) > 1 for offers in held.values())


@pytest.mark.parametrize("batch", range(BATCHES))
def test_trials_run_on_what_their_configurations_name(batch: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(STUDIES_PER_BATCH):
        case = joint_case(random.Random(f"joint/{batch}/{number}"))
        state, journal = play(case)
        entries = list(journal.read())
        assert state.concluded
        assert not state.leases
        assert not state.segments
        billed = sum(entry.event.charged_usd for entry in entries if isinstance(entry.event, e.LeaseEnded))
        assert billed <= case.spec.budget_usd
        assert max(entry.event.at for entry in entries) <= START + case.spec.deadline_s
        check_machines(case, entries, seen)
        seen["finished"] += state.by_status["finished"]
        seen["studies done"] += state.end_reason == "completed"
        seen["out of money"] += state.end_reason == "out_of_budget"
        if number % 10 == 0:
            assert play(case)[1].dump() == journal.dump()
    expected = ("gang", "revoked", "denied", "resumed", "pinned anew", "finished", "studies done", "out of money")
    assert all(seen[what] >= 5 for what in expected), seen
