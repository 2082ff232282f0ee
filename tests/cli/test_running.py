"""The lifecycle of a run: resumed by the same command, with other budgets, stopped from other shells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shoestring.errors import SpecError, StorageError
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.slowness import PATIENCE_S
from tests.cli.prompt import Prompt, refused, until
from tests.mounts import said_to_be_on

SHOESTRING = [sys.executable, "-c", "from shoestring.cli import main; main()"]

SLOW = """
import os, time
def train(trial):
    for step in trial.steps():
        time.sleep(0.2 if os.path.exists("slow") else 0.03)
        trial.report(loss=1 / step + trial["lr"])
        with trial.save() as folder:
            if folder:
                (folder / "step").write_text(str(step))
"""


def test_a_study_runs_and_ends_in_best_trial_receipt_and_next_commands(prompt: Prompt) -> None:
    result = prompt("run", prompt.study())
    assert result.exit_code == 0, result.output
    assert "best  Trial " in result.output
    assert "total" in result.output
    assert "next: shoestring report study" in result.output


def test_the_same_command_after_the_end_shows_the_result_and_says_so(prompt: Prompt) -> None:
    file = prompt.study()
    first = prompt("run", file)
    entries = len(list(RunFolder(Path(".shoestring/study")).entries()))
    again = prompt("run", file)
    assert again.exit_code == 0
    assert "is over" in again.output
    assert "--fresh" in again.output
    assert first.stdout == again.stdout
    assert len(list(RunFolder(Path(".shoestring/study")).entries())) == entries


def test_fresh_moves_the_old_run_aside(prompt: Prompt) -> None:
    file = prompt.study()
    prompt("run", file)
    result = prompt("run", file, "--fresh")
    assert result.exit_code == 0
    assert Path(".shoestring/study.old-1/journal.sqlite").exists()
    assert Path(".shoestring/study/journal.sqlite").exists()


def test_options_override_the_file_and_names_and_stores_can_be_chosen(prompt: Prompt) -> None:
    result = prompt("run", prompt.study(), "--trials", "2", "--name", "two trials", "--store", "elsewhere", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["name"] == "two trials"
    assert len(told["trials"]) == 2
    assert Path("elsewhere/two trials/journal.sqlite").exists()


def test_a_toml_file_and_a_python_file_make_the_same_trials(prompt: Prompt) -> None:
    prompt.study()
    spec = 'function = "study.py:train"\nminimize = "loss"\ntrials = 4\nmax_steps = 4\non = "inline"\n'
    prompt.write("spec.toml", spec + "[space]\nlr = {float = [0, 1]}\n")
    from_python = json.loads(prompt("run", "study.py", "--json").stdout)
    from_toml = json.loads(prompt("run", "spec.toml", "--json").stdout)
    keys = ("trial", "step", "value", "config.lr", "status")
    assert [[t[k] for k in keys] for t in from_toml["trials"]] == [[t[k] for k in keys] for t in from_python["trials"]]


def test_a_program_in_a_yaml_file_runs_as_real_processes(prompt: Prompt) -> None:
    prompt.write("job.py", 'import sys\nfor i in (1, 2):\n    print(\'{"step": %d, "loss": %s}\' % (i, sys.argv[1]))\n')
    spec = f"command: [{sys.executable!r}, job.py, '{{lr}}']\nspace: {{lr: [0.5, 0.25]}}\nminimize: loss\n"
    prompt.write("spec.yaml", spec + "max_steps: 2\nrecipe: grid\n")
    result = prompt("run", "spec.yaml")
    assert result.exit_code == 0, result.output
    assert "loss 0.25" in result.output


def test_a_simulation_is_stored_beside_the_run_and_names_its_source(prompt: Prompt) -> None:
    file = prompt.study()
    words = ["--budget", "5", "--deadline", "6h", "--trials", "9"]
    guessed = prompt("simulate", file, *words)
    assert guessed.exit_code == 0, guessed.output
    assert "curves are guessed" in guessed.output
    assert prompt("run", file).exit_code == 0
    recorded = prompt("simulate", file, *words)
    assert "trials behave as in study" in recorded.output
    assert "spot" in prompt("report", "study-simulated", "--log").output


def test_a_run_out_of_budget_resumes_with_a_larger_one(prompt: Prompt) -> None:
    file = prompt.study(train=SLOW, trials="6", max_steps="18", recipe='"random"', on='"local"', max_machines="1")
    words = ["run", file, "--market", "modern", "--speedup", "3000", "--deadline", "90d", "--budget"]
    poor = prompt(*words, "0.02")
    study = Study.in_folder(RunFolder(Path(".shoestring/study")))
    assert "no more machines can be rented" in study.state.ending, poor.output
    assert "A larger --budget" in prompt(*words, "0.02").output
    unfinished = study.state.by_status["finished"]
    assert unfinished < 6
    richer = prompt(*words, "500")
    assert richer.exit_code == 0, richer.output
    assert study.refresh().state.by_status["finished"] == 6
    assert 0.02 < study.state.spent_usd <= 500


def test_ctrl_c_pauses_and_the_same_command_resumes_with_a_larger_budget(prompt: Prompt) -> None:
    file = prompt.study(train=SLOW, trials="6", max_steps="36", recipe='"random"', on='"local"')
    words = ["run", file, "--market", "modern", "--speedup", "900", "--deadline", "90d", "--budget"]
    slow = Path("slow")
    slow.touch()
    study = Study.in_folder(RunFolder(Path(".shoestring/study")))
    running = subprocess.Popen([*SHOESTRING, *words, "300"], stderr=subprocess.PIPE, text=True)
    until(lambda: _steps(study) > 20)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, stderr
    assert "released" in stderr
    assert "Run the same command to resume" in stderr
    assert study.refresh().status == "paused"
    assert not study.state.leases

    slow.unlink()
    result = prompt(*words, "400")
    assert result.exit_code == 0, result.output
    assert study.refresh().status == "completed"
    assert study.spec.budget_usd == 400
    assert study.state.lost_steps == 0
    assert "you set the budget to $400.00" in str(study.log())


def test_ctrl_c_does_not_call_a_trial_saved_that_saves_nothing(prompt: Prompt) -> None:
    steps = "for step in trial.steps():\n        trial.report(loss=1.0)\n        time.sleep(0.1)\n"
    unsaved = f"import time\ndef train(trial):\n    {steps}"
    file = prompt.study(train=unsaved, trials="1", max_steps="100000", recipe='"random"', on='"local"')
    study = Study.in_folder(RunFolder(Path(".shoestring/study")))
    running = subprocess.Popen([*SHOESTRING, "run", file], stderr=subprocess.PIPE, text=True)
    until(lambda: _steps(study) > 1)
    running.send_signal(signal.SIGINT)
    _, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 130, stderr
    assert "1 machine released, 0 trials saved, 1 trial not saved (" in stderr


def test_after_kill_9_the_same_command_resumes(prompt: Prompt) -> None:
    file = prompt.study(train=SLOW, trials="4", max_steps="36", on='"local"')
    Path("slow").touch()
    study = Study.in_folder(RunFolder(Path(".shoestring/study")))
    running = subprocess.Popen([*SHOESTRING, "run", file], stderr=subprocess.DEVNULL)
    until(lambda: _steps(study) > 8)
    running.kill()
    running.wait()
    before = study.refresh().state.seq
    assert study.status == "paused"
    Path("slow").unlink()
    result = prompt("run", file)
    assert result.exit_code == 0, result.output
    assert "resuming study" in result.output
    assert study.refresh().status == "completed"
    assert study.state.seq > before
    assert study.best is not None


def test_stop_from_another_shell_ends_a_running_study(prompt: Prompt) -> None:
    file = prompt.study(train=SLOW, trials="200", max_steps="40", on='"local"')
    study = Study.in_folder(RunFolder(Path(".shoestring/study")))
    running = subprocess.Popen([*SHOESTRING, "run", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: _steps(study) > 4)
    refused(prompt("run", file), "is running this study")
    assert prompt("status", "study").exit_code == 0
    result = prompt("stop", "study")
    assert result.exit_code == 0, result.output
    assert running.wait(timeout=PATIENCE_S) == 0
    assert study.refresh().status == "cancelled"
    assert "stopped by the user" in study.state.ending
    assert "is over already" in prompt("stop").output


def test_stop_ends_a_run_without_a_controller(prompt: Prompt) -> None:
    file = prompt.study(train=SLOW, trials="200", max_steps="40", on='"local"')
    study = Study.in_folder(RunFolder(Path(".shoestring/study")))
    running = subprocess.Popen([*SHOESTRING, "run", file], stderr=subprocess.DEVNULL)
    until(lambda: _steps(study) > 4)
    running.kill()
    running.wait()
    assert prompt("stop").exit_code == 0
    assert study.refresh().status == "cancelled"
    assert not study.state.leases


def test_stop_does_it_itself_when_the_controller_dies_while_it_waits(prompt: Prompt) -> None:
    file = prompt.study(train=SLOW, trials="200", max_steps="40", on='"local"')
    folder = RunFolder(Path(".shoestring/study"))
    study = Study.in_folder(folder)
    running = subprocess.Popen([*SHOESTRING, "run", file], stderr=subprocess.DEVNULL)
    until(lambda: _steps(study) > 4)
    running.kill()
    running.wait()
    held = "import sys, shoestring.storage.journal.lock as m, pathlib as p; _ = m.WriterLock(p.Path(sys.argv[1])); "
    deaf = subprocess.Popen(  # a controller that answers no request
        [sys.executable, "-c", held + "print(flush=True); sys.stdin.read()", str(folder.journal)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert deaf.stdout is not None
    deaf.stdout.readline()
    threading.Timer(1.0, deaf.communicate).start()
    stopped = prompt("stop")
    assert "stop requested from the controller" in stopped.output
    assert study.refresh().status == "cancelled"


def _steps(study: Study) -> int:
    try:
        return sum(job.step for job in study.refresh().state.jobs.values())
    except (StorageError, SpecError):
        return 0  # the journal is not there yet, or has no entry


def test_former_names_are_accepted_and_not_shown(prompt: Prompt) -> None:
    assert prompt("tell", "--help").exit_code == 0
    assert prompt("serve", "--at-once", "1", "token", "list").exit_code == 0
    assert prompt("serve", "--max-concurrent-runs", "1", "token", "list").exit_code == 0
    assert prompt("serve", "--at-once", "-1", "token", "list").exit_code == 2
    listed = [line.split()[0] for line in prompt("--help").output.partition("Commands:")[2].splitlines() if line]
    assert "report-metric" in listed
    assert "tell" not in listed
    shown = prompt("serve", "--help").output
    assert "--max-concurrent-runs" in shown
    assert "--at-once" not in shown


def test_help_teaches_and_is_fast(prompt: Prompt) -> None:
    text = prompt("--help").output
    for word in ("shoestring demo", "Exit codes", "130", "SHOESTRING_HOME"):
        assert word in text
    for command in ("run", "simulate", "status", "report", "why", "export", "stop", "demo", "report-metric"):
        assert prompt(command, "--help").exit_code == 0
    began = os.times()
    subprocess.run([*SHOESTRING, "--help"], check=True, capture_output=True)
    ended = os.times()
    assert ended.children_user - began.children_user < 1.0


def test_a_run_on_a_shared_file_system_says_what_is_done_there(
    prompt: Prompt, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = prompt.study()
    assert "other computers" not in prompt("run", file).stderr
    said_to_be_on("nfs4", prompt.folder, monkeypatch, listed_in=tmp_path_factory.mktemp("mounts"))
    result = prompt("run", file, "--fresh")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("is on nfs4, which other computers may share") == 1
    assert sorted(path.name for path in Path(".shoestring/study").glob("journal.sqlite*")) == [
        "journal.sqlite",
        "journal.sqlite-journal",
        "journal.sqlite.lock",
    ]
    assert "completed" in prompt("status").output
