"""The built-in markets resemble the real ones, and are reproducible."""

import math
from itertools import pairwise
from statistics import median

import pytest

from shoestring.errors import SpecError
from shoestring.market.catalog import catalog
from shoestring.market.price_files import read_prices
from shoestring.market.simulated import synthetic_prices as synthetic

LISTINGS = [
    catalog.listing(machine, zone, spot=True)
    for machine in catalog.machines("aws", max_vcpus=16, gpus=0)[:20]
    for zone in ("us-east-1a", "us-east-1b", "us-east-1c")
]
ON_DEMAND = {item.offer.machine: item.on_demand_usd_per_hour for item in LISTINGS}


def figures(book, on_demand):
    """The statistics the generators are calibrated on."""
    gaps, levels, moves, spells, records_above, records = [], [], [], [], 0, 0
    lowest, highest = math.inf, 0.0
    for offer in book:
        trace = book.trace(offer)
        shares = [usd / on_demand[offer.machine] for usd in trace.usd_per_hour]
        gaps += [b - a for a, b in pairwise(trace.times)]
        levels.append(median(shares))
        moves += [abs(math.log(b / a)) for a, b in pairwise(shares) if a != b]
        records_above += sum(share > 1 for share in shares)
        records += len(shares)
        lowest, highest = min(lowest, *shares), max(highest, *shares)
        began = None
        for at, share in zip(trace.times, shares, strict=True):
            if share > 1 and began is None:
                began = at
            elif share <= 1 and began is not None:
                spells.append(at - began)
                began = None
    return {
        "gap_s": median(gaps),
        "level": median(levels),
        "move": median(moves),
        "spell_s": median(spells) if spells else 0.0,
        "above": records_above / records,
        "lowest": lowest,
        "highest": highest,
    }


@pytest.fixture(scope="module")
def auction():
    return figures(synthetic.auction(LISTINGS, seed=1, start=0.0, days=12), ON_DEMAND)


@pytest.fixture(scope="module")
def modern():
    return figures(synthetic.modern(LISTINGS, seed=1, start=0.0, days=31), ON_DEMAND)


def test_the_auction_market_has_its_documented_statistics(auction):
    assert auction["gap_s"] == pytest.approx(193, rel=0.1)
    assert 0.10 < auction["level"] < 0.20
    assert 0.003 < auction["move"] < 0.012
    assert 0.002 < auction["above"] < 0.012
    assert 8 * 60 < auction["spell_s"] < 30 * 60
    assert 5 < auction["highest"] <= 10.001


def test_the_modern_market_has_its_documented_statistics(modern):
    assert modern["gap_s"] == pytest.approx(24300, rel=0.1)
    assert modern["level"] == pytest.approx(0.377, rel=0.1)
    assert modern["move"] == pytest.approx(0.003, rel=0.3)
    assert modern["above"] == 0
    assert modern["lowest"] >= 0.0999
    assert modern["highest"] <= 0.6401


def test_the_auction_market_is_like_2016(real_data, auction):
    book = read_prices(real_data("spot_aws_us-east-1_2016-02_04.parquet"))
    on_demand = {m.name: m.on_demand_usd_per_hour for m in catalog.machines("aws")}
    real = figures(book, on_demand)
    assert auction["gap_s"] == pytest.approx(real["gap_s"], rel=0.15)
    assert auction["level"] == pytest.approx(real["level"], rel=0.3)
    assert auction["move"] == pytest.approx(real["move"], rel=0.5)
    assert 0.4 < auction["above"] / real["above"] < 2.5
    assert 0.4 < auction["spell_s"] / real["spell_s"] < 2.5


def test_the_modern_market_is_like_2025(real_data, modern):
    book = read_prices(real_data("spot_aws_us-east-1_2025-03.parquet"))
    real = figures(book, {m.name: m.on_demand_usd_per_hour for m in catalog.machines("aws")})
    assert modern["gap_s"] == pytest.approx(real["gap_s"], rel=0.1)
    assert modern["level"] == pytest.approx(real["level"], rel=0.1)
    assert modern["move"] == pytest.approx(real["move"], rel=0.3)
    assert modern["lowest"] >= real["lowest"] * 0.98
    assert modern["highest"] <= real["highest"] * 1.02


@pytest.mark.parametrize("market", [synthetic.auction, synthetic.modern])
def test_a_seed_is_a_market(market):
    offer = LISTINGS[0].offer
    one, same, other = (market(LISTINGS[:3], seed=seed, days=2).trace(offer) for seed in (1, 1, 2))
    assert (one.times, one.usd_per_hour) == (same.times, same.usd_per_hour)
    assert one.usd_per_hour != other.usd_per_hour


@pytest.mark.parametrize("market", [synthetic.auction, synthetic.modern])
def test_a_series_does_not_depend_on_its_neighbours_nor_its_past_on_its_length(market):
    offer = LISTINGS[0].offer
    alone, among = market(LISTINGS[:1], seed=3, days=2), market(LISTINGS[:5], seed=3, days=4)
    assert alone.history(offer, alone.span()[1]).times == among.history(offer, alone.span()[1]).times


def test_a_pinned_series_stays_what_it_was():
    # Guards journals and published figures against a silent change of the generator.
    trace = synthetic.modern(LISTINGS[:1], seed=7, start=0.0, days=1).trace(LISTINGS[0].offer)
    assert (LISTINGS[0].offer.machine, trace.usd_per_hour[:2]) == ("t3.nano", (0.001371, 0.001367))


def test_zero_days_are_refused():
    with pytest.raises(SpecError, match="days=0"):
        synthetic.auction(LISTINGS, days=0)
