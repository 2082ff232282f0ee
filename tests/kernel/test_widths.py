"""How wide a job runs: gangs over several machines, widths that change during the run, and the pace on each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from shoestring.errors import IllegalDecision
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.records import Pace
from shoestring.policies.housekeeping.closing import Closing
from shoestring.testing.story import SPEC, Story, story

WIDE = replace(SPEC, listings=tuple(replace(listing, slots=4) for listing in SPEC.listings))


def gang(shares: tuple[int, ...] = (4, 2), leases: tuple[str, ...] = ("l0", "l1"), slots: int = 6) -> d.StartSegment:
    return d.StartSegment(
        segment="s0", job="j0", leases=leases, shares=shares, slots=slots, config={"x": 0.5}, until_step=9, why="a test"
    )


def two_machines_and_a_gang_of_six() -> Story:
    run = story(spec=WIDE, lease="l0")
    run.rent("l1")
    run.add("j0", until_step=9, slots=6)
    return run


def test_a_gang_uses_its_share_of_each_machine_and_frees_it() -> None:
    run = two_machines_and_a_gang_of_six()
    run.order(gang())
    assert [run.state.leases[lease].free_slots for lease in ("l0", "l1")] == [0, 2]
    assert list(run.view.with_free_slots) == ["l1"]
    run.end("j0", "halted", step=0)
    assert [run.state.leases[lease].free_slots for lease in ("l0", "l1")] == [4, 4]


def test_a_gang_dies_with_any_of_its_machines() -> None:
    run = two_machines_and_a_gang_of_six()
    run.order(gang())
    run.happened(e.LeaseEnded(at=10.0, lease="l1", cause="revoked", charged_usd=0.1))
    assert run.state.jobs["j0"].status == "waiting"
    assert run.state.jobs["j0"].revocations == 1
    assert run.state.leases["l0"].free_slots == 4


@pytest.mark.parametrize(
    ("shares", "leases"), [((3, 2), ("l0", "l1")), ((6,), ("l0", "l1")), ((3, 3), ("l0", "l0")), ((1, 5), ("l0", "l1"))]
)
def test_a_gang_must_be_divided_into_what_fits(shares: tuple[int, ...], leases: tuple[str, ...]) -> None:
    with pytest.raises(IllegalDecision):
        two_machines_and_a_gang_of_six().order(gang(shares, leases))


def test_a_width_is_a_whole_number_of_workers() -> None:
    run = story(spec=replace(WIDE, slots=2))
    with pytest.raises(IllegalDecision, match="3 slots, and each of its workers takes 2"):
        run.add("j0", until_step=9, slots=3)


def running_on(slots: int) -> Story:
    run = story(Closing(), spec=WIDE, lease="l0")
    run.add("j0", until_step=9, slots=slots)
    run.start("s0", "j0", "l0", running_since=0.0)
    return run


def widen(run: Story, slots: int) -> list[d.Decision]:
    run.order(d.RunJob(job="j0", until_step=9, slots=slots, why="a test"))
    return run.tell(e.TimerFired(at=run.state.now, name="tick"))


def test_a_new_width_stops_a_job_at_its_next_step_and_lets_it_wait_for_its_new_place() -> None:
    run = running_on(1)
    (halt,) = widen(run, 4)
    assert (halt.segment, halt.grace_s, halt.why) == ("s0", WIDE.slice_s, "its trial resumes on 4 slots")
    assert run.state.jobs["j0"].status == "running"
    run.happened(run.save("j0", 3))
    run.end("j0", "halted", step=3)
    job = run.state.jobs["j0"]
    assert (job.status, job.slots, job.step) == ("waiting", 4, 3)


def test_a_width_reverted_before_the_segment_halts_changes_nothing() -> None:
    run = running_on(1)
    run.order(d.RunJob(job="j0", until_step=9, slots=4, why="a test"))
    assert list(run.view.draining) == ["s0"]
    assert widen(run, 1) == []


def test_paces_are_kept_by_machine_and_width_without_start_up_and_saving() -> None:
    run = running_on(2)
    run.happened(e.SegmentStarted(at=20.0, segment="s0"))
    run.happened(e.JobReported(at=30.0, segment="s0", job="j0", step=1, metrics={"loss": 1.0}))
    saved = replace(run.save("j0", 1), at=36.0)
    run.happened(saved, e.JobReported(at=46.0, segment="s0", job="j0", step=2, metrics={"loss": 0.5}))
    assert run.state.segments["s0"].pace == Pace(2, 20.0)
    run.end("j0", "halted", step=2)
    assert run.state.jobs["j0"].paces == {("small", 2): Pace(2, 20.0)}
