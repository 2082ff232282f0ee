"""A run on Slurm that the service drives: Slurm calls the service, which passes the callback to the run."""

import json

import pytest

from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from tests.docs.markdown import ROOT, blocks
from tests.on_slurm.at_work import nothing_is_left
from tests.on_slurm.small_cluster import wait_until

pytest.importorskip("starlette")
pytestmark = pytest.mark.heavy

BAG = {"kind": "bag", "name": "bag", "command": "echo {seed}", "over": {"seed": [1, 2, 3]}, "on": "slurm"}


@pytest.fixture
def serving(tmp_path, slurm):
    """A service, and a Slurm that calls it as the documentation says."""
    from tests.server.serving import Serving

    server = Serving(tmp_path)
    server.start()
    known = slurm.folder / "shoestring.curl"
    known.write_text(
        f'url = "http://127.0.0.1:{server.port}/v1/callbacks/slurm"\nheader = "Authorization: Bearer {server.token}"\n'
    )
    script = next(block.text for block in blocks(ROOT / "docs" / "slurm.md") if block.file == "jobcomp-to-service")
    before = (slurm.folder / "jobcomp").read_text()
    (slurm.folder / "jobcomp").write_text(script.replace("/etc/slurm/shoestring.curl", str(known)))
    yield server
    (slurm.folder / "jobcomp").write_text(before)
    server.end()


def test_slurm_calls_the_service_when_jobs_of_a_bag_end(serving, slurm):
    client = serving.client()
    client.submit(BAG)
    assert client.wait("bag", timeout_s=120)["status"] == "completed"
    folder = RunFolder(serving.store / "bag")
    assert {job.status for job in Study.in_folder(folder).state.jobs.values()} == {"finished"}
    nothing_is_left(slurm, folder.path)
    wait_until(lambda: list((folder.path / "callbacks").glob("*.json")), "Slurm does not call")
    for path in (folder.path / "callbacks").glob("*.json"):
        callback = json.loads(path.read_text())
        assert (callback["run"], callback["job_id"]) == ("bag", path.stem)
        assert callback["nodes"] in slurm.steady
