"""One simulated segment: its progress, and what a worker would do next, in virtual time."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.types import CheckpointRef, SegmentCause
from shoestring.world.sim.workload import Curve, SnapshotAt, TroubleOf


class SimSegment(msgspec.Struct, kw_only=True):
    order: d.StartSegment
    step: int
    until_step: int
    exits: bool
    """Its code ends there by itself, whatever its target step."""
    step_s: float
    save_s: float
    curve: Curve
    snapshots: tuple[SnapshotAt, ...]
    """The snapshots it will report, of smaller data fractions."""
    trouble: TroubleOf | None
    saves: bool
    checkpoint_bytes: int
    undisturbed: bool
    """No order is pending, no failure is possible and no snapshot comes between steps: the next event is the next step,
    unless a save is due."""
    saved_step: int = -1
    save_every_s: float | None = None
    save_at: float = math.inf
    save_requested: bool = False
    halting: bool = False
    open: bool = True

    def begin(self, at: float) -> None:
        if self.save_every_s is not None:
            self.save_at = at + self.save_every_s

    def plan_saves(self, every_s: float, at: float) -> None:
        self.save_every_s, self.save_at = every_s, at + every_s

    def request_save(self) -> None:
        self.save_requested, self.undisturbed = True, False

    def halt(self) -> None:
        self.halting, self.undisturbed = True, False

    def next_snapshots(self) -> list[tuple[float, SnapshotAt]]:
        """The snapshots before its next step is done, and in how many seconds."""
        done = self.step
        return [((x.after_steps - done) * self.step_s, x) for x in self.snapshots if done < x.after_steps <= done + 1]

    def saved(self, at: float) -> e.CheckpointSaved:
        self.saved_step, self.save_requested = self.step, False
        if self.save_every_s is not None:
            self.save_at = at + self.save_every_s
        order = self.order
        name = f"{order.job}/{self.step:06d}-{order.segment}"
        ref = CheckpointRef(
            job=order.job, step=self.step, name=name, size_bytes=self.checkpoint_bytes, digest="simulated"
        )
        return e.CheckpointSaved(
            at=at, segment=order.segment, job=order.job, step=self.step, ref=ref, took_s=self.save_s
        )


def follow_up(segment: SimSegment, now: float) -> Literal["step", "save", "hang"] | SegmentCause:
    """At a step boundary: train the next step, save, or end (and with which cause)."""
    order = segment.order
    begun_from = 0 if order.resume_from is None else order.resume_from.step
    reached = segment.step >= segment.until_step
    worth_saving = segment.saves and segment.step > max(begun_from, segment.saved_step)
    if worth_saving and (reached or segment.halting or segment.save_requested or now >= segment.save_at):
        return "save"
    segment.save_requested = False
    if reached:
        return "completed" if segment.exits else "reached"
    if segment.halting:
        return "halted"
    if segment.trouble is not None:
        match segment.trouble(order.config, order.segment, segment.step):
            case "fail":
                return "failed"
            case "hang":
                return "hang"
            case None:
                pass
    return "step"
