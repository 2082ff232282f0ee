"""The guarantee: a deadline that on-demand machines alone could still meet is met, whatever a rule proposes.

Slack is the time left minus the DURABLE work left: what is not saved counts as undone. Between two looks slack falls by
at most the time between them, because saved work cannot be lost. So it is enough to go to an on-demand machine while
there is slack for one set-up, one save and one look. Every rule here follows from that; no probability is involved.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MachineChoice(Enum):
    WAIT = "wait"
    SPOT = "spot"
    ON_DEMAND = "on demand"
    SAVE = "save"


@dataclass(frozen=True)
class SlackChoice:
    """What to do until the next look: hold this kind of machine (the present one is held until the new one is up)."""

    kind: MachineChoice
    zone: int = 0
    """Of a spot machine: its place in the list of zones."""


WAIT, ON_DEMAND, SAVE = (
    SlackChoice(MachineChoice.WAIT),
    SlackChoice(MachineChoice.ON_DEMAND),
    SlackChoice(MachineChoice.SAVE),
)


@dataclass(frozen=True)
class Switching:
    """What changing machines takes, in seconds."""

    setup_s: float
    """From the request for a machine until work resumes on it."""
    restore_s: float
    """The part of it that cannot be done while the old machine still works."""
    save_s: float
    look_s: float
    """The longest time between two looks."""

    @property
    def line_s(self) -> float:
        """With less slack than this there must be an on-demand machine, held or pending."""
        return self.setup_s + self.save_s + self.look_s


@dataclass(frozen=True, slots=True)
class Situation:
    """One job at one look."""

    time_left_s: float
    work_left_s: float
    """If no more work is lost."""
    unsaved_s: float = 0.0
    """Work that would be lost with the machine."""
    here: MachineChoice = MachineChoice.WAIT
    """What is held now: WAIT is nothing."""
    zone: int = 0
    starting: bool = False
    """The machine is held or pending, but no work is done on it yet."""

    @property
    def slack_s(self) -> float:
        """Unsaved work counts as undone on spot only: on-demand machines are not preempted, and leaving one saves
        first."""
        unsaved = 0.0 if self.here is MachineChoice.ON_DEMAND else self.unsaved_s
        return self.time_left_s - self.work_left_s - unsaved

    def at(self, zone: int) -> Situation:
        return Situation(self.time_left_s, self.work_left_s, self.unsaved_s, self.here, zone, self.starting)


def must_be_on_demand(slack_s: float, switching: Switching) -> bool:
    return slack_s < switching.line_s


def may_start_on_spot(slack_s: float, switching: Switching) -> bool:
    """Not where its set-up alone would use up the slack: it would be left before it did any work."""
    return slack_s >= switching.line_s + switching.setup_s


def may_leave_on_demand(slack_s: float, switching: Switching) -> bool:
    """There must be slack for the restore, the save before it, and for coming back to on-demand."""
    return slack_s >= switching.line_s + switching.restore_s + switching.save_s


def should_save_now(slack_s: float, unsaved_s: float, switching: Switching) -> bool:
    """One look before the line: saving turns unsaved work into slack, and there is still time should it fail."""
    close = switching.line_s <= slack_s < switching.line_s + switching.look_s
    return close and unsaved_s > switching.save_s


def guarded(proposed: SlackChoice, now: Situation, switching: Switching) -> SlackChoice:
    """The proposed choice, or the one that the guarantee requires instead."""
    slack_s = now.slack_s
    if now.here is MachineChoice.ON_DEMAND:
        must_stay = now.starting or not may_leave_on_demand(slack_s, switching)
        # A save here costs time and gains nothing.
        return ON_DEMAND if must_stay or proposed.kind is MachineChoice.SAVE else proposed
    if must_be_on_demand(slack_s, switching):
        return ON_DEMAND
    if now.here is MachineChoice.WAIT:
        if proposed.kind is MachineChoice.SPOT and not may_start_on_spot(slack_s, switching):
            return ON_DEMAND
        return WAIT if proposed.kind is MachineChoice.SAVE else proposed
    if should_save_now(slack_s, now.unsaved_s, switching):
        return SAVE
    moves = proposed.kind is MachineChoice.SPOT and proposed.zone != now.zone
    if moves and not may_start_on_spot(slack_s, switching):
        return SlackChoice(MachineChoice.SPOT, now.zone)
    return proposed
