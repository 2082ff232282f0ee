"""SciSpot on nodes of a real Slurm that have a price and may be preempted: what is observed is what counts."""

import math

import pytest

from shoestring.kernel.decisions import PlanSaves, RequestLease, StartSegment
from shoestring.kernel.events import CheckpointSaved, LeaseEnded, LeaseGranted
from shoestring.report.study import Study
from tests.on_slurm.at_work import nothing_is_left
from tests.on_slurm.small_cluster import wait_until
from tests.on_slurm.test_bag import Controller, every_job_completed_once

pytestmark = pytest.mark.heavy

SPEEDUP = 60.0
NODES = """
[[nodes]]
label = "steady"
spot = true
usd_per_hour = 0.36
max_life = "24h"

[[nodes]]
label = "cloud"
usd_per_hour = 3.6
"""


def decisions(folder, kind):
    return [decision for entry in folder.entries() for decision in entry.decisions if isinstance(decision, kind)]


def events(folder, kind):
    return [entry.event for entry in folder.entries() if isinstance(entry.event, kind)]


def saved_on(folder, node_of):
    """A node on which a job was saved by plan, if there is one."""
    leases = {start.segment: start.leases[0] for start in decisions(folder, StartSegment)}
    return next((node_of(leases[saved.segment]) for saved in events(folder, CheckpointSaved)), None)


def test_scispot_saves_on_spot_nodes_and_bills_what_slurm_gave(tmp_path, slurm):
    """Found by setting up a cluster by the docs: nodes were free and never spot, so that nothing was ever saved."""
    (tmp_path / "nodes.toml").write_text(NODES)
    more = ["--market", str(tmp_path / "nodes.toml"), "--recipe", "scispot", "--speedup", str(SPEEDUP)]
    more += ["--budget", "20", "--deadline", "20h"]
    with Controller(tmp_path, on="slurm", jobs=6, step_s=4.0, more=more) as controller:
        folder = controller.folder

        def node_of(lease):
            return next((job.split()[-1] for job in slurm.jobs() if job.split()[3] == lease), None)

        controller.run_for(2)
        wait_until(lambda: folder.exists() and saved_on(folder, node_of), "nothing is saved on a spot node", 180)
        victim = saved_on(folder, node_of)
        slurm.kill_node(victim)
        controller.kill()
        slurm.start_node(victim)
        controller.finish()
    every_job_completed_once(folder, 6)
    nothing_is_left(slurm, folder.path)
    assert {request.offer.machine for request in decisions(folder, RequestLease)} == {"steady"}, "a tenth of the price"
    assert decisions(folder, PlanSaves)
    assert any(start.resume_from is not None for start in decisions(folder, StartSegment)), "back to step 0"
    granted = {event.lease: event for event in events(folder, LeaseGranted)}
    for ended in events(folder, LeaseEnded):
        grant = granted[ended.lease]
        began = grant.at if grant.billed_from is None else grant.billed_from
        assert grant.at - 60 * SPEEDUP < began <= grant.at
        assert math.isclose(ended.charged_usd, 0.36 * max(60.0, ended.at - began) / 3600, rel_tol=1e-6)
    study = Study.in_folder(folder)
    assert math.isclose(study.spent, sum(event.charged_usd for event in events(folder, LeaseEnded)))
