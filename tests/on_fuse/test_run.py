"""A whole run in a shared folder: driven through one mount, looked at and stopped through another."""

import subprocess
import sys
import time

import pytest

from shoestring.testing.slowness import PATIENCE_S

pytestmark = pytest.mark.heavy

SHOESTRING = [sys.executable, "-c", "from shoestring.cli import main; main()"]
STUDY = """
import time
import shoestring as ss

def train(trial):
    for step in trial.steps():
        time.sleep(0.05)
        trial.report(loss=1 / step + trial["lr"])

ss.tune(train, space={"lr": ss.uniform(0, 1)}, minimize="loss", trials=500, max_steps=20)
"""


def shoestring(*words, **options):
    return subprocess.run(
        [*SHOESTRING, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **options
    )


def test_a_run_is_looked_at_and_stopped_from_another_computer(mounts, tmp_path):
    (tmp_path / "study.py").write_text(STUDY)
    here, there = (["--store", str(side / "runs")] for side in (mounts.here, mounts.there))
    run = subprocess.Popen(
        [*SHOESTRING, "run", "study.py", *here], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    patience, seen = time.monotonic() + PATIENCE_S, []
    while len(set(seen)) < 3:
        assert time.monotonic() < patience, run.stderr.read()
        assert run.poll() is None, run.stderr.read()
        status = shoestring("status", "study", *there)
        if status.returncode == 0:
            seen.append(status.stdout.splitlines()[0])
            assert seen[-1].startswith("study: running")
        else:
            assert not seen, status.stderr
        time.sleep(0.5)
    second = shoestring("run", "study.py", *there, cwd=tmp_path)
    assert second.returncode == 2
    assert "is running this study" in second.stderr
    stopped = shoestring("stop", "study", *there)
    assert stopped.returncode == 0, stopped.stderr
    out, err = run.communicate(timeout=PATIENCE_S)
    assert "which other computers may share" in err
    report = shoestring("report", "study", *there)
    assert report.returncode == 0, report.stderr
    assert "total" in report.stdout
    assert "total" in out
