"""The lifecycle of a run in the service: submitted, queued, run, watched, cancelled, resumed, and across restarts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys

import pytest

from shoestring.client import ServiceError
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.slowness import PATIENCE_S
from tests.server.conftest import STUDY
from tests.server.serving import Serving, eventually

JOB = """
import os, sys, time
while sys.argv[1] == "gated" and sys.argv[2] != "0" and not os.path.exists("go"):
    time.sleep(0.05)
open("done", "a").write(sys.argv[2] + " ")
"""


def bag(name: str, jobs: int, *, gated: bool = False) -> dict[str, object]:
    """Jobs that record their number. Gated, all but the first wait until the test releases them."""
    command = [sys.executable, "-c", JOB, "gated" if gated else "free", "{x}"]
    return {"name": name, "command": command, "over": {"x": list(range(jobs))}}


def let_go(serving: Serving) -> None:
    (serving.folder / "go").touch()


def done(serving: Serving) -> list[str]:
    file = serving.folder / "done"
    return sorted(file.read_text().split(), key=int) if file.exists() else []


def finished(serving: Serving, run: str) -> int:
    progress = serving.client().get(run)["progress"]
    return progress["by_status"].get("finished", 0) if progress else 0


def test_a_bag_is_submitted_run_and_fetched(serving: Serving) -> None:
    client = serving.client()
    run = client.submit(bag("small", 3))
    assert (run["id"], run["status"], run["progress"]) == ("small", "queued", None)
    over = client.wait("small", timeout_s=PATIENCE_S)
    assert over["status"] == "completed"
    assert over["progress"]["by_status"] == {"finished": 3}
    assert [(trial["trial"], trial["config"]) for trial in client.results("small")] == [(i, {"x": i}) for i in range(3)]
    assert client.receipt("small")["charged_usd"] == 0
    assert any("given by the user" in line for line in client.why("small", 1))
    assert done(serving) == ["0", "1", "2"]
    # It is a run like any other: the folder tells the same without the service.
    study = Study.in_folder(RunFolder(serving.store / "small"))
    assert study.status == "completed"
    assert len(list(client.journal("small"))) == len(list(study.entries())) == over["progress"]["entries"]


def test_a_simulated_study_is_stored_under_its_own_name(serving: Serving) -> None:
    client = serving.client()
    assert client.submit(STUDY, mode="simulate")["id"] == "study-simulated"
    over = client.wait("study-simulated", timeout_s=PATIENCE_S)
    study = Study.in_folder(RunFolder(serving.store / "study-simulated"))
    assert over["progress"]["best"]["trial"] == study.best.number
    assert client.receipt("study-simulated") == json.loads(json.dumps(study.receipt.to_plain()))


def test_a_bag_from_a_table_on_the_services_machine_returns_the_output_of_its_jobs(serving: Serving) -> None:
    table = serving.folder / "jobs.csv"
    table.write_text("x,word\n1,one\n2,two\n")
    client = serving.client()
    client.submit({"name": "tabled", "command": "echo {word} {x}", "table": "jobs.csv"})
    table.unlink()  # what was submitted stays what it was
    assert client.wait("tabled", timeout_s=PATIENCE_S)["status"] == "completed"
    assert [(job["config"]["x"], job["output"], job["attempts"]) for job in client.results("tabled")] == [
        (1, "one 1", 1),
        (2, "two 2", 1),
    ]


def test_the_same_submission_returns_the_same_run_and_another_is_refused(unstarted: Serving) -> None:
    serving = unstarted
    serving.start("--max-concurrent-runs", "0")
    client = serving.client()
    first = client.submit(bag("one", 2))
    assert client.submit(bag("one", 2)) == first
    with pytest.raises(ServiceError, match="there is another run 'one'") as refused:
        client.submit(bag("one", 3))
    assert refused.value.status == 409


def test_runs_are_queued_and_a_queued_run_can_be_cancelled(unstarted: Serving) -> None:
    serving = unstarted
    serving.start("--max-concurrent-runs", "1")
    client = serving.client()
    for name in ("first", "second", "third"):
        client.submit(bag(name, 2, gated=True))
    eventually(lambda: client.get("first")["status"] == "running")
    assert [client.get(name)["ahead"] for name in ("first", "second", "third")] == [None, 0, 1]
    assert client.cancel("second")["status"] == "cancelled"
    assert client.get("third")["ahead"] == 0
    let_go(serving)
    assert client.wait("third", timeout_s=PATIENCE_S)["status"] == "completed"
    assert client.get("first")["status"] == "completed"
    serving.stop()
    serving.start()
    assert serving.client().get("second")["status"] == "cancelled"


def test_an_active_run_is_cancelled_for_good(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("long", 4, gated=True))
    eventually(lambda: (client.get("long")["progress"] or {}).get("by_status", {}).get("running"))
    client.cancel("long")
    over = client.wait("long", timeout_s=PATIENCE_S)
    assert (over["status"], over["progress"]["ending"]) == ("cancelled", "stopped by the user")
    assert client.cancel("long")["status"] == "cancelled"
    eventually(lambda: serving.left_behind() == [serving.process.pid])


def test_a_service_killed_with_its_controllers_resumes_every_run(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("killed", 6, gated=True))
    client.submit(bag("waiting", 1))
    eventually(lambda: finished(serving, "killed") >= 1)
    controller = serving.controller_of("killed")
    assert controller is not None
    serving.kill()
    os.kill(controller, signal.SIGKILL)
    let_go(serving)
    serving.start()
    client = serving.client()
    for name, jobs in (("killed", 6), ("waiting", 1)):
        over = client.wait(name, timeout_s=PATIENCE_S)
        assert (over["status"], over["progress"]["by_status"]) == ("completed", {"finished": jobs})


def test_controllers_survive_a_killed_service_and_are_adopted(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("adopted", 4, gated=True))
    eventually(lambda: client.get("adopted")["status"] == "running")
    controller = serving.controller_of("adopted")
    serving.kill()
    serving.start("--max-concurrent-runs", "1")
    client = serving.client()
    assert serving.controller_of("adopted") == controller
    assert client.submit(bag("next", 1))["ahead"] == 0, "the one taken over has the only place"
    let_go(serving)
    assert client.wait("adopted", timeout_s=PATIENCE_S)["progress"]["by_status"] == {"finished": 4}
    assert client.wait("next", timeout_s=PATIENCE_S)["status"] == "completed"
    assert done(serving) == ["0", "0", "1", "2", "3"], "each job of both bags once"


def test_a_controller_that_is_killed_is_replaced(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("crashes", 4, gated=True))
    eventually(lambda: finished(serving, "crashes") >= 1)
    controller = serving.controller_of("crashes")
    assert controller is not None
    os.kill(controller, signal.SIGKILL)
    let_go(serving)
    over = client.wait("crashes", timeout_s=PATIENCE_S)
    assert (over["status"], over["trouble"]) == ("completed", "")


def test_shutting_down_pauses_runs_and_leaves_no_process(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("paused", 3, gated=True))
    eventually(lambda: (client.get("paused")["progress"] or {}).get("by_status", {}).get("running"))
    assert serving.stop() == 0
    assert serving.left_behind() == []
    assert Study.in_folder(RunFolder(serving.store / "paused")).status == "paused"
    let_go(serving)
    serving.start()
    assert serving.client().wait("paused", timeout_s=PATIENCE_S)["progress"]["by_status"] == {"finished": 3}


def test_a_run_that_pauses_by_itself_says_why_and_can_be_resumed(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("odd", 2, gated=True))
    eventually(lambda: client.get("odd")["status"] == "running")
    controller = serving.controller_of("odd")
    assert controller is not None
    os.kill(controller, signal.SIGINT)  # as a person would at that machine
    assert client.wait("odd", timeout_s=PATIENCE_S)["status"] == "paused"
    let_go(serving)
    assert client.resume("odd")["status"] in ("queued", "starting", "running")
    assert client.wait("odd", timeout_s=PATIENCE_S)["status"] == "completed"
    with pytest.raises(ServiceError, match="nothing to resume"):
        client.resume("odd")


def test_a_run_that_cannot_be_started_says_why(unstarted: Serving) -> None:
    serving = unstarted
    serving.start("--max-concurrent-runs", "0")
    program = serving.folder / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    serving.client().submit({"name": "gone", "command": "./program", "over": {"x": [1]}})
    serving.stop()
    program.rename(serving.folder / "elsewhere")
    serving.start()
    found = serving.client().wait("gone", timeout_s=PATIENCE_S)
    assert (found["status"], "there is no program './program'" in found["trouble"]) == ("failed", True), found
    (serving.folder / "elsewhere").rename(program)
    serving.client().resume("gone")
    assert serving.client().wait("gone", timeout_s=PATIENCE_S)["status"] == "completed"


def test_a_run_cancelled_before_a_crash_is_stopped_by_the_next_service(serving: Serving) -> None:
    client = serving.client()
    client.submit(bag("cut", 3, gated=True))
    eventually(lambda: (client.get("cut")["progress"] or {}).get("by_status", {}).get("running"))
    controller = serving.controller_of("cut")
    assert controller is not None
    os.kill(controller, signal.SIGSTOP)  # it hears of nothing any more
    client.cancel("cut")
    serving.kill()
    os.kill(controller, signal.SIGKILL)
    serving.start()
    over = serving.client().wait("cut", timeout_s=PATIENCE_S)
    assert (over["status"], over["progress"]["ending"]) == ("cancelled", "stopped by the user")


def test_a_damaged_journal_is_a_status_and_affects_no_other_run(shared: Serving) -> None:
    broken = shared.store / "broken"
    broken.mkdir()
    (broken / "journal.sqlite").write_bytes(b"not a journal")
    found = shared.client().get("broken")
    assert (found["status"], "is not a journal" in found["trouble"]) == ("damaged", True)
    for part in ("results", "journal", "events"):
        assert shared.ask("GET", f"/v1/runs/broken/{part}")[0] == 200
    assert shared.ask("GET", "/v1/runs/broken/receipt")[0] == 409
    assert shared.client().get("study-simulated")["status"] == "completed"


def test_a_run_whose_folder_is_deleted_is_forgotten(shared: Serving) -> None:
    shared.client().submit(bag("brief", 1))
    shutil.rmtree(shared.store / "brief")
    with pytest.raises(ServiceError, match="there is no run"):
        shared.client().get("brief")
    assert shared.client().submit(bag("brief", 2))["status"] == "queued"


def test_runs_started_without_the_service_are_shown_and_left_alone(shared: Serving) -> None:
    theirs = shared.store / "theirs"
    theirs.mkdir()
    for file in ("journal.sqlite", "journal.sqlite-wal"):
        source = shared.store / "study-simulated" / file
        if source.exists():
            (theirs / file).write_bytes(source.read_bytes())
    found = shared.client().get("theirs")
    assert (found["status"], found["submitted_at"]) == ("completed", None)
    with pytest.raises(ServiceError, match="was not submitted here"):
        shared.client().cancel("theirs")
    assert "theirs" in [run["id"] for run in shared.client().list()]


def test_jobs_of_a_submitted_bag_that_print_progress_run_to_their_own_end(serving: Serving) -> None:
    job = """import sys; [print('{"energy": -%d}' % i) for i in (1, 2, 3)]; open("ended-" + sys.argv[1], "w")"""
    client = serving.client()
    client.submit(
        {"name": "prints", "command": [sys.executable, "-c", job, "{x}"], "over": {"x": [1, 2]}, "job_takes": "1m"}
    )
    over = client.wait("prints", timeout_s=PATIENCE_S)
    assert over["progress"]["by_status"] == {"finished": 2}
    assert [row["metrics"]["energy"] for row in client.results("prints")] == [-3.0, -3.0]
    assert sorted(path.name for path in serving.folder.glob("ended-*")) == ["ended-1", "ended-2"]
