"""PolicySuite: the laws of policies, checked on whole simulated studies with revocations and failures.

    class TestMySearch(PolicySuite):
        def policies(self, spec):
            return bundle(MySearch(), Options(spec))

`policies` returns all policies of a run in their order, with the ones to test among them; it is called again for every
controller, as after a crash. A run is then checked turn by turn: new policies get each event again, with a state
rebuilt from the journal, and their decisions must be the recorded ones.
"""

from __future__ import annotations

import ast
import inspect
import random
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec

from shoestring.controller import run
from shoestring.guard import BudgetAndDeadline
from shoestring.kernel.decisions import Decision
from shoestring.kernel.events import Event, RunStarted
from shoestring.kernel.history import Entry
from shoestring.kernel.policy import Policy, Waker
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.step import PolicyChain, replay, step
from shoestring.kernel.types import Config, SegmentId
from shoestring.kernel.view import RunView
from shoestring.market.prices import PriceBook, PriceTrace
from shoestring.market.simulated.lifetimes import ExponentialLifetime
from shoestring.market.simulated.provider import SimulatedProvider
from shoestring.market.simulated.revocation import DrawnLifetimes
from shoestring.storage.journal.memory import MemoryJournal
from shoestring.testing.story import SPEC
from shoestring.world.sim.workload import Curve, Trouble, Workload
from shoestring.world.sim.world import SimWorld

START = 1_700_000_000.0
FORBIDDEN = frozenset(
    {"time", "datetime", "os", "sys", "threading", "multiprocessing", "asyncio", "subprocess", "socket", "logging"}
    | {"secrets", "uuid"}
)
NOT_COMPARED = frozenset({"feed", "memos", "decided"})
"""Not the state of the run: the price feed, caches of policies, and what step() itself records."""


class PolicySuite:
    spec: RunSpec = SPEC
    """The study that is simulated; override it if the policies need another."""
    seeds: Sequence[int] = (1, 2, 3)
    """Each gives a different market, with different revocations and failures."""
    _played: ClassVar[list[_Study]]

    def policies(self, spec: RunSpec) -> Sequence[Policy]:
        raise NotImplementedError("return the policies of a run, in their order")

    # -- the contract ----------------------------------------------------------------------------------------------
    def test_each_policy_declares_what_wakes_it(self) -> None:
        for policy in self.policies(self.spec):
            assert isinstance(policy.wants, frozenset), f"{_name(policy)}.wants is no frozenset"
            for waker in policy.wants:
                assert issubclass(waker, Event | Decision), f"{_name(policy)} wants {waker!r}: no event, no decision"

    def test_no_policy_imports_a_clock_or_io(self) -> None:
        for policy in self.policies(self.spec):
            reached = _imports(sys.modules[type(policy).__module__]) & FORBIDDEN
            assert not reached, (
                f"{_name(policy)} imports {', '.join(sorted(reached))}: time and randomness come from the state"
            )

    def test_every_study_ends_and_every_decision_has_a_why(self) -> None:
        for study in self._studies:
            assert study.state.concluded
            for entry in study.entries:
                for decision in entry.decisions:
                    assert decision.why.strip(), f"{type(decision).__name__} of entry {entry.seq} without a why"

    def test_policies_do_not_write_to_the_state(self) -> None:
        for seed in self.seeds:
            seen = _LastSeen()
            self._play(seed, [_Watched(policy, seen) for policy in self.policies(self.spec)])

    def test_the_same_events_give_the_same_decisions(self) -> None:
        for study in self._studies:
            assert self._play(study.seed, self.policies(self.spec)).entries == study.entries

    def test_policies_keep_nothing_outside_the_state(self) -> None:
        """A controller that takes over at any entry decides as the one that processed all entries."""
        for study in self._studies:
            state = study.state_before(0)
            for entry in study.entries:
                state.memos.clear()  # what a controller that has just read the journal would find
                decided = step(state, entry.event, PolicyChain(self.policies(self.spec)), BudgetAndDeadline())
                assert decided == entry.decisions, f"different decisions after a restart before entry {entry.seq}"
            replayed = study.state_before(len(study.entries))
            assert _snapshot(RunView(state)) == _snapshot(RunView(replayed)), "the state is not that of the journal"

    def test_late_and_repeated_events_do_no_harm(self) -> None:
        for study in self._studies:
            rng = random.Random(study.seed)
            events = [entry.event for entry in study.entries if not isinstance(entry.event, RunStarted)]
            for _ in range(40):
                state = study.state_before(rng.randrange(1, len(study.entries)))
                chain = PolicyChain(self.policies(self.spec))
                for event in rng.choices(events, k=5):
                    if not state.concluded and _is_possible(state, event):
                        step(state, event, chain, BudgetAndDeadline())

    # -- the studies -----------------------------------------------------------------------------------------------
    @property
    def _studies(self) -> list[_Study]:
        """Played once for all tests of a suite: pytest makes an instance of it for each."""
        suite = type(self)
        if "_played" not in vars(suite):
            suite._played = [self._play(seed, self.policies(self.spec)) for seed in self.seeds]
        return suite._played

    def _play(self, seed: int, policies: Sequence[Policy]) -> _Study:
        world, journal = _revoking_world(self.spec, seed), MemoryJournal()
        opening = RunStarted(at=START, spec=self.spec, seed=seed)
        state = run(world, journal, policies, BudgetAndDeadline(), first=[opening])
        return _Study(seed, state, list(journal.read()))


class _Study:
    def __init__(self, seed: int, state: RunState, entries: list[Entry]) -> None:
        self.seed, self.state, self.entries = seed, state, entries

    def state_before(self, index: int) -> RunState:
        state = RunState(self.state.feed)
        for entry in self.entries[:index]:
            replay(state, entry)
        return state


class _LastSeen:
    """The state as the last policy left it. The next one finds it so, unless there was a decision or an event since."""

    def __init__(self) -> None:
        self._moment: tuple[int, int] | None = None
        self._written = b""

    def before(self, view: RunView) -> bytes:
        moment = _moment(view)
        if moment != self._moment:
            self._moment, self._written = moment, _snapshot(view)
        return self._written


class _Watched:
    """A policy, with the state compared before and after each decision."""

    def __init__(self, policy: Policy, seen: _LastSeen) -> None:
        self._policy = policy
        self._seen = seen

    @property
    def wants(self) -> frozenset[Waker]:
        return self._policy.wants

    def decide(self, state: RunView, event: Event) -> Iterator[Decision]:
        before = self._seen.before(state)
        for decision in self._policy.decide(state, event):
            assert _snapshot(state) == before, f"{_name(self._policy)} wrote to the state on {type(event).__name__}"
            yield decision
            before = self._seen.before(state)
        assert _snapshot(state) == before, f"{_name(self._policy)} wrote to the state on {type(event).__name__}"


def _snapshot(view: RunView) -> bytes:
    return _ENCODER.encode({name: value for name, value in vars(view._state).items() if name not in NOT_COMPARED})


def _plain(value: object) -> object:
    return value.tobytes() if isinstance(value, array) else repr(value)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain)
"""A state is written down before and after every decision of a study: several times faster than its repr."""


def _moment(view: RunView) -> tuple[int, int]:
    """Changes with every event and every decision."""
    return view._state.seq, len(view._state.decided)


def _is_possible(state: RunState, event: Event) -> bool:
    """Events of a job can come late or twice, but not before the job exists."""
    job = getattr(event, "job", None)
    return job is None or job in state.jobs


def _revoking_world(spec: RunSpec, seed: int) -> SimWorld:
    rng = random.Random(seed)
    traces = {}
    for listing in spec.listings:
        if listing.offer.spot:
            times = [START - 3600.0, *sorted(START + rng.uniform(0, spec.deadline_s) for _ in range(8))]
            prices = [listing.on_demand_usd_per_hour * rng.uniform(0.1, 0.9) for _ in times]
            traces[listing.offer] = PriceTrace(listing.offer, times, prices)
    provider = SimulatedProvider(
        spec.listings,
        PriceBook(traces, spec.listings),
        DrawnLifetimes(ExponentialLifetime(1800.0), seed),
        seed=seed,
        denial_share=0.2,
        provision_s=40.0,
    )

    def curve(config: Config) -> Curve:
        level = sum(value for value in config.values() if isinstance(value, float))
        return lambda at_step: {spec.metric or "loss": level + 1 / at_step}

    def trouble(config: Config, segment: SegmentId, at_step: int) -> Trouble | None:  # noqa: ARG001
        return "fail" if random.Random(f"{seed}/{segment}/{at_step}").random() < 0.03 else None

    workload = Workload(curve=curve, seconds_per_step=lambda *_: 120.0, checkpoint_gb=0.1, trouble=trouble)
    return SimWorld(provider, workload, start=START)


def _imports(module: object) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):  # type: ignore[arg-type]
        names: Iterable[str] = ()
        if isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = (node.module,)
        found.update(name.partition(".")[0] for name in names)
    return found


def _name(policy: Policy) -> str:
    return type(policy).__name__
