"""The example with torch.distributed on a real Slurm: a trial is promoted to workers on two nodes, and trains on."""

import subprocess
import sys
from pathlib import Path

import pytest

from shoestring.kernel.decisions import StartSegment
from shoestring.kernel.events import JobReported
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.slowness import PATIENCE_S, slowness
from tests.on_slurm.at_work import nothing_is_left

pytestmark = pytest.mark.heavy

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_gang.py"


def test_a_promoted_trial_trains_on_across_two_nodes(tmp_path, slurm):
    pytest.importorskip("torch")
    command = [sys.executable, "-c", "from shoestring.cli import main; main()", "run", str(EXAMPLE)]
    command += ["--on", "slurm", "--store", str(tmp_path), "--deadline", f"{80 * slowness():.0f}s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=160 * slowness() + PATIENCE_S)
    assert done.returncode == 0, done.stderr
    folder = RunFolder(tmp_path / "torch-gang")
    entries = list(Study.in_folder(folder).entries())
    starts = [x for entry in entries for x in entry.decisions if isinstance(x, StartSegment)]
    wide = next(start for start in starts if len(start.leases) == 2)
    assert wide.resume_from is not None
    reports = [entry.event for entry in entries if isinstance(entry.event, JobReported)]
    before = [report for report in reports if report.job == wide.job and report.segment != wide.segment]
    after = [report for report in reports if report.segment == wide.segment]
    assert {report.metrics["workers"] for report in before} == {1.0}
    assert {report.metrics["workers"] for report in after} == {float(wide.slots)}
    assert after[0].step == wide.resume_from.step + 1
    assert after[-1].metrics["loss"] < before[0].metrics["loss"]
    nothing_is_left(slurm, folder.path)
