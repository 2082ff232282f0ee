"""SciSpot as its paper runs it, on one computer: a bag on spot nodes of a real Slurm, at real prices.

    python -m tests.on_slurm.spot_bag --jobs 200 --kills 10

A Slurm with steady and cloud nodes and its own accounts is started; `nodes.toml` says what the nodes cost and that all
may be preempted; `shoestring bag --recipe scispot` runs commands in gangs of one and two machines. A market hour is a
minute. Nodes are killed at ages drawn from recorded lifetimes of Google's preemptible VMs, and the controller is killed
with -9 again and again. Then: all results are right, saves were planned, nothing is left in Slurm, and each lease was
billed for the time that Slurm's accounts, and of cloud nodes the log of their power, have of it.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.datasets import data_folder
from shoestring.host.messages import SIGNED, HostSignature
from shoestring.kernel.decisions import PlanSaves, StartSegment
from shoestring.kernel.events import JobReported, LeaseEnded, LeaseGranted
from shoestring.models.lifetimes.records import read_records
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.slowness import slowness
from shoestring.worker.task import read_json
from tests.on_slurm import accounts, small_cluster
from tests.on_slurm.chain import expected
from tests.on_slurm.small_cluster import SmallCluster

SPEEDUP = 60.0
STEPS, STEP_S = 10, 1.0
PLACES = 6
"""Nodes: a job in a gang has its machines to itself."""
NODES = """
[[nodes]]
label = "steady"
spot = true
usd_per_hour = 0.10
list_usd_per_hour = 0.30
max_life = "24h"

[[nodes]]
label = "cloud"
spot = true
usd_per_hour = 0.09
list_usd_per_hour = 0.30
max_life = "24h"
"""
APART_S = 2.0
"""Between our bills and what Slurm says, on a computer that is not busy."""
CHAIN = Path(__file__).with_name("chain.py")


@dataclass
class Reaper:
    """Kills nodes at the ages of recorded machines, and brings others up in their place."""

    cluster: SmallCluster
    ages_s: list[float]
    rng: random.Random
    due: dict[tuple[str, str], float] = field(default_factory=dict)
    """(job, node) -> when it is killed."""
    killed: int = 0

    def look(self) -> None:
        for line in self.cluster.jobs():
            words = line.split()
            if len(words) < 5 or words[2] != "RUNNING":
                continue
            for node in self.cluster.query("scontrol", "show", "hostnames", words[-1]).split():
                due = self.due.setdefault((words[0], node), time.monotonic() + self.rng.choice(self.ages_s) / SPEEDUP)
                if time.monotonic() >= due:
                    self.due[words[0], node] = float("inf")
                    self.killed += 1
                    self.cluster.kill_node(node)
                    self.cluster.replace_node(node)


def play(folder: Path, *, jobs: int, kills: int, seed: int = 0) -> list[str]:
    """What was seen, in lines; AssertionError for what does not hold."""
    records = read_records(data_folder() / "google_preemptible_2019.csv.gz")
    ages_s = [record.seconds for record in records if record.revoked]
    cluster = SmallCluster(folder, steady=4, cloud=2, cpus=3, accounts=accounts.Accounts(folder))
    try:
        (folder / "nodes.toml").write_text(NODES)
        lines = []
        for machines in (1, 2):
            run = RunFolder(folder / "runs" / f"gangs-of-{machines}")
            reaper = Reaper(cluster, ages_s, random.Random(seed + machines))
            _run_to_the_end(folder, cluster, reaper, run.path.name, machines, jobs // 2, kills // 2)
            lines += [f"-- gangs of {machines}", *_check(run, cluster, reaper, machines, jobs // 2, kills // 2)]
        return lines
    finally:
        cluster.end()


def _run_to_the_end(
    folder: Path, cluster: SmallCluster, reaper: Reaper, name: str, machines: int, jobs: int, kills: int
) -> None:
    command = [sys.executable, "-c", "from shoestring.cli import main; main()", "bag", "--on", "slurm"]
    command += ["--market", str(folder / "nodes.toml"), "--recipe", "scispot", "--gangs", str(machines), "--name", name]
    command += ["--speedup", str(SPEEDUP), "--budget", "50", "--deadline", "4d", "--job-takes", "10m"]
    command += ["--store", str(folder / "runs"), "--over", f"seed=0..{jobs - 1}", "--"]
    command += [sys.executable, str(CHAIN), "{seed}", str(STEPS), str(STEP_S)]
    every_s = max(5.0, jobs * STEPS * STEP_S / PLACES / machines / (kills + 1))
    for turn in range(kills + 1):
        with (folder / "controller.log").open("ab") as log:
            controller = subprocess.Popen(command, env=cluster.environment, stdout=log, stderr=log)
        until = time.monotonic() + (every_s if turn < kills else 1800.0)
        while controller.poll() is None and time.monotonic() < until:
            reaper.look()
            time.sleep(0.5)
        if controller.poll() is None:
            controller.send_signal(signal.SIGKILL)
            controller.wait()
            assert turn < kills, "the bag does not end"
        elif controller.returncode == 0:
            return
        else:
            raise AssertionError((folder / "controller.log").read_text()[-2000:])


def _check(run: RunFolder, cluster: SmallCluster, reaper: Reaper, machines: int, jobs: int, kills: int) -> list[str]:
    study = Study.in_folder(run)
    reported = [entry.event for entry in run.entries() if isinstance(entry.event, JobReported)]
    values = {study.state.jobs[event.job].config["seed"]: event.metrics["value"] for event in reported}
    assert {job.status for job in study.state.jobs.values()} == {"finished"}
    assert values == {seed: expected(seed, STEPS) for seed in range(jobs)}, "a result is wrong"
    small_cluster.wait_until(lambda: cluster.jobs() == [], "a job is left in Slurm")
    decisions = [decision for entry in run.entries() for decision in entry.decisions]
    plans = [decision for decision in decisions if isinstance(decision, PlanSaves)]
    assert plans, "no save was planned"
    starts = [decision for decision in decisions if isinstance(decision, StartSegment)]
    assert {len(start.leases) for start in starts} == {machines}
    return [
        f"{jobs} jobs, all results right; {len(starts)} starts, "
        f"{sum(x.resume_from is not None for x in starts)} of them from a checkpoint",
        f"{reaper.killed} nodes killed at recorded ages, the controller killed {kills} times",
        f"{len(plans)} plans of saves, the last: {plans[-1].why}",
        *_billed_as_accounted(run, cluster),
        str(study.receipt),
    ]


def _billed_as_accounted(run: RunFolder, cluster: SmallCluster) -> list[str]:
    """The time each lease is billed for: of steady nodes against the accounts of Slurm; of cloud nodes, which cost
    money while they start and until they are suspended, against the log of their power."""
    entries = list(run.entries())
    granted = {x.event.lease: x.event for x in entries if isinstance(x.event, LeaseGranted)}
    ended = {x.event.lease: x.event for x in entries if isinstance(x.event, LeaseEnded) and x.event.lease in granted}
    most_s = APART_S * slowness()
    small_cluster.wait_until(lambda: _all_suspended(cluster), "a cloud node is not suspended")

    def accounted(lease: str) -> list[accounts.AccountedJob]:
        jobs = cluster.accounts.jobs(cluster.environment)
        return [job for job in jobs if run.path.name in job.name and lease in job.comment.split()]

    steady_s, resumed_s, suspended_s = [0.0], [0.0], [0.0]
    for lease, end in ended.items():
        grant = granted[lease]
        began = grant.at if grant.billed_from is None else grant.billed_from
        host = read_json(run.path / "leases" / lease / SIGNED, HostSignature)
        began_wall = host.wall - (grant.at - began) / SPEEDUP
        ended_wall = began_wall + (end.at - began) / SPEEDUP
        if host.node in cluster.cloud:
            power = [(what, at) for what, node, at in cluster.power_log() if node == host.node]
            resumed_s.append(abs(began_wall - max(at for what, at in power if what == "resume" and at < host.wall)))
            suspended_s.append(min(at for what, at in power if what == "suspend" and at > began_wall) - ended_wall)
        else:
            small_cluster.wait_until(lambda lease=lease: accounted(lease), f"the end of {lease} is not accounted for")
            (job,) = accounted(lease)
            steady_s += [abs(began_wall - job.began_at), abs(ended_wall - job.ended_at)]
    assert max(steady_s) <= most_s, f"a lease is billed for another time than accounted: {sorted(steady_s)[-3:]}"
    assert max(resumed_s) <= most_s, f"a cloud node is billed from another time than it was resumed: {resumed_s}"
    return [
        f"{len(ended)} leases billed; of steady nodes as accounted by Slurm, at most {max(steady_s):.1f} s apart; "
        f"of {len(resumed_s) - 1} cloud nodes from when they were resumed, at most {max(resumed_s):.1f} s apart, and "
        f"suspended {min(suspended_s):.1f} to {max(suspended_s):.1f} s after the end of their bill",
    ]


def _all_suspended(cluster: SmallCluster) -> bool:
    latest = {node: what for what, node, _ in cluster.power_log()}
    return set(latest.values()) <= {"suspend"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.on_slurm.spot_bag", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10, help="of the controller")
    parser.add_argument("--seed", type=int, default=0, help="of the ages at which nodes are killed")
    options = parser.parse_args()
    small_cluster.install()
    small_cluster.install(accounts.PROGRAMS, accounts.PACKAGES)
    with tempfile.TemporaryDirectory(prefix="spot-bag-") as folder:
        os.chmod(folder, 0o755)
        began = time.monotonic()
        print("\n".join(play(Path(folder), jobs=options.jobs, kills=options.kills, seed=options.seed)))
        print(f"({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
