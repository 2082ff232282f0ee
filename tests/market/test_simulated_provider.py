"""A simulated cloud: grants, denials, revocations, bills."""

import json

import pytest

from shoestring.errors import DataError, SpecError
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import LeaseId, Offer
from shoestring.market.catalog import catalog
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.availability import Availability
from shoestring.market.simulated.lifetimes import ExponentialLifetime, UniformLifetime
from shoestring.market.simulated.provider import Grant, SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes, Never, PriceCrossing
from shoestring.specs.market import make_market

HOUR = 3600.0


def request(offer, lease="l0", maximum=None, end_by=1e12):
    return RequestLease(lease=LeaseId(lease), offer=offer, max_usd_per_hour=maximum, end_by=end_by, why="a test")


def provider(listing, prices=((0.0,), (0.05,)), revoker=None, **more):
    book = PriceBook({listing.offer: PriceTrace(listing.offer, *prices)}, [listing])
    return SimulatedProvider([listing], book, revoker or Never(), **more)


def test_a_machine_starts_after_the_provisioning_time(spot_listing):
    exact = provider(spot_listing, provision_s=40.0, provision_spread=0.0)
    assert exact.grant(request(spot_listing.offer), 100.0) == Grant(at=140.0)
    varied = provider(spot_listing, provision_s=40.0, provision_spread=0.25)
    times = [varied.grant(request(spot_listing.offer, f"l{n}"), 0.0).at for n in range(300)]
    assert min(times) >= 30.0
    assert max(times) <= 50.0
    assert len(set(times)) == 300


def test_a_machine_that_would_come_after_its_prepaid_end_is_too_late(spot_listing):
    assert provider(spot_listing).grant(request(spot_listing.offer, end_by=20.0), 0.0) == "too_late"


def test_a_price_above_the_maximum_is_a_denial(spot_listing):
    cloud = provider(spot_listing, ((0.0, 500.0), (0.05, 0.30)))
    assert isinstance(cloud.grant(request(spot_listing.offer, maximum=0.05), 0.0), Grant)
    assert cloud.grant(request(spot_listing.offer, maximum=0.04), 0.0) == "price"
    assert cloud.grant(request(spot_listing.offer), 500.0) == "price"  # above on-demand


def test_no_stock_is_a_denial(spot_listing):
    stock = Availability({spot_listing.offer: [(0.0, 100.0, 1)]})
    cloud = provider(spot_listing, stock=stock)
    assert isinstance(cloud.grant(request(spot_listing.offer), 50.0), Grant)
    assert cloud.grant(request(spot_listing.offer), 100.0) == "no_capacity"


def test_chance_denials_come_at_their_rate_and_never_hit_on_demand():
    listings = [catalog.listing(catalog.machine("aws", "m6i.large"), "us-east-1a", spot=spot) for spot in (True, False)]
    cloud = SimulatedProvider.modern(listings, denial_share=0.3)
    spot, on_demand = (
        [cloud.grant(request(item.offer, f"l{n}"), cloud.start) for n in range(2000)] for item in listings
    )
    assert spot.count("no_capacity") / 2000 == pytest.approx(0.3, abs=0.04)
    assert all(isinstance(answer, Grant) for answer in on_demand)


def test_a_notice_comes_the_listings_time_before_the_end(spot_listing):
    cloud = provider(spot_listing, revoker=DrawnLifetimes(UniformLifetime(1000.0, 1000.0)))
    assert cloud.revocation(LeaseId("l0"), spot_listing.offer, 50.0, None) == (930.0, 1050.0)
    sudden = provider(spot_listing, revoker=DrawnLifetimes(UniformLifetime(30.0, 30.0)))
    assert sudden.revocation(LeaseId("l0"), spot_listing.offer, 50.0, None) == (50.0, 80.0)


def test_a_legacy_preemptible_machine_ends_after_24_hours_and_is_billed_for_them():
    listing = catalog.listing(
        catalog.machine("gcp", "n1-highcpu-16"), "us-central1-c", spot=True, legacy_preemptible=True
    )
    cloud = provider(listing, ((0.0,), (0.15,)), revoker=DrawnLifetimes(ExponentialLifetime(1000 * 24 * HOUR)))
    notice_at, gone_at = cloud.revocation(LeaseId("l0"), listing.offer, 100.0, None)
    assert (notice_at, gone_at) == (100.0 + 24 * HOUR - 30.0, 100.0 + 24 * HOUR)
    assert cloud.bill(listing.offer, None, 100.0, gone_at, "revoked").charged_usd == pytest.approx(24 * 0.15)


def test_a_price_crossing_is_not_revealed_before_it_happens(spot_listing):
    prices = ((0.0, 5000.0), (0.05, 1.0))
    book = PriceBook({spot_listing.offer: PriceTrace(spot_listing.offer, *prices)})
    cloud = SimulatedProvider([spot_listing], book, PriceCrossing(book, [spot_listing]))
    assert cloud.revocation(LeaseId("l0"), spot_listing.offer, 0.0, None) == (5000.0, 5120.0)
    # 5000 s at 0.05 and the two minutes of notice at the ceiling, the on-demand price of 0.192
    bill = cloud.bill(spot_listing.offer, None, 0.0, 5120.0, "revoked")
    assert bill.charged_usd == pytest.approx((5000 * 0.05 + 120 * 0.192) / HOUR)


def test_an_interruption_in_the_first_hour_is_refunded(spot_listing):
    bill = provider(spot_listing).bill(spot_listing.offer, None, 0.0, 1800.0, "revoked")
    assert (bill.charged_usd, bill.refunded_usd) == (0.0, pytest.approx(0.025))


def test_every_response_follows_from_the_seed_and_the_lease():
    def answers(seed):
        cloud = SimulatedProvider.modern(seed=seed, denial_share=0.3)
        offers = [item.offer for item in cloud.listings]
        return [
            (
                cloud.grant(request(offer, f"l{n}"), cloud.start),
                cloud.revocation(LeaseId(f"l{n}"), offer, cloud.start, None),
            )
            for n, offer in enumerate(offers)
        ]

    assert answers(1) == answers(1) != answers(2)


def test_one_line_gives_a_whole_market():
    for cloud in (SimulatedProvider.auction(seed=1, days=2), SimulatedProvider.modern(seed=1, days=2)):
        for item in cloud.listings:
            assert cloud.feed.usd_per_hour(item.offer, cloud.start + HOUR) > 0
            assert cloud.listing(item.offer) is item
    gone = [
        revocation.gone_at
        for item in cloud.listings
        if (revocation := cloud.revocation(LeaseId("l0"), item.offer, cloud.start, None))
    ]
    assert len(gone) == len(cloud.listings) / 2  # every spot machine some day, no on-demand machine ever


def test_this_machine_is_free_at_once_and_never_revoked():
    cloud = SimulatedProvider.free(slots=2)
    (here,) = cloud.listings
    assert cloud.grant(request(here.offer), 7.0) == Grant(at=7.0)
    assert cloud.revocation(LeaseId("l0"), here.offer, 7.0, None) is None
    assert cloud.bill(here.offer, None, 7.0, 1e6, "released").charged_usd == 0.0
    assert cloud.feed.usd_per_hour(here.offer, 7.0) == 0.0


def write(tmp_path, machine="m5.large", zone="us-east-1a"):
    records = [
        {
            "AvailabilityZone": zone,
            "InstanceType": machine,
            "SpotPrice": price,
            "Timestamp": f"2025-03-01T{hour}:00:00Z",
        }
        for hour, price in (("00", "0.04"), ("12", "0.20"))
    ]
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"SpotPriceHistory": records}))
    return path


def test_a_price_file_gives_a_market_with_on_demand_offers(tmp_path):
    cloud = SimulatedProvider.from_prices(write(tmp_path))
    spot, on_demand = cloud.listings
    assert (spot.offer.spot, on_demand.offer.spot) == (True, False)
    assert (cloud.end - cloud.start) == 12 * HOUR
    assert cloud.feed.usd_per_hour(spot.offer, cloud.start) == 0.04
    assert cloud.feed.usd_per_hour(on_demand.offer, cloud.start) == 0.096
    gone = cloud.revocation(LeaseId("l0"), spot.offer, cloud.start, None)
    assert gone == (cloud.end, cloud.end + 120.0)  # 0.20 is above on-demand


def test_a_price_file_is_cached_until_it_changes(tmp_path):
    path = write(tmp_path)
    first, second = (SimulatedProvider.from_prices(path, seed=seed) for seed in (0, 1))
    offer = first.listings[0].offer
    assert first.book.trace(offer) is second.book.trace(offer)
    path.write_text(path.read_text().replace("0.04", "0.051"))
    assert SimulatedProvider.from_prices(path).feed.usd_per_hour(offer, first.start) == 0.051


def test_a_run_may_begin_in_the_middle_of_a_price_file_and_knows_the_prices_before(tmp_path):
    path = write(tmp_path)
    whole = SimulatedProvider.from_prices(path)
    later = SimulatedProvider.from_prices(path, start=whole.start + 6 * HOUR)
    offer = later.listings[0].offer
    assert (later.start, later.end) == (whole.start + 6 * HOUR, whole.end)
    assert later.feed.history(offer, later.start).times == (whole.start,)


def test_a_price_file_of_unknown_machines_is_refused(tmp_path):
    with pytest.raises(DataError, match="none of its machine types"):
        SimulatedProvider.from_prices(write(tmp_path, machine="z9.huge"))


def test_offers_that_are_not_for_sale_and_impossible_settings_are_refused(spot_listing):
    elsewhere = Offer(provider="aws", zone="mars-1a", machine="m6i.xlarge", spot=True)
    with pytest.raises(SpecError, match="not for sale"):
        provider(spot_listing).grant(request(elsewhere), 0.0)
    for wrong in ({"denial_share": 1.5}, {"provision_s": -1.0}, {"denial_s": float("nan")}):
        with pytest.raises(SpecError, match=next(iter(wrong))):
            provider(spot_listing, **wrong)
    with pytest.raises(SpecError, match="interruptions_per_hour"):
        SimulatedProvider.modern(interruptions_per_hour=-1.0)


def test_on_a_preemptible_market_there_is_one_price_and_no_machine_outlives_a_day() -> None:
    market = make_market("preemptible", machines=["n1-highcpu-4"], zones=["us-east1-b"])
    provider = market.open()
    spot, kept = (next(x for x in provider.listings if x.offer.spot is revocable) for revocable in (True, False))
    assert spot.max_life_s == 86400.0
    assert kept.max_life_s is None
    prices = {provider.feed.usd_per_hour(spot.offer, provider.start + hours * 3600.0) for hours in range(0, 700, 50)}
    assert len(prices) == 1
    assert prices.pop() == pytest.approx(0.47 * kept.on_demand_usd_per_hour)
    gone = [provider.revocation(LeaseId(f"l{n}"), spot.offer, provider.start, None) for n in range(300)]
    lifetimes = [taken.gone_at - provider.start for taken in gone if taken is not None]
    assert len(lifetimes) == 300
    assert max(lifetimes) == 86400.0
    assert 0.15 < sum(life < 86400.0 for life in lifetimes) / 300 < 0.3  # a calm type in a calm zone


@pytest.mark.parametrize("price_share", [0.0, -1.0, 1.5])
def test_a_price_share_above_one_is_refused(price_share: float) -> None:
    with pytest.raises(SpecError, match="price_share"):
        make_market("preemptible", price_share=price_share).open()
