"""`shoestring bag`: a command and a table, on real processes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shoestring.errors import SpecError, StorageError
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.slowness import PATIENCE_S
from tests.cli.prompt import Prompt, refused, until

SHOESTRING = [sys.executable, "-c", "from shoestring.cli import main; main()"]
ECHO = [sys.executable, "-c", "import sys; print(*sys.argv[1:])"]
SLOW = [sys.executable, "-c", "import os, sys, time; print(os.getpid(), flush=True); time.sleep(float(sys.argv[1]))"]


def results(prompt: Prompt, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(prompt("export", name).stdout)))


def test_all_combinations_run_and_come_back_as_a_table(prompt: Prompt) -> None:
    words = ["bag", "--name", "sums", "--over", "temp=280,300", "--over", "seed=0..2", "--", *ECHO, "{temp}", "{seed}"]
    result = prompt(*words)
    assert result.exit_code == 0, result.output
    assert "6 of 6 jobs finished" in result.output
    assert "next: shoestring export sums -o results.csv" in result.output
    assert [(row["temp"], row["seed"], row["output"]) for row in results(prompt, "sums")] == [
        (temp, seed, f"{temp} {seed}") for temp in ("280", "300") for seed in ("0", "1", "2")
    ]
    assert "wrote 6 jobs" in prompt("export", "sums", "-o", "results.csv").output

    again = prompt(*words)
    assert again.exit_code == 0
    assert "sums is over" in again.output
    refused(prompt(*words, "more"), "another run named 'sums'", "--fresh")


PROGRESS = """for i in 1 2 3; do echo "{\\"step\\": $i, \\"energy\\": -$i}"; sleep 0.2; done; touch done-$1\n"""


def test_jobs_that_print_progress_run_to_their_own_end(prompt: Prompt) -> None:
    prompt.write("prog.sh", PROGRESS)
    result = prompt("bag", "--over", "k=1..2", "--", "bash", "prog.sh", "{k}")
    assert result.exit_code == 0, result.output
    assert "2 of 2 jobs finished" in result.output
    assert sorted(path.name for path in Path().glob("done-*")) == ["done-1", "done-2"]
    assert [(row["status"], row["energy"]) for row in results(prompt, "prog")] == [("finished", "-3.0")] * 2


def test_max_steps_only_scales_the_progress_of_a_bag(prompt: Prompt) -> None:
    prompt.write("prog.sh", PROGRESS)
    result = prompt("bag", "--over", "k=1", "--max-steps", "2", "--", "bash", "prog.sh", "{k}")
    assert result.exit_code == 0, result.output
    assert Path("done-1").exists()
    assert results(prompt, "prog")[0]["energy"] == "-3.0"


def test_a_half_way_bag_that_recorded_a_max_steps_of_1_resumes_and_its_jobs_run_to_their_end(prompt: Prompt) -> None:
    """As those of version 0.1 did, whether it was given or not."""
    script = prompt.write("gated.sh", "while [ $1 = 2 ] && [ ! -e go ]; do sleep 0.05; done\n" + PROGRESS)
    words = ["--over", "k=1,2", "--slots", "1", "--", "bash", script, "{k}"]
    running = started("--max-steps", "1", *words)
    bag = Study.in_folder(RunFolder(Path(".shoestring/slow")))
    until(lambda: _told(bag, lambda: bag.state.by_status["finished"] >= 1))
    running.send_signal(signal.SIGINT)
    running.wait()
    Path("go").touch()
    result = prompt("bag", "--name", "slow", *words)
    assert result.exit_code == 0, result.output
    assert "2 of 2 jobs finished" in result.output
    assert Path("done-2").exists()
    refused(prompt("bag", "--name", "slow", "--max-steps", "2", *words), "max_steps (was 1, now 2)")


def test_options_after_the_program_belong_to_the_program(prompt: Prompt) -> None:
    result = prompt("bag", "--over", "n=1,2", *ECHO, "--name", "{n}", "--json")
    assert result.exit_code == 0, result.output
    assert [row["output"] for row in results(prompt, "python")] == ["--name 1 --json", "--name 2 --json"]


def test_a_whole_command_line_may_be_one_argument(prompt: Prompt) -> None:
    result = prompt("bag", "--name", "quoted", "--over", "n=a b,c", "echo 'got {n}'")
    assert result.exit_code == 0, result.output
    assert [row["output"] for row in results(prompt, "quoted")] == ["got a b", "got c"]


def test_no_value_is_taken_for_shell_code(prompt: Prompt) -> None:
    prompt("bag", "--name", "harmless", "--over", "n=$(touch hit);touch hit", "--", "echo", "{n}")
    assert results(prompt, "harmless")[0]["output"] == "$(touch hit);touch hit"
    assert not Path("hit").exists()


def test_a_table_as_an_option_and_one_beside_a_spec_file(prompt: Prompt) -> None:
    folder = prompt.folder / "sweep"
    folder.mkdir()
    (folder / "params.csv").write_text("temp,tag\n280,007\n300,010\n")
    (folder / "spec.toml").write_text('command = "echo {temp} {tag}"\ntable = "params.csv"\n')
    said = prompt("bag", "--name", "said", "--table", "sweep/params.csv", "--", "echo", "{temp}", "{tag}")
    assert said.exit_code == 0, said.output
    written = prompt("run", "sweep/spec.toml", "--name", "written")
    assert written.exit_code == 0, written.output
    for name in ("said", "written"):
        assert [row["output"] for row in results(prompt, name)] == ["280 007", "300 010"]


def test_a_simulated_bag_is_stored_beside_the_real_one(prompt: Prompt) -> None:
    words = ["--over", "n=0..9", "--budget", "5", "--deadline", "2d", "--simulate", "--job-takes", "40m"]
    result = prompt("bag", *words, "--json", "--", "./not-there", "{n}")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["receipt"]["charged_usd"] > 0
    assert {trial["status"] for trial in told["trials"]} == {"finished"}
    assert len(results(prompt, "not-there-simulated")) == 10


def test_scispot_runs_a_bag_too(prompt: Prompt) -> None:
    words = ["--over", "n=0..19", "--market", "preemptible", "--budget", "9", "--deadline", "3d", "--simulate"]
    result = prompt("bag", *words, "--recipe", "scispot", "--job-takes", "2h", "--", "sim", "{n}")
    assert result.exit_code == 0, result.output
    assert "20 of 20 jobs finished" in result.output


def test_a_job_may_have_a_number_of_cpus_on_whatever_machines(prompt: Prompt) -> None:
    words = ["--over", "n=0..3", "--market", "preemptible", "--budget", "9", "--deadline", "1d", "--simulate", "--json"]
    types = ["--machines", "n1-highcpu-8,n1-highcpu-16", "--max-machines", "8"]
    cpus = ["--recipe", "scispot", "--cpus-per-job", "32", "--job-takes", "2h"]
    result = prompt("bag", *words, *types, *cpus, "--", "sim", "{n}")
    assert result.exit_code == 0, result.output
    trials = json.loads(result.stdout)["trials"]
    assert {trial["status"] for trial in trials} == {"finished"}


def test_several_machines_may_work_on_one_job(prompt: Prompt) -> None:
    words = ["--over", "n=0..3", "--market", "preemptible", "--budget", "9", "--deadline", "1d", "--simulate", "--json"]
    result = prompt("bag", *words, "--recipe", "scispot", "--gangs", "2", "--job-takes", "2h", "--", "sim", "{n}")
    assert result.exit_code == 0, result.output
    assert {trial["status"] for trial in json.loads(result.stdout)["trials"]} == {"finished"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--over", "temp", "--", "echo", "{temp}"], "--over 'temp' gives no values"),
        (["--over", "temp=", "--", "echo", "{temp}"], "--over temp lists no values"),
        (["--over", "a=1", "--over", "a=2", "--", "echo", "{a}"], "--over a is given twice"),
        (["--over", "a-b=1", "--", "echo"], "'a-b' cannot name a parameter"),
        (["--over", "a=1", "--", "echo", "{b}"], "{b} is not a parameter"),
        (["--over", "a=1", "--table", "t.csv", "--", "echo"], "both table and over"),
        (["--table", "t.csv", "--", "echo", "{a}"], "there is no table"),
        (["--", "echo"], "a bag needs its jobs, in over, given or table"),
        (["--over", "a=1"], "Missing argument"),
        (["--over", "a=1", "--recipe", "scispt", "--", "echo"], "did you mean scispot"),
        (["--over", "a=1", "--gangs", "1,2", "--", "echo"], "the recipe given has no such option"),
        (["--over", "a=1", "--cpus-per-job", "4", "--", "echo"], "the recipe given has no such option"),
        (
            ["--over", "a=1", "--recipe", "scispot", "--cpus-per-job", "4", "--gangs", "2", "--", "echo"],
            "both say how many machines a job has",
        ),
        (["--over", "a=1", "--recipe", "scispot", "--cpus-per-job", "0", "--", "echo"], "must be at least 1"),
        (["--over", "a=1", "--recipe", "scispot", "--gangs", "two", "--", "echo"], "'two' is not a number"),
        (["--over", "a=1", "--recipe", "scispot", "--gangs", "2", "--", "echo"], "at most 1 may be rented at once"),
        (["--over", "a=1", "--", "no-such-program"], "there is no program"),
        (["--over", "a=1", "--simulate", "--job-takes", "soon", "--", "echo"], "job_takes='soon'"),
        (["--over", "a=1", "--market", "modern", "--", "echo"], "no budget is given"),
        (["--over", "a=1", "--recipe", "asha", "--", "echo"], "compares trials, but the run has no metric"),
    ],
)
def test_an_impossible_bag_gets_a_message(prompt: Prompt, words: list[str], said: str) -> None:
    refused(prompt("bag", *words), said)
    assert not Path(".shoestring").exists()


def test_a_bag_in_which_every_job_fails_ends_with_a_sentence(prompt: Prompt) -> None:
    result = prompt("bag", "--name", "bad", "--over", "n=1,2", "--max-failures", "0", "--", "ls", "/no/such/place{n}")
    refused(result, "0 of 2 jobs finished, 2 failed", "/no/such/place")


# -- over its life -----------------------------------------------------------------------------------------------------
def started(*words: str) -> subprocess.Popen[bytes]:
    command = [*SHOESTRING, "bag", "--name", "slow", *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_stop_from_another_shell_ends_all_jobs(prompt: Prompt) -> None:
    running = started("--over", "n=0..99", "--", *SLOW, "60", "{n}")
    bag = Study.in_folder(RunFolder(Path(".shoestring/slow")))
    until(lambda: _told(bag, lambda: len(_logs(bag)) > 0))
    status = prompt("status", "slow")
    assert "slow: running · 0/100 · free of charge" in status.output, status.output
    stopped = prompt("stop", "slow")
    assert stopped.exit_code == 0, stopped.output
    assert "0 of 100 jobs finished" in stopped.output
    running.wait(timeout=PATIENCE_S)
    assert bag.refresh().status == "cancelled"
    assert not bag.state.segments
    pids = [int(log.read_text().split()[0]) for log in _logs(bag)]
    until(lambda: not any(_alive(pid) for pid in pids))


def test_after_kill_9_the_same_command_resumes_with_the_jobs_left(prompt: Prompt) -> None:
    words = ["--over", "n=0..7", "--slots", "1", "--", *SLOW, "0.3", "{n}"]
    running = started(*words)
    bag = Study.in_folder(RunFolder(Path(".shoestring/slow")))
    until(lambda: _told(bag, lambda: bag.state.by_status["finished"] >= 2))
    running.kill()
    running.wait()
    assert bag.refresh().status == "paused"
    result = prompt("bag", "--name", "slow", *words)
    assert result.exit_code == 0, result.output
    assert "resuming slow" in result.output
    assert "8 of 8 jobs finished" in result.output
    assert {row["attempts"] for row in results(prompt, "slow")} == {"1"}


def _logs(bag: Study) -> list[Path]:
    assert bag.folder is not None
    return [log for log in bag.folder.path.glob("segments/*/log.txt") if log.read_text().strip()]


def _told(bag: Study, question: Callable[[], bool]) -> bool:
    try:
        bag.refresh()
        return question()
    except (StorageError, SpecError):
        return False  # the journal is not there yet, or has no entry


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
