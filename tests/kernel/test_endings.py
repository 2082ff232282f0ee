"""Why a run ended: a code on record, and for journals of version 0.1 the one their sentence stands for."""

from __future__ import annotations

import pytest

from shoestring.kernel import decisions as d
from shoestring.kernel.codec import decode_turn
from shoestring.kernel.events import TimerFired
from shoestring.kernel.fold.evolve import evolve
from shoestring.kernel.fold.old_endings import reason_of
from shoestring.kernel.state import RunState
from shoestring.report.status import run_status

OLD_SENTENCES = {
    "nothing is left to do": "completed",
    "every trial still in the race is over": "completed",
    "stage 3 of 3 is over, and it was the last": "completed",
    "nobody is left for stage 2": "completed",
    "the deadline is near": "deadline_reached",
    "no machine can be paid any more: only 31 s left before the deadline": "deadline_reached",
    "no machine can be paid any more: $0.00067 of the budget is free, 1m of m5.large spot in a may cost $0.001": (
        "out_of_budget"
    ),
    "$0.03 does not pay 8 slots at once any more": "out_of_budget",
    "no spot machine on offer has the 4 slots that j0 takes": "failed",
    "every machine on offer is a spot machine, and only on-demand ones are wanted": "failed",
    "budget $0.10 does not pay any plan": "out_of_budget",
    "a third party's policy is content": "completed",
}


@pytest.mark.parametrize(("sentence", "reason"), OLD_SENTENCES.items())
def test_the_sentence_of_an_old_journal_stands_for_a_reason(sentence: str, reason: str) -> None:
    assert reason_of(sentence) == reason


def test_an_old_ending_is_read_and_folded() -> None:
    turn = b'{"event":{"type":"TimerFired/1","at":9.0,"name":"deadline"},"decisions":[{"type":"WindDown/1","why":"the deadline is near"},{"type":"Conclude/1","why":"the deadline is near","best":null}]}'  # noqa: E501
    event, decisions = decode_turn(turn)
    assert event == TimerFired(at=9.0, name="deadline")
    state = RunState()
    for decision in decisions:
        evolve(state, decision)
    assert (state.phase, state.ending, state.end_reason) == ("concluded", "the deadline is near", "deadline_reached")
    assert run_status(state, driven=False) == "deadline_reached"


def test_the_reason_is_recorded_and_no_sentence_is_read() -> None:
    state = RunState()
    evolve(state, d.WindDown(reason="out_of_budget", why="the deadline is near"))
    assert state.end_reason == "out_of_budget"


@pytest.mark.parametrize(
    ("phase", "driven", "status"),
    [
        ("running", True, "running"),
        ("running", False, "paused"),
        ("winding_down", True, "running"),
        ("pausing", False, "paused"),
        ("parking", False, "failed"),
    ],
)
def test_a_run_that_is_not_over_is_running_paused_or_failed(phase, driven: bool, status: str) -> None:
    state = RunState()
    state.phase = phase
    assert run_status(state, driven=driven) == status
