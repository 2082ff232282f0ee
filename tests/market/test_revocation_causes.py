"""When machines are revoked."""

import csv
import gzip
import math
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoestring.errors import DataError, SpecError
from shoestring.kernel.types import LeaseId, Offer
from shoestring.market.catalog import catalog
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.availability import Availability, read_availability
from shoestring.market.simulated.lifetimes import (
    ExponentialLifetime,
    GooglePreemptible,
    UniformLifetime,
    WeibullLifetime,
)
from shoestring.market.simulated.random_streams import generator, uniform
from shoestring.market.simulated.revocation import DrawnLifetimes, Earliest, Never, PriceCrossing, ZoneShocks

HOUR = 3600.0
LEASES = [LeaseId(f"l{n}") for n in range(2000)]
ON_DEMAND = Offer(provider="aws", zone="us-east-1a", machine="m6i.xlarge", spot=False)


@pytest.fixture
def crossing(spot_listing):
    trace = PriceTrace(spot_listing.offer, (0.0, 500.0, 900.0, 2000.0), (0.05, 0.11, 0.05, 0.30))
    return PriceCrossing(PriceBook({spot_listing.offer: trace}), [spot_listing])


def test_a_price_above_the_maximum_gives_notice_and_revokes_two_minutes_later(crossing, spot):
    assert crossing.revoked_at(LeaseId("l0"), spot, 0.0, 0.10) == 500.0 + 120.0
    assert crossing.revoked_at(LeaseId("l0"), spot, 950.0, 0.10) == 2000.0 + 120.0


def test_without_a_maximum_the_on_demand_price_is_the_limit(crossing, spot):
    assert crossing.revoked_at(LeaseId("l0"), spot, 0.0, None) == 2000.0 + 120.0  # 0.30 against 0.192
    assert crossing.revoked_at(LeaseId("l0"), spot, 0.0, 0.50) == math.inf


def test_an_on_demand_machine_is_never_revoked(crossing):
    causes = [
        crossing,
        DrawnLifetimes(ExponentialLifetime(1.0)),
        ZoneShocks(100.0, 1.0),
        Availability({ON_DEMAND: [(0, 1, 0)]}),
    ]
    assert all(cause.revoked_at(LeaseId("l0"), ON_DEMAND, 0.0, None) == math.inf for cause in causes)


@pytest.mark.parametrize(
    ("lifetime", "expected"),
    [
        (ExponentialLifetime(HOUR), HOUR),
        (UniformLifetime(100.0, 300.0), 200.0),
        (WeibullLifetime(HOUR, 2.0), HOUR * math.gamma(1.5)),
    ],
)
def test_lifetimes_have_the_mean_of_their_distribution(spot, lifetime, expected):
    ages = [DrawnLifetimes(lifetime, seed=3).revoked_at(lease, spot, 50.0, None) - 50.0 for lease in LEASES]
    assert mean(ages) == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize(
    "wrong", [lambda: ExponentialLifetime(0.0), lambda: WeibullLifetime(1.0, -1.0), lambda: UniformLifetime(5.0, 1.0)]
)
def test_impossible_lifetimes_are_refused(wrong):
    with pytest.raises(SpecError):
        wrong()


def survivors(ages, at_s):
    return sum(age >= at_s for age in ages) / len(ages)


def test_googles_machines_are_preempted_young_or_at_the_limit():
    ages = [GooglePreemptible().sample(generator("google", n)) for n in range(5000)]
    assert max(ages) == 24 * HOUR
    assert survivors(ages, HOUR) == pytest.approx(0.88, abs=0.02)
    assert survivors(ages, 24 * HOUR) == pytest.approx(0.59, abs=0.02)


def test_a_machine_type_or_zone_that_is_preempted_more_lives_shorter():
    calm, busy = (
        GooglePreemptible.of("n1-highcpu-4", "us-west1-a"),
        GooglePreemptible.of("n1-highcpu-32", "us-central1-c"),
    )
    reach = [
        survivors([lives.sample(generator("google", n)) for n in range(5000)], 24 * HOUR) for lives in (calm, busy)
    ]
    pooled = 0.59  # S^m, m the product of both multipliers
    assert reach[0] == pytest.approx(pooled ** (0.626 * 0.598), abs=0.02)
    assert reach[1] == pytest.approx(pooled ** (1.402 * 1.361), abs=0.02)
    assert GooglePreemptible.of("never-seen", "nowhere") == GooglePreemptible()


def test_googles_machines_are_like_those_of_2019(real_data):
    with gzip.open(real_data("google_preemptible_2019.csv.gz"), "rt") as file:
        seen = sorted((float(r["lifetime_s"]), r["preempted"] == "True") for r in csv.DictReader(file))
    alive = 1.0  # Kaplan-Meier: machines stopped by their users count for as long as they were watched
    real = {}
    for rank, (age, preempted) in enumerate(seen):
        for hour in (1, 3, 12, 23):
            if age > hour * HOUR:
                real.setdefault(hour, alive)
        if preempted:
            alive *= 1 - 1 / (len(seen) - rank)
    ages = [GooglePreemptible().sample(generator("google", n)) for n in range(5000)]
    for hour, share in real.items():
        assert survivors(ages, hour * HOUR) == pytest.approx(share, abs=0.05)


def test_a_shock_revokes_its_share_of_a_zone_at_once(spot):
    shocks = ZoneShocks(rate_per_hour=0.1, share=0.4, seed=5)
    gone = [shocks.revoked_at(lease, spot, 0.0, None) for lease in LEASES]
    first = min(gone)
    assert gone.count(first) / len(gone) == pytest.approx(0.4, abs=0.04)
    after = ZoneShocks(rate_per_hour=0.1, share=1.0, seed=5).revoked_at(LeaseId("new"), spot, first, None)
    assert after > first  # a machine granted at the shock is not hit by it


def test_shocks_come_at_their_rate_and_zones_do_not_share_them(spot):
    shocks = ZoneShocks(rate_per_hour=0.5, share=1.0, seed=5)
    at, gaps = 0.0, []
    for n in range(500):
        gone = shocks.revoked_at(LeaseId(f"l{n}"), spot, at, None)
        gaps.append(gone - at)
        at = gone
    assert mean(gaps) == pytest.approx(2 * HOUR, rel=0.15)
    elsewhere = Offer(provider="aws", zone="us-east-1b", machine=spot.machine, spot=True)
    assert shocks.revoked_at(LeaseId("l0"), elsewhere, 0.0, None) != shocks.revoked_at(LeaseId("l0"), spot, 0.0, None)


def test_shocks_are_the_same_in_any_order_of_queries(spot):
    one, two = ZoneShocks(0.2, 0.5, seed=9), ZoneShocks(0.2, 0.5, seed=9)
    forward = [one.revoked_at(lease, spot, n * 977.0, None) for n, lease in enumerate(LEASES[:200])]
    backward = [two.revoked_at(lease, spot, n * 977.0, None) for n, lease in reversed(list(enumerate(LEASES[:200])))]
    assert forward == backward[::-1]


def test_a_machine_is_revoked_when_availability_ends(spot):
    stock = Availability({spot: [(0.0, 100.0, 1), (100.0, 200.0, 0), (200.0, 400.0, 1)]})
    assert [stock.available(spot, at) for at in (-1, 0, 99, 100, 250, 400)] == [False, True, True, False, True, False]
    assert stock.revoked_at(LeaseId("l0"), spot, 10.0, None) == 100.0
    assert stock.revoked_at(LeaseId("l0"), spot, 150.0, None) == 150.0  # came up into nothing
    assert stock.revoked_at(LeaseId("l0"), spot, 250.0, None) == 400.0


def test_a_falling_count_revokes_some_and_not_others(spot):
    stock = Availability({spot: [(0.0, 100.0, 16), (100.0, 200.0, 4), (200.0, 300.0, 0)]})
    gone = [stock.revoked_at(lease, spot, 0.0, None) for lease in LEASES]
    assert set(gone) == {100.0, 200.0}
    assert gone.count(200.0) / len(gone) == pytest.approx(4 / 16, abs=0.04)


def test_an_offer_without_a_trace_is_not_limited(spot):
    stock = Availability({})
    assert stock.available(spot, 0.0)
    assert stock.revoked_at(LeaseId("l0"), spot, 0.0, None) == math.inf


def test_overlapping_runs_are_refused(spot):
    with pytest.raises(DataError, match="overlaps or is empty"):
        Availability({spot: [(0.0, 100.0, 1), (50.0, 200.0, 0)]})


def test_the_earliest_cause_counts(crossing, spot):
    both = Earliest(crossing, DrawnLifetimes(UniformLifetime(100.0, 100.0)))
    assert both.revoked_at(LeaseId("l0"), spot, 0.0, None) == 100.0
    assert Earliest(Never(), crossing).revoked_at(LeaseId("l0"), spot, 0.0, None) == 2120.0
    assert Earliest().revoked_at(LeaseId("l0"), spot, 0.0, None) == math.inf


@given(st.integers(0, 10), st.text(), st.floats(allow_nan=False))
def test_draws_by_label_are_in_range_and_repeatable(seed, label, number):
    assert 0 <= uniform(seed, label, number) < 1
    assert uniform(seed, label, number) == uniform(seed, label, number)
    assert generator(seed, label).random() == generator(seed, label).random()


def test_draws_are_the_same_in_every_process():
    assert uniform(1, "a") == 0.13467557189148538  # not salted, as hash() is


def test_real_availability_traces_are_read(real_data):
    runs = read_availability(
        real_data("spot_availability_rle.parquet"), real_data("spot_availability_index.csv"), start=1000.0, nodes=1
    )
    v100 = Offer(provider="aws", zone="us-east-1a", machine="p3.2xlarge", spot=True)
    available_s = sum((end - start) * count for start, end, count in runs[v100])
    assert available_s / (runs[v100][-1][1] - 1000.0) == pytest.approx(0.16668, abs=1e-4)
    start, end, _ = next(run for run in runs[v100] if run[2] > 0)
    assert Availability(runs).revoked_at(LeaseId("l0"), v100, start, None) == end
    with pytest.raises(DataError, match="no trace with kind='guess'"):
        read_availability(
            real_data("spot_availability_rle.parquet"),
            real_data("spot_availability_index.csv"),
            start=0.0,
            kind="guess",
        )


def test_bad_availability_files_are_refused(tmp_path):
    index, runs = tmp_path / "index.csv", tmp_path / "runs.parquet"
    with pytest.raises(DataError, match="cannot be read"):
        read_availability(runs, index, start=0.0)
    index.write_text("trace_id,kind\nx,availability\n")
    with pytest.raises(DataError, match="line 2: 'cloud' is missing"):
        read_availability(runs, index, start=0.0)
    index.write_text(
        "trace_id,kind,nodes,cloud,zone,instance_type,gap_s\nx,availability,1,aws,us-east-1a,p3.2xlarge,60\n"
    )
    runs.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match="not a run-length coded"):
        read_availability(runs, index, start=0.0)


def test_the_catalogue_has_the_notice_times_of_the_providers():
    assert {p: catalog.NOTICE_S[p] for p in ("aws", "gcp", "azure")} == {"aws": 120.0, "gcp": 30.0, "azure": 30.0}
