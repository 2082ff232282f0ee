"""Run folders of earlier releases open, report and resume, for ever.

Each archive holds whole folders as they lay on disk: journal, market, leases, segments, checkpoints, submissions. To be
looked at they are moved elsewhere, as a user's project may be; to be resumed they are put back where they were.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import shoestring as ss
from shoestring.cli.main import cli
from shoestring.client import Client
from shoestring.runs.folder import RunFolder
from shoestring.server.submissions import read_submission
from shoestring.server.tokens import FILE, add_token
from shoestring.testing.slowness import PATIENCE_S
from tests.old_runs.make import CLI, KINDS, PLACE

RELEASES = sorted(path for path in Path(__file__).parent.glob("release_*") if path.is_dir())
ARCHIVES = [archive for release in RELEASES for archive in sorted(release.glob("*.tar.gz"))]
PROGRAMS = [archive for archive in ARCHIVES if archive.name != "service.tar.gz"]


def kind_of(archive: Path) -> str:
    return archive.name.removesuffix(".tar.gz")


def named(archive: Path) -> str:
    return f"{archive.parent.name}-{kind_of(archive)}"


class Project:
    """A user's folder with runs of an earlier release in it."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.kind, self.folder = kind_of(archive), folder
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        self.facts = json.loads((folder / "facts.json").read_text())
        self.store = folder / "runs"

    def shoestring(self, *words: str) -> str:
        """The command in this process, which has loaded all it needs already."""
        with contextlib.chdir(self.folder):
            done = CliRunner().invoke(cli, [*words, "--store", str(self.store)], prog_name="shoestring")
        assert done.exit_code == 0, f"{words}: {done.output}"
        return done.stdout

    def started(self, *words: str) -> None:
        """The command as a process of its own, as users start it."""
        command = [*CLI, *words, "--store", str(self.store)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"

    def run(self, name: str) -> ss.Study:
        return ss.Study.in_folder(RunFolder(self.store / name))


@pytest.fixture(params=ARCHIVES, ids=named)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    return Project(request.param, tmp_path)


@pytest.fixture(params=PROGRAMS, ids=named)
def in_place(request: pytest.FixtureRequest) -> Iterator[Project]:
    """Where it was made. One test at a time: the folder is the same for all."""
    PLACE.mkdir(exist_ok=True)
    folder = PLACE / kind_of(request.param)
    with open(PLACE / f"{folder.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield Project(request.param, folder)
        shutil.rmtree(folder)


def test_every_kind_of_run_is_kept() -> None:
    assert RELEASES
    for release in RELEASES:
        assert {kind_of(path) for path in release.iterdir()} == {*KINDS, "service"}


@pytest.mark.parametrize("name", ["finished", "halfway"])
def test_it_opens_and_says_what_it_said(project: Project, name: str) -> None:
    study, facts = project.run(name), project.facts[name]
    assert study.state.phase == facts["phase"]
    if study.state.concluded:  # a recorded sentence: others are today's
        assert study.state.ending == facts["ending"]
    assert study.status == ("completed" if name == "finished" else "paused")
    assert len(study.trials) == facts["trials"]
    assert (None if study.best is None else study.best.value) == facts["best"]
    assert {job: record.step for job, record in study.state.jobs.items()} == facts["steps"]
    assert study.state.spent_usd == facts["spent_usd"]


def test_every_command_reads_it(project: Project) -> None:
    for name in ("finished", "halfway"):
        assert name in project.shoestring("status", name)
        project.shoestring("report", name)
        project.shoestring("report", name, "--html", str(project.folder / f"{name}.html"))
        assert "<html" in (project.folder / f"{name}.html").read_text()
        assert project.shoestring("why", "0", name)
        assert json.loads(project.shoestring("export", name, "--format", "json"))


def test_a_half_way_run_is_resumed_to_its_end(in_place: Project) -> None:
    project = in_place
    before = project.facts["halfway"]
    recorded = list(project.run("halfway").entries())
    project.started("run", f"{project.kind}.py", "--name", "halfway")
    study = project.run("halfway")
    assert study.state.concluded
    assert study.status == "completed"
    assert len(study.trials) == project.facts["finished"]["trials"]
    assert study.best is not None
    entries = list(study.entries())
    assert entries[: len(recorded)] == recorded
    assert len(entries) > len(recorded)
    assert study.state.spent_usd >= before["spent_usd"]


def test_a_finished_run_is_shown_and_not_run_again(in_place: Project) -> None:
    project = in_place
    entries = len(list(project.run("finished").entries()))
    project.shoestring("run", f"{project.kind}.py", "--name", "finished")
    assert len(list(project.run("finished").entries())) == entries


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[Project, Client]]:
    project = Project(ARCHIVES[0].with_name("service.tar.gz"), tmp_path)
    for name in ("finished", "halfway"):  # the folder in which submitted commands run has moved, too
        path = project.store / name / "submitted.json"
        path.write_text(path.read_text().replace(str(PLACE / "service"), str(project.folder)))
    token = add_token(project.store / FILE, "tester")
    serving = subprocess.Popen(
        [*CLI, "serve", "--store", str(project.store), "--port", "0"],
        cwd=project.folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    address = serving.stdout.readline().split(" on ")[1].partition(",")[0]
    yield project, Client(address, token)
    serving.terminate()
    serving.wait(PATIENCE_S)


def test_a_service_resumes_what_was_submitted_to_an_earlier_release(service: tuple[Project, Client]) -> None:
    project, client = service
    assert read_submission(RunFolder(project.store / "halfway")) is not None
    assert {run["id"] for run in client.list()} == {"finished", "halfway"}
    client.resume("halfway")
    client.wait("halfway")
    results = list(client.results("halfway"))
    assert len(results) == project.facts["finished"]["trials"]
    assert all(row["status"] == "finished" for row in results)
    assert project.run("halfway").state.concluded


def test_a_run_of_an_earlier_release_can_be_simulated_from(project: Project) -> None:
    """What an earlier release recorded is what a forecast of today learns from."""
    if project.kind == "service":
        pytest.skip("its spec came over HTTP, so there is no file to simulate")
    shutil.copytree(project.store / "finished", project.store / project.kind)
    assert project.shoestring("simulate", f"{project.kind}.py", "--budget", "5", "--deadline", "10d")
