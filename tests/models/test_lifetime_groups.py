"""Groups of machines have multiples of the pooled hazard, near 1 with little data; so have the user's own machines."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from shoestring.errors import DataError, SpecError
from shoestring.kernel.records import Account, Lease
from shoestring.kernel.types import LeaseId, Offer
from shoestring.models.lifetimes.families import Exponential, Weibull
from shoestring.models.lifetimes.fit import MODELS
from shoestring.models.lifetimes.groups import (
    WEEKEND,
    WORKDAY,
    LifetimeGroup,
    ScaledHazard,
    fit_groups,
    fitted_strength,
    multiplier_in_run,
    own_group,
    part_of_week,
    scaled,
    seen_in_run,
    shrunk,
    time_of_day,
)
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.models.lifetimes.records import LifetimeRecord, LifetimeRecords
from shoestring.models.lifetimes.saved import decoded, encoded, fit_saved, with_own
from tests.models.lifetime_machines import machines

H = HOUR_S
BASE = Weibull(scale_s=60 * H, shape=0.6, limit_s=24 * H)


def mixed(*kinds: tuple[str, str, float, int]) -> LifetimeRecords:
    """Machines of several groups: type, zone, multiple of the hazard, number."""
    parts = []
    for seed, (machine, zone, multiplier, count) in enumerate(kinds):
        some = machines(scaled(BASE, multiplier), count, given_back_after_s=20 * H, seed=seed)
        parts.append(replace(some, machine=(machine,) * count, zone=(zone,) * count))
    return LifetimeRecords(
        seconds=np.concatenate([part.seconds for part in parts]),
        revoked=np.concatenate([part.revoked for part in parts]),
        machine=tuple(name for part in parts for name in part.machine),
        zone=tuple(name for part in parts for name in part.zone),
        launched_at=np.concatenate([part.launched_at for part in parts]),
        limit_s=24 * H,
    )


def test_a_multiplier_is_the_mean_of_its_gamma_posterior() -> None:
    assert shrunk(0.0, 0.0, 5.0) == 1.0
    assert shrunk(20.0, 10.0, 10.0) == 1.5
    assert shrunk(2000.0, 1000.0, 10.0) == pytest.approx(2.0, abs=0.02)


def test_a_scaled_hazard_is_that_many_times_the_hazard_and_keeps_the_limit() -> None:
    model = scaled(BASE, 2.0)
    ages = np.array([0.5, 3.0, 20.0]) * H
    np.testing.assert_allclose(model.hazard(ages), 2 * BASE.hazard(ages))
    np.testing.assert_allclose(model.survival(ages), BASE.survival(ages) ** 2)
    assert model.limit_s == 24 * H
    assert scaled(BASE, 1.0) is BASE


def test_types_and_zones_are_separated() -> None:
    """Large machines die twice as fast, wherever they are; the zone full of them is not to blame."""
    seen = mixed(
        ("large", "crowd", 2.0, 600),
        ("small", "crowd", 1.0, 100),
        ("large", "rest", 2.0, 100),
        ("small", "rest", 1.0, 600),
    )
    by_trait = {kinds.trait: kinds for kinds in fit_groups(BASE, seen)}
    types, zones = by_trait["machine"], by_trait["zone"]
    assert types.multiplier("large") / types.multiplier("small") == pytest.approx(2.0, rel=0.25)
    assert zones.multiplier("crowd") / zones.multiplier("rest") == pytest.approx(1.0, abs=0.25)
    assert types.multiplier("never seen") == 1.0


def test_a_group_with_little_data_stays_near_the_others() -> None:
    seen = mixed(("usual", "z", 1.0, 500), ("other", "z", 1.3, 500), ("rare", "z", 8.0, 3))
    types = fit_groups(BASE, seen)[0]
    rare = types.kinds["rare"]
    assert abs(math.log(types.multiplier("rare"))) < abs(math.log(rare.deaths / rare.expected))


def test_groups_that_differ_by_chance_alone_are_shrunk_together() -> None:
    alike = [LifetimeGroup(deaths=deaths, expected=100.0) for deaths in (98.0, 103.0, 100.0, 99.0)]
    apart = [LifetimeGroup(deaths=deaths, expected=100.0) for deaths in (20.0, 210.0, 100.0, 70.0)]
    assert fitted_strength(alike) > 1000
    assert fitted_strength(apart) < 20
    assert fitted_strength(alike[:1]) > 1000


def test_the_time_of_launch_is_local_and_never_that_of_the_end() -> None:
    noon_utc = 12 * H
    assert time_of_day(noon_utc, "europe-west4-a") == "day"
    assert time_of_day(noon_utc, "us-west1-a") == "night"
    assert time_of_day(noon_utc, "nowhere") == "day"
    assert time_of_day(15 * H, "us-east-1a") == "day"
    assert time_of_day(math.nan, "us-west1-a") is None


# -- one's own ---------------------------------------------------------------------------------------------------------
def test_the_users_own_machines_move_the_multiplier_by_their_number() -> None:
    saved = fit_saved(machines(BASE, 500))
    unlucky = machines(ScaledHazard(base=BASE, multiplier=3.0, limit_s=24 * H), 200, seed=9)
    few, many = with_own(saved, unlucky.pick(np.arange(10))), with_own(saved, unlucky)
    assert 1.0 <= few.own_multiplier < many.own_multiplier < 4.0
    assert many.own_multiplier > 1.8
    assert many.model_for().mean_s() < saved.model_for().mean_s()
    assert with_own(many, unlucky) == many


def test_one_model_for_each_machine() -> None:
    with pytest.raises(SpecError, match="1 models for 3 machines"):
        own_group([BASE], machines(BASE, 3))


def test_a_run_learns_from_its_leases_and_accounts() -> None:
    model = Exponential(scale_s=10 * H)
    spot = Offer(provider="gcp", zone="z", machine="m", spot=True)
    sure = Offer(provider="gcp", zone="z", machine="m", spot=False)
    lease = Lease(
        id=LeaseId("l9"), offer=spot, slots=1, free_slots=1, requested_at=0.0, end_by=1e6, max_usd_per_hour=None,
        reserve_usd=0.0, granted_at=0.0,
    )  # fmt: skip
    account = Account(leases=4, seconds=40 * H, revoked=6, lifetimes_s=[5 * H, 5 * H, 10 * H, 20 * H])
    # expected: 4 of the ended, 2 of the one held for 20 h
    assert seen_in_run(model, spot, [lease], account, 20 * H) == LifetimeGroup(deaths=6.0, expected=6.0)
    assert seen_in_run(model, spot, [], account, 20 * H) == LifetimeGroup(deaths=6.0, expected=4.0)
    assert seen_in_run(model, sure, [lease], None, 20 * H) == LifetimeGroup(deaths=0.0, expected=0.0)


def test_a_run_learns_per_machine_type_and_zone_and_what_it_does_not_know_of_one_from_the_others() -> None:
    one, other, unseen = (Offer(provider="gcp", zone=zone, machine="m", spot=True) for zone in "abc")
    groups = {one: LifetimeGroup(deaths=30.0, expected=10.0), other: LifetimeGroup(deaths=0.0, expected=10.0)}
    run = 40 / 30
    assert multiplier_in_run(groups, unseen, strength=10.0) == pytest.approx(run)
    assert multiplier_in_run(groups, one, strength=10.0) == pytest.approx(run * 40 / (10 + run * 10))
    assert multiplier_in_run(groups, other, strength=10.0) == pytest.approx(run * 10 / (10 + run * 10))
    assert multiplier_in_run({}, one) == 1.0


def test_the_week_of_a_launch_is_that_of_its_zone() -> None:
    friday_evening = datetime(2019, 3, 30, 3, tzinfo=UTC).timestamp()
    assert part_of_week(friday_evening, "us-west1-a") == WORKDAY
    assert part_of_week(friday_evening, "europe-west4-a") == WEEKEND
    assert part_of_week(math.nan, "us-west1-a") is None


# -- saved -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_what_was_saved_is_read_back_the_same(name: str) -> None:
    saved = fit_saved(machines(BASE, 120), name)
    again = decoded(encoded(saved))
    assert again == saved
    assert float(again.model_for("m").cdf(5 * H)) == float(saved.model_for("m").cdf(5 * H))


@pytest.mark.parametrize("name", ["weibull_atom", "mixture_atom", "kaplan_meier"])
def test_machines_that_all_reach_the_limit_can_be_fitted(name: str) -> None:
    lifetimes = [LifetimeRecord(24.1 * H, True, machine="m", zone="z", limit_s=24 * H)] * 20
    saved = fit_saved(LifetimeRecords.of(lifetimes), name)
    assert saved.multiplier("m", "z") == pytest.approx(1.0)
    assert saved.model_for("m").mean_s() == pytest.approx(24 * H, rel=0.01)


def test_a_model_that_was_tampered_with_is_refused() -> None:
    plain = json.loads(encoded(fit_saved(machines(BASE, 100))))
    for change in (
        {"format": "something else"},
        {"pooled": {"family": "os.system"}},
        {"pooled": {"family": "weibull", "scale_s": -1.0, "shape": 1.0}},
        {"pooled": plain["pooled"] | {"limit_s": -1.0}},
        {"kinds": [{"trait": "zone", "strength": -5.0, "kinds": {}}]},
        {"own": {"deaths": 1.0, "expected": -10.0}},
        {"machines": "many"},
    ):
        with pytest.raises(DataError, match="is not a saved lifetime model"):
            decoded(json.dumps(plain | change).encode())
    with pytest.raises(DataError, match="is not a saved lifetime model"):
        decoded(b"\x80\x04not json")
