"""LiveWorld: timers, user requests, background tasks, a backend that fails, and a restart."""

import time

import pytest

from shoestring.errors import PermanentError, TransientError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.background import background_task, task_name
from shoestring.kernel.history import Entry, RecordedEvents
from shoestring.kernel.types import CheckpointRef, Offer
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.slowness import PATIENCE_S
from shoestring.world.live import retries
from shoestring.world.live.background import InProcessTasks, SubprocessTasks
from shoestring.world.live.clock import RunClock
from shoestring.world.live.user_requests import post_request
from shoestring.world.live.world import LiveWorld

START = 5000.0
OFFER = Offer(provider="test", zone="here", machine="small", spot=True)
REQUEST = d.RequestLease(lease="l0", offer=OFFER, end_by=START + 900, why="test")
SEGMENT = d.StartSegment(segment="s0", job="j0", leases=("l0",), config={}, until_step=3, why="test")


class RecordingBackend:
    """A backend that records its orders, reports the events of the test, and fails when the test says so."""

    def __init__(self):
        self.orders = []
        self.events = []
        self.held = []
        self.fails = []

    def _do(self, *order):
        if self.fails:
            raise self.fails.pop(0)
        self.orders.append(order)

    def acquire(self, request):
        self._do("acquire", request.lease)

    def extend(self, extension):
        self._do("extend", extension.lease, extension.end_by)

    def release(self, lease):
        self._do("release", lease)

    def start(self, segment):
        self._do("start", segment.segment)

    def plan_saves(self, plan):
        self._do("plan", plan.segment)

    def signal(self, segment, action, grace_s):
        self._do(action, segment, grace_s)

    def poll(self):
        events, self.events = self.events, []
        return events

    def inventory(self):
        return self.held

    def close(self):
        self._do("close")


@pytest.fixture
def backend():
    return RecordingBackend()


@pytest.fixture
def world(backend, tmp_path):
    clock = RunClock(started_at=START, wall_at=time.time(), speedup=1000.0)
    world = LiveWorld(
        backend, clock, None, DirectoryStore(tmp_path / "store"), run_dir=tmp_path, background=InProcessTasks()
    )
    yield world
    world.close()


def past(*turns):
    """Recorded turns: an event and the decisions it caused."""
    recorded = RecordedEvents()
    for seq, (event, *decisions) in enumerate(turns, 1):
        recorded.replayed(Entry(seq=seq, event=event, decisions=tuple(decisions)))
    return recorded


def wake(name, at, about=None):
    return d.WakeAt(name=name, at=at, about=about, why="test")


def test_timers_fire_in_order_at_the_times_they_were_set_to(world):
    world.carry_out(wake("late", START + 60))
    world.carry_out(wake("early", START + 30))
    assert [world.next_event() for _ in range(2)] == [
        e.TimerFired(at=START + 30, name="early"),
        e.TimerFired(at=START + 60, name="late"),
    ]
    assert world.clock.now() >= START + 60


def test_setting_a_timer_again_moves_it(world):
    world.carry_out(wake("moved", START + 20))
    world.carry_out(wake("moved", START + 50))
    world.carry_out(wake("other", START + 40))
    assert [world.next_event().name for _ in range(2)] == ["other", "moved"]


def test_a_timer_about_a_lease_is_cancelled_when_the_lease_ends(world, backend):
    world.carry_out(wake("renew:l0", START + 20, about="l0"))
    world.carry_out(wake("other", START + 40))
    backend.events = [e.LeaseEnded(at=START + 1, lease="l0", cause="released", charged_usd=0.0)]
    assert [type(world.next_event()) for _ in range(2)] == [e.LeaseEnded, e.TimerFired]


def test_events_come_in_the_order_of_their_times(world, backend):
    world.carry_out(wake("between", START + 5))
    time.sleep(0.01)
    backend.events = [
        e.LeaseGranted(at=START + 7, lease="l1"),
        e.LeaseGranted(at=START + 3, lease="l0"),
    ]
    assert [world.next_event().at for _ in range(3)] == [START + 3, START + 5, START + 7]


def test_decisions_go_to_the_backend(world, backend):
    for decision in (
        REQUEST,
        d.ExtendLease(lease="l0", end_by=START + 1800, why="test"),
        SEGMENT,
        d.PlanSaves(segment="s0", every_s=5.0, why="test"),
        d.SaveCheckpoint(segment="s0", why="test"),
        d.HaltSegment(segment="s0", grace_s=9.0, why="test"),
        d.ReleaseLease(lease="l0", why="test"),
        d.AddJob(job="j0", config={}, why="not for the backend"),
    ):
        world.carry_out(decision)
    assert backend.orders == [
        ("acquire", "l0"),
        ("extend", "l0", START + 1800),
        ("start", "s0"),
        ("plan", "s0"),
        ("save", "s0", 0.0),
        ("halt", "s0", 9.0),
        ("release", "l0"),
    ]


def test_a_dropped_checkpoint_leaves_the_store(world, tmp_path):
    store = DirectoryStore(tmp_path / "store")
    (tmp_path / "net").mkdir()
    ref = store.put("j0", 1, tmp_path / "net", segment="s0")
    world.carry_out(d.DropCheckpoint(ref=ref, why="test"))
    assert store.list() == []


# -- user requests -----------------------------------------------------------------------------------------------------
def test_a_request_of_this_process_becomes_an_event(world):
    world.request("amend", budget_usd=30.0)
    requested = world.next_event()
    assert (requested.wish, requested.budget_usd) == ("amend", 30.0)


def test_a_request_on_file_is_reported_once_and_removed_on_close(world, tmp_path):
    (tmp_path / "asked").mkdir()
    (tmp_path / "asked" / "garbage.json").write_text("{")
    post_request(tmp_path, "stop")
    assert world.next_event().wish == "stop"
    world.carry_out(wake("end", world.clock.now() + 400))
    assert isinstance(world.next_event(), e.TimerFired)
    world.close()
    assert [path.name for path in (tmp_path / "asked").iterdir()] == ["garbage.json"]


def test_an_undelivered_request_stays_on_file(world, tmp_path):
    post_request(tmp_path, "stop")
    world.close()
    assert len(list((tmp_path / "asked").iterdir())) == 1


# -- background tasks --------------------------------------------------------------------------------------------------
@background_task()
def square(given):
    print("output of a library")
    return {"squared": given["x"] ** 2}


@background_task()
def fail(given):
    raise ZeroDivisionError(given)


def background(function, given, name="t"):
    return d.Think(name=name, question=task_name(function), given=given, why="test")


def test_a_background_result_comes_as_an_event(world):
    world.carry_out(background(square, {"x": 3}))
    ready = world.next_event()
    assert (ready.name, ready.answer) == ("t", {"squared": 9})


def test_a_failed_background_task_is_a_broken_policy(world):
    world.carry_out(background(fail, 1))
    broke = world.next_event()
    assert isinstance(broke, e.PolicyBroke)
    assert "ZeroDivisionError" in broke.detail


def test_a_subprocess_returns_results_in_order_and_is_restarted_when_it_dies():
    tasks = SubprocessTasks()
    for x in range(3):
        tasks.submit(background(square, {"x": x}, name=f"t{x}"))

    def wait():
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if ready := tasks.ready():
                return ready[0]
            time.sleep(0.005)
        raise AssertionError("no result came")

    assert [wait() for _ in range(3)] == [(f"t{x}", {"squared": x * x}, "") for x in range(3)]
    tasks._process.kill()
    tasks.submit(background(square, {"x": 5}))
    assert "died" in wait().error
    tasks.submit(background(square, {"x": 6}))
    assert wait().answer == {"squared": 36}
    tasks.close()


# -- a backend that fails ----------------------------------------------------------------------------------------------
def test_transient_failures_are_retried_in_order(world, backend, monkeypatch):
    monkeypatch.setattr(retries, "_FIRST_WAIT_S", 0.01)
    backend.fails = [TransientError("throttled"), TransientError("throttled")]
    world.carry_out(REQUEST)
    world.carry_out(d.ReleaseLease(lease="l0", why="test"))
    while backend.fails or len(backend.orders) < 2:  # each turn of the loop may try again
        world.carry_out(wake("end", world.clock.now() + 50))
        world.next_event()
    assert backend.orders == [("acquire", "l0"), ("release", "l0")]


def test_a_decision_that_never_succeeds_pauses_the_run_with_a_reason(world, backend, monkeypatch):
    monkeypatch.setattr(retries, "_FIRST_WAIT_S", 0.0005)
    backend.fails = [TransientError("throttled")] * 8
    world.carry_out(REQUEST)
    assert [type(world.next_event()) for _ in range(2)] == [e.LeaseDenied, e.UserAsked]
    assert world.trouble == ["RequestLease: throttled"]


@pytest.mark.parametrize("error", [PermanentError("no credentials", hint="log in"), OSError(28, "No space left")])
def test_a_permanent_failure_pauses_the_run_at_once(world, backend, error):
    backend.fails = [error]
    world.carry_out(SEGMENT)
    ended, requested = world.next_event(), world.next_event()
    assert (ended.segment, ended.cause, requested.wish) == ("s0", "lost", "pause")
    assert len(world.trouble) == 1


# -- a restart ---------------------------------------------------------------------------------------------------------
def test_pending_orders_are_issued_again_in_dependency_order(world, backend):
    ref = CheckpointRef(job="j0", step=1, name="j0/000001-s0", size_bytes=1, digest="x")
    saved = e.CheckpointSaved(at=START, segment="s0", job="j0", step=1, ref=ref, took_s=0.0)
    world.attach(
        past(
            (e.TimerFired(at=START, name="a"), REQUEST, wake("fired", START + 10), wake("armed", START + 20)),
            (e.LeaseGranted(at=START, lease="l0"), SEGMENT, d.SaveCheckpoint(segment="s0", why="answered below")),
            (saved, d.ExtendLease(lease="l0", end_by=START + 1800, why="test")),
            (e.TimerFired(at=START + 10, name="fired"), background(square, {"x": 1})),
        )
    )
    assert backend.orders == [("acquire", "l0"), ("extend", "l0", START + 1800), ("start", "s0")]
    events = [world.next_event() for _ in range(2)]
    assert {type(event) for event in events} == {e.ThoughtReady, e.TimerFired}
    assert [event.name for event in events if isinstance(event, e.TimerFired)] == ["armed"]


def test_completed_orders_are_not_issued_again(world, backend):
    world.attach(
        past(
            (e.TimerFired(at=START, name="a"), REQUEST, wake("renew:l0", START + 20, about="l0")),
            (e.LeaseGranted(at=START, lease="l0"), SEGMENT),
            (e.SegmentEnded(at=START, segment="s0", step=3, cause="reached"), d.ReleaseLease(lease="l0", why="idle")),
            (e.LeaseEnded(at=START, lease="l0", cause="released", charged_usd=1.0),),
        )
    )
    assert backend.orders == []
    assert world._timers == {}


def test_machines_the_journal_does_not_know_are_released_without_events(world, backend):
    backend.held = ["l0", "l7"]
    world.attach(past((e.TimerFired(at=START, name="a"), REQUEST)))
    assert backend.orders == [("acquire", "l0"), ("release", "l7")]
    backend.events = [
        e.LeaseEnded(at=START, lease="l7", cause="released", charged_usd=0.0),
        e.LeaseGranted(at=START + 1, lease="l0"),
    ]
    assert world.next_event() == e.LeaseGranted(at=START + 1, lease="l0")
