"""Machines of the user's own: prices read beside the loop and stored, and no more leases than there are nodes."""

import sys
import time

import pytest

from shoestring.backends import price_watch
from shoestring.backends.lease_record import LeaseRecord
from shoestring.backends.machines import Notice, Sighting, ThisComputer
from shoestring.backends.own_machines import OwnMachines
from shoestring.backends.price_watch import PriceWatch, read_price, recorded_prices
from shoestring.errors import DataError, PermanentError
from shoestring.kernel.decisions import RequestLease
from shoestring.kernel.types import LeaseId
from shoestring.market.own import NodeType, OwnMarket
from shoestring.testing.slowness import PATIENCE_S
from shoestring.world.live.clock import RunClock


def node(**fields):
    facts = {"label": "spot", "machine": "m", "provider": "own", "zone": "cluster", "spot": True}
    return NodeType(**facts | {"list_usd_per_hour": 1.0, "count": 2} | fields)


def printing(path, price):
    """A command that prints what is in a file now."""
    path.write_text(price)
    return node(price_command=(sys.executable, "-c", f"print(open({str(path)!r}).read())"))


def market_of(*nodes):
    return OwnMarket(nodes, [read_price(x)[-1].usd_per_hour for x in nodes])


def watch(market, run_dir, **options):
    now = time.time()
    return PriceWatch(market, RunClock(now, now), run_dir, **options)


def wait_until(happened, prices):
    until = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < until
        prices.update()
        time.sleep(0.01)


# -- prices ------------------------------------------------------------------------------------------------------------
def test_a_command_is_asked_again_and_what_it_says_is_stored(tmp_path):
    kind = printing(tmp_path / "price", "$0.30")
    market = market_of(kind)
    prices = watch(market, tmp_path, every_s=0.0)
    (tmp_path / "price").write_text("0.25")
    now = time.time() + 1e6
    wait_until(lambda: market.feed.usd_per_hour(kind.offer, now) == 0.25, prices)
    prices.close()
    assert list(recorded_prices(tmp_path)[kind.offer].values()) == [0.30, 0.25]


def test_a_restarted_controller_bills_by_the_prices_that_were_seen(tmp_path):
    kind = printing(tmp_path / "price", "0.30")
    watch(market_of(kind), tmp_path).close()
    (tmp_path / "price").write_text("0.90")
    again = market_of(kind)
    watch(again, tmp_path).close()
    assert again.feed.usd_per_hour(kind.offer, time.time()) == 0.30, "until it is read again"


def test_a_command_that_fails_later_leaves_the_last_price_and_says_so_once(tmp_path, capsys):
    kind = printing(tmp_path / "price", "0.30")
    market = market_of(kind)
    prices = watch(market, tmp_path, every_s=0.0)
    (tmp_path / "price").write_text("down for maintenance")
    wait_until(lambda: "at its last known price" in capsys.readouterr().err, prices)
    for _ in range(20):
        prices.update()
        time.sleep(0.01)
    assert "last known price" not in capsys.readouterr().err
    assert market.feed.usd_per_hour(kind.offer, time.time()) == 0.30
    prices.close()


def test_the_past_of_a_price_file_is_known_and_its_future_is_not(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text(
        "time,machine,zone,price\n2020-01-01T00:00:00Z,m,a,0.1\n2021-01-01T00:00:00Z,m,a,0.2\n"
        "2999-01-01T00:00:00Z,m,a,0.9\n"
    )
    kind = node(price_file=str(file), zone="a")
    market = market_of(kind)
    watch(market, tmp_path).close()
    assert market.feed.history(kind.offer, time.time()).usd_per_hour == (0.1, 0.2, 0.2)


def test_a_line_that_a_crash_cut_off_is_replaced(tmp_path):
    kind = printing(tmp_path / "price", "0.30")
    watch(market_of(kind), tmp_path).close()
    stored = tmp_path / "prices.jsonl"
    whole = stored.read_bytes()
    stored.write_bytes(whole + whole[:40])
    market = market_of(kind)
    prices = watch(market, tmp_path, every_s=0.0)
    (tmp_path / "price").write_text("0.25")
    wait_until(lambda: market.feed.usd_per_hour(kind.offer, time.time() + 1e6) == 0.25, prices)
    prices.close()
    assert list(recorded_prices(tmp_path)[kind.offer].values()) == [0.30, 0.25]


def test_a_damaged_line_within_the_prices_is_named(tmp_path):
    kind = printing(tmp_path / "price", "0.30")
    watch(market_of(kind), tmp_path).close()
    stored = tmp_path / "prices.jsonl"
    stored.write_bytes(b"nonsense\n" + stored.read_bytes())
    with pytest.raises(DataError, match=r"prices.jsonl, line 1"):
        recorded_prices(tmp_path)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('cheap')", "is not an amount of dollars"),
        ("", "printed nothing"),
        ("import sys; sys.exit('no network')", "no network"),
        ("print(-1)", "negative"),
    ],
)
def test_a_command_that_prints_no_price_is_refused_before_the_start(code, said):
    with pytest.raises(PermanentError, match=said):
        read_price(node(price_command=(sys.executable, "-c", code)))


def test_a_command_that_is_missing_or_hangs(monkeypatch):
    with pytest.raises(PermanentError, match="cannot be started"):
        read_price(node(price_command=("no-such-program",)))
    monkeypatch.setattr(price_watch, "COMMAND_TIMEOUT_S", 0.1)
    with pytest.raises(PermanentError, match=r"took more than"):
        read_price(node(price_command=("sleep", "60")))


def test_a_file_with_several_zones_needs_the_zone_of_the_nodes(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("time,machine,zone,price\n2020-01-01T00:00:00Z,m,a,0.1\n2020-01-01T00:00:00Z,m,b,0.2\n")
    with pytest.raises(DataError, match="several zones: a, b"):
        read_price(node(price_file=str(file)))


# -- machines ----------------------------------------------------------------------------------------------------------
def record(lease, kind):
    request = RequestLease(lease=LeaseId(lease), offer=kind.offer, end_by=2e9, why="test")
    return LeaseRecord(request=request, end_by=2e9, requested_at=time.time())


@pytest.fixture
def machines(tmp_path):
    market = market_of(node(usd_per_hour=0.3))
    made = OwnMachines(ThisComputer(), market, watch(market, tmp_path), RunClock(time.time(), time.time()))
    yield made
    made.close(leased=False)


def test_a_lease_beyond_the_number_of_nodes_is_denied_at_once(machines):
    kind = node(usd_per_hour=0.3)
    leases = [record(f"l{number}", kind) for number in range(3)]
    for lease in leases:
        machines.request(lease, again=False)
    assert [machines.look(lease).denied for lease in leases] == [None, None, "no_capacity"]
    machines.release(leases[0].request.lease)
    later = record("l3", kind)
    machines.request(later, again=False)
    assert machines.look(later).denied is None, "a node is free again"


def test_leases_of_an_earlier_controller_count(machines):
    kind = node(usd_per_hour=0.3)
    for number in range(2):
        machines.recall(record(f"l{number}", kind))
    third = record("l2", kind)
    machines.request(third, again=False)
    assert machines.look(third).denied == "no_capacity"


def test_a_warned_node_is_expected_to_last_as_long_as_its_type_says(tmp_path):
    class Warned(ThisComputer):
        def look(self, record):  # noqa: ARG002
            return Sighting(answered_at=5.0, notice=Notice(10.0, 40.0))

    kind = node(usd_per_hour=0.3, notice_s=120.0)
    market = market_of(kind)
    machines = OwnMachines(Warned(), market, watch(market, tmp_path), RunClock(0.0, 0.0))
    assert machines.look(record("l0", kind)).notice == Notice(10.0, 130.0)
