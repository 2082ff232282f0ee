"""The clock of a run: it starts at wall time, goes forward, counts sleep, and is the same in all processes."""

import pytest

from shoestring.worker import steady_clock
from shoestring.worker.steady_clock import SteadyClock
from shoestring.world.live.clock import RunClock
from tests.storm.fake_clock import JUMPS_S


@pytest.fixture
def clocks(monkeypatch):
    """The wall clock and the forward clock, as the test sets them."""
    times = {"wall": 5000.0, "forward": 100.0}
    monkeypatch.setattr(steady_clock.time, "time", lambda: times["wall"])
    monkeypatch.setattr(steady_clock.time, "clock_gettime", lambda _: times["forward"])

    def passes(seconds, *, jump=0.0):
        times["wall"] += seconds + jump
        times["forward"] += seconds

    return passes


@pytest.mark.parametrize("jump", JUMPS_S)
def test_market_time_does_not_move_with_the_wall_clock(clocks, jump):
    clock = RunClock(started_at=0.0, wall_at=5000.0, speedup=10.0)
    clocks(1.0, jump=jump)
    assert (clock.now(), clock.wall_now()) == (pytest.approx(10.0), pytest.approx(5001.0))


def test_sleep_counts(clocks):
    clock = SteadyClock.begin()
    clocks(3600.0)
    assert clock.time() == 5000.0 + 3600.0


@pytest.mark.parametrize("jump", JUMPS_S)
def test_processes_that_start_after_a_jump_have_the_same_time(clocks, tmp_path, jump):
    first = SteadyClock.begin()
    first.share(tmp_path)
    clocks(1.0, jump=jump)
    assert SteadyClock.of_run(tmp_path).time() == first.time() == 5001.0


def test_another_boot_counts_from_its_own_wall_time_but_not_from_before_the_latest_known(clocks, tmp_path, monkeypatch):
    SteadyClock.begin().share(tmp_path)
    monkeypatch.setattr(steady_clock, "_boot_id", lambda: "another")
    clocks(1.0, jump=-30.0)
    assert SteadyClock.of_run(tmp_path).time() == 4971.0
    assert SteadyClock.of_run(tmp_path, not_before=5000.5).time() == 5000.5
