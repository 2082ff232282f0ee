"""The laws of gangs: several worker processes, on one machine or more, that train one trial."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from shoestring.kernel.events import CheckpointSaved, JobReported, LeaseEnded, SegmentEnded
from shoestring.testing.backend_bench import BackendBench
from shoestring.testing.backend_rig import L0, L1, S0, S1, S2, S3, ObservedEvents

_COUNTS_ITS_HOSTS = """
import json, os
hosts = [host.rpartition(":") for host in os.environ["SHOESTRING_HOSTS"].split(",")]
lines = open(os.environ["SHOESTRING_HOSTFILE"]).read().split()
named = [name for name, _, slots in hosts for _ in range(int(slots))]
found = dict(slots=len(named), same=float(named == lines), ranks=float("RANK" in os.environ))
print(json.dumps(dict(step=1, loss=0.5, **found)))
"""
_LEAVES_A_PROCESS = """
import json, subprocess, time
subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(json.dumps(dict(step=1, loss=0.5)), flush=True)
time.sleep(1000)
"""


class GangLaws(BackendBench):
    """A part of `BackendSuite`."""

    def test_a_gang_learns_the_same_as_one_worker_on_all_the_data(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "together")
        observed.rent()
        for segment, slots in ((S0, 1), (S1, 3)):
            observed.start(segment, until_step=4, slots=slots)
            ended = observed.end_of(segment)
            assert (ended.cause, ended.step) == ("reached", 4), ended.detail
        alone, all_together = observed.metrics(S0), observed.metrics(S1)
        assert [step["world_size"] for step in all_together] == [3.0] * 4
        for one, many in zip(alone, all_together, strict=True):
            assert abs(one["loss"] - many["loss"]) < 1e-9
        assert observed.steps(S1) == [1, 2, 3, 4], "only rank 0 reports"
        assert len(observed.seen(CheckpointSaved)) == 2, "only rank 0 saves"
        self.finish(observed)

    def test_a_gang_resumes_with_more_or_fewer_workers_from_the_same_checkpoints(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "together")
        observed.rent()
        observed.start(S3, until_step=6)
        observed.end_of(S3)
        ref = None
        for segment, until_step, slots in ((S0, 2, 1), (S1, 4, 2), (S2, 6, 1)):
            observed.start(segment, until_step=until_step, slots=slots, resume_from=ref)
            observed.end_of(segment)
            ref = observed.seen(CheckpointSaved)[-1].ref
        undisturbed = [step["loss"] for step in observed.metrics(S3)]
        moved = [step["loss"] for segment in (S0, S1, S2) for step in observed.metrics(segment)]
        assert len(moved) == 6
        for one, other in zip(undisturbed, moved, strict=True):
            assert abs(one - other) < 1e-9
        self.finish(observed)

    def test_workers_find_their_ranks_in_the_environment(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "roll_call")
        observed.rent(L0)
        observed.rent(L1)
        observed.start(until_step=1, shares={L0: 1, L1: 2})
        observed.wait_for(SegmentEnded)
        found = observed.metrics(S0)[0]
        ranks = [[found[f"{name}_{rank}"] for rank in range(3)] for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
        assert ranks == [[0, 1, 2], [0, 0, 1], [1, 2, 2]]
        assert found["slots"] == 3
        self.finish(observed)

    def test_a_failing_worker_fails_its_gang_with_its_error(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "gang_with_a_failure")
        observed.rent()
        observed.start(S0, slots=2, it="raises")
        ended = observed.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("failed", 1)
        assert ended.detail.startswith("rank 1: ValueError: a bad batch (user_code.py:")
        observed.start(S1, slots=2, it="is killed")
        ended = observed.end_of(S1)
        assert (ended.cause, ended.detail) == ("failed", "rank 1: user code was killed by SIGKILL (out of memory?)")
        self.finish(observed)

    def test_a_worker_other_than_rank_0_may_return_early(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "gang_with_a_failure")
        observed.rent()
        observed.start(slots=2, it="returns")
        ended = observed.wait_for(SegmentEnded)
        assert (ended.cause, ended.step) == ("reached", 3)
        self.finish(observed)

    def test_a_gang_saves_and_stops_on_a_notice_to_one_of_its_machines(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "together", revoked={L1: (200.0, 400.0)})
        observed.rent(L0)
        observed.rent(L1)
        observed.start(until_step=10_000, shares={L0: 1, L1: 1}, step_s=0.05)
        ended = observed.wait_for(SegmentEnded)
        assert ended.cause == "halted", ended.detail
        assert observed.seen(CheckpointSaved)[-1].step == ended.step == observed.steps()[-1]
        assert observed.wait_for(LeaseEnded).lease == L1
        assert list(observed.backend.inventory()) == [L0]
        assert not self.left_running(observed), "the other workers may wait for one that has stopped"
        self.finish(observed)

    def test_a_gang_is_lost_with_any_of_its_machines(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "together", revoked={L1: (200.0, 200.0)})
        observed.rent(L0)
        observed.rent(L1)
        observed.start(until_step=10_000, shares={L0: 1, L1: 1}, step_s=0.01)
        ended = observed.wait_for(SegmentEnded)
        assert ended.cause == "lost"
        assert observed.wait_for(LeaseEnded).cause == "revoked"
        assert not self.left_running(observed)
        self.finish(observed)

    def test_a_halted_gang_saves_and_stops(self, tmp_path: Path) -> None:
        self.needs_gangs()
        observed = self.observe(tmp_path, "together")
        observed.rent()
        observed.start(until_step=10_000, slots=2, step_s=0.01)
        observed.wait_for(JobReported)
        observed.backend.signal(S0, "halt", 1000.0)
        ended = observed.wait_for(SegmentEnded)
        assert ended.cause == "halted", ended.detail
        assert observed.seen(CheckpointSaved)[-1].step == ended.step
        assert not self.left_running(observed)
        self.finish(observed)

    def launch_once(self, tmp_path: Path, program: str) -> ObservedEvents:
        """Start a program once on two machines, with a slot on one and two on the other."""
        rig = replace(self.rig(tmp_path), command=(sys.executable, "-c", program))
        observed = ObservedEvents(self.make(rig), rig)
        observed.rent_together(L0, L1)
        observed.start(until_step=1, shares={L0: 1, L1: 2})
        return observed

    def test_a_program_that_is_launched_once_knows_all_of_its_machines(self, tmp_path: Path) -> None:
        observed = self.launch_once(tmp_path, _COUNTS_ITS_HOSTS)
        ended = observed.end_of(S0)
        assert ended.cause == "reached", ended.detail
        assert observed.metrics(S0) == [{"loss": 0.5, "slots": 3.0, "same": 1.0, "ranks": 0.0}]
        self.finish(observed)

    def test_nothing_of_a_program_that_is_launched_once_outlasts_it(self, tmp_path: Path) -> None:
        self.needs_separate_process()
        observed = self.launch_once(tmp_path, _LEAVES_A_PROCESS)
        observed.wait_for(JobReported)
        observed.backend.signal(S0, "halt", 20.0)
        assert observed.end_of(S0).cause in ("halted", "reached")
        assert not self.left_running(observed)
        self.finish(observed)
