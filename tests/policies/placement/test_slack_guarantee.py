"""The guarantee: whatever a rule proposes and whatever the market does, what on-demand can finish is finished."""

from __future__ import annotations

import pytest

from benchmarks.placement_fuzz import kept
from shoestring.policies.placement.slack.guarantee import (
    ON_DEMAND,
    SAVE,
    WAIT,
    MachineChoice,
    Situation,
    SlackChoice,
    Switching,
    guarded,
)
from tests.numbers import over_numbers

SWITCHING = Switching(setup_s=600.0, restore_s=180.0, save_s=10.0, look_s=120.0)
LINE_S = 730.0
HERE, THERE = SlackChoice(MachineChoice.SPOT, 0), SlackChoice(MachineChoice.SPOT, 1)


def with_slack(
    slack_s: float, here: MachineChoice = MachineChoice.WAIT, unsaved_s: float = 0.0, *, starting: bool = False
) -> Situation:
    undone = 0.0 if here is MachineChoice.ON_DEMAND else unsaved_s
    return Situation(7200.0 + undone + slack_s, 7200.0, unsaved_s, here, 0, starting)


@over_numbers(150)
def test_no_deadline_is_missed_on_markets_made_up_at_random(seed: int) -> None:
    assert kept(seed)


def test_slack_counts_unsaved_work_as_undone_on_spot_only() -> None:
    assert Situation(1000.0, 400.0, 100.0, MachineChoice.SPOT).slack_s == 500.0
    assert Situation(1000.0, 400.0, 100.0, MachineChoice.ON_DEMAND).slack_s == 600.0


@pytest.mark.parametrize(
    ("now", "proposed", "done"),
    [
        (with_slack(LINE_S), WAIT, WAIT),
        (with_slack(LINE_S - 1), WAIT, ON_DEMAND),
        (with_slack(LINE_S + 600), HERE, HERE),
        (with_slack(LINE_S + 599), HERE, ON_DEMAND),  # its set-up alone would use the slack up
        (with_slack(LINE_S - 1, MachineChoice.SPOT), HERE, ON_DEMAND),
        (with_slack(LINE_S + 1, MachineChoice.SPOT, 300.0), HERE, SAVE),  # one look before it is too late
        (with_slack(LINE_S + 1, MachineChoice.SPOT, 5.0), HERE, HERE),  # less than a save takes
        (with_slack(LINE_S + 121, MachineChoice.SPOT, 300.0), HERE, HERE),
        (with_slack(LINE_S + 599, MachineChoice.SPOT), THERE, HERE),
        (with_slack(LINE_S + 600, MachineChoice.SPOT), THERE, THERE),
        (with_slack(LINE_S + 189, MachineChoice.ON_DEMAND), THERE, ON_DEMAND),
        (with_slack(LINE_S + 190, MachineChoice.ON_DEMAND), THERE, THERE),
        (with_slack(LINE_S + 190, MachineChoice.ON_DEMAND, starting=True), WAIT, ON_DEMAND),
        (with_slack(9999.0, MachineChoice.ON_DEMAND), SAVE, ON_DEMAND),
        (with_slack(9999.0), SAVE, WAIT),
    ],
)
def test_a_proposed_choice_is_accepted_or_replaced(now: Situation, proposed: SlackChoice, done: SlackChoice) -> None:
    assert guarded(proposed, now, SWITCHING) == done
