"""What is said before and after a run: stand-ins for machines, a clock that is too fast, no results, two calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.testing.slowness import PATIENCE_S
from tests.cli.prompt import TRAIN, Prompt, refused

RAISES = "def train(trial):\n    raise RuntimeError('no such data set')\n"


# -- local machines ---------------------------------------------------------------------------------------------------
def test_a_market_on_this_computer_says_that_it_stands_in_for_the_machines(prompt: Prompt) -> None:
    words = ("--market", "modern", "--machines", "p3.2xlarge", "--budget", "9", "--speedup", "60")
    result = prompt("run", prompt.study(trials="1", max_steps="1"), *words)
    assert result.exit_code == 0, result.output
    assert "no cloud is rented from: processes of this computer" in result.stderr
    assert "stand in for p3.2xlarge" in result.stderr
    assert "loading the study" not in result.stderr
    assert "no cloud" not in prompt("run", prompt.study(), "--name", "free").output


def test_a_clock_too_fast_for_the_import_is_reported_with_one_that_is_not(prompt: Prompt) -> None:
    slow = f"import time\ntime.sleep(0.2)\n{TRAIN}"
    words = ("--market", "modern", "--budget", "9", "--speedup", "6000", "--deadline", "300d")
    result = prompt("run", prompt.study(train=slow, trials="1", max_steps="1"), *words)
    assert "warning: loading the study takes" in result.stderr
    assert "of market time at --speedup 6000" in result.stderr
    assert "whenever a trial starts or resumes; at --speedup" in result.stderr


# -- interruptions ----------------------------------------------------------------------------------------------------
def test_interruptions_per_hour_is_an_option(prompt: Prompt) -> None:
    words = ("simulate", prompt.study(), "--budget", "9", "--deadline", "6h", "--seconds-per-step", "600")
    assert prompt(*words, "--interruptions-per-hour", "9").exit_code == 0
    study = Study.in_folder(RunFolder(Path(".shoestring/study-simulated")))
    assert study.state.revocations > 3
    assert prompt(*words, "--interruptions-per-hour", "0", "--fresh").exit_code == 0
    assert study.refresh().state.revocations == 0


@pytest.mark.parametrize("market", [(), ("--market", "auction"), ("--market", "preemptible")])
def test_where_interruptions_cannot_be_set_the_message_says_where_they_can(
    prompt: Prompt, market: tuple[str, ...]
) -> None:
    result = prompt("run", prompt.study(), "--budget", "9", "--interruptions-per-hour", "3", *market)
    refused(result, "interruptions_per_hour has no meaning", "modern, a price file")


# -- no result --------------------------------------------------------------------------------------------------------
def test_no_empty_receipt_comes_before_an_error(prompt: Prompt) -> None:
    result = prompt("run", prompt.study(train=RAISES, max_failures="0", trials="1"))
    refused(result, "ended without a result", "no such data set", "1 trial failed")
    assert "on-demand" not in result.output
    assert "$0.00" not in result.stdout


def test_failures_that_were_retried_are_on_the_receipt(prompt: Prompt) -> None:
    once = """
import os, pathlib
def train(trial):
    if not pathlib.Path("failed-once").exists():
        pathlib.Path("failed-once").touch()
        os.kill(os.getpid(), 9)
    for step in trial.steps():
        trial.report(loss=1.0)
"""
    result = prompt("run", prompt.study(train=once, on='"local"', trials="1", max_steps="1"))
    assert result.exit_code == 0, result.output
    assert (
        "warning: 1 failure in 1 trial (a trial may have 2, max_failures), trial 0: "
        "user code was killed by SIGKILL (out of memory?)" in result.stdout
    )
    assert "warning: 1 failure in 1 trial" in prompt("status").output


# -- two calls in one file ---------------------------------------------------------------------------------------------
TWICE = """
import shoestring as ss
{train}
common = dict(space={{"lr": ss.uniform(0, 1)}}, minimize="loss", max_steps=1, on="inline")
ss.tune(train, trials=1, **common)
ss.tune(train, trials=2, **common{more})
"""


@pytest.mark.parametrize("command", [("run",), ("simulate", "--budget", "9")])
def test_two_studies_of_one_name_in_a_file_are_refused(prompt: Prompt, command: tuple[str, ...]) -> None:
    file = prompt.write("study.py", TWICE.format(train=TRAIN, more=""))
    refused(prompt(command[0], file, *command[1:]), "this file starts two studies named 'study'", "name='study-2'")
    refused(prompt(command[0], file, *command[1:], "--fresh"), "two studies named")


def test_two_studies_with_names_of_their_own_both_run(prompt: Prompt) -> None:
    result = prompt("run", prompt.write("study.py", TWICE.format(train=TRAIN, more=", name='second'")))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("best  Trial") == 2


BELOW = """
import shoestring as ss
def first(trial):
    trial.report(loss=1.0)
ss.{call}(first, space={{"lr": ss.uniform(0, 1)}}, minimize="loss", trials=1, max_steps=1, budget=1)
def second(trial):
    trial.report(loss=1.0)
ss.tune(second, space={{"lr": ss.uniform(0, 1)}}, minimize="loss", trials=1, max_steps=1, name="second")
"""


@pytest.mark.parametrize("call", ["tune", "simulate"])
def test_a_function_below_a_call_that_starts_a_study_is_refused_before_it_fails_in_every_trial(
    prompt: Prompt, call: str
) -> None:
    result = prompt("run", prompt.write("study.py", BELOW.format(call=call)))
    refused(result, "study.py: second on line 6 is below a call that starts a study, on line 5", "above the first call")
    assert not Path(".shoestring/second").exists()


def test_a_call_that_only_looks_like_one_is_no_obstacle(prompt: Prompt) -> None:
    harmless = """
class Piano:
    def tune(self): pass
Piano().tune()
def tune(): pass
tune()
if __name__ == "__main__":
    import shoestring as ss
    ss.simulate(space={"x": ss.uniform(0, 1)}, minimize="loss", budget=1, trials=1)
"""
    result = prompt("run", prompt.study(train=harmless + TRAIN, on='"local"', trials="1", max_steps="1"))
    assert result.exit_code == 0, result.output


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------
def test_ctrl_c_while_the_command_is_still_being_loaded_shows_no_traceback(tmp_path: Path) -> None:
    # a shell's background job ignores SIGINT, and so would what it starts
    heeded = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    (tmp_path / "click.py").write_text(f"import os, signal\n{heeded}\nos.kill(os.getpid(), signal.SIGINT)\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from shoestring.cli import main; main(['--help'])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


# -- deadlines --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("market", "most"), [("modern", "3650d"), ("auction", "365d")])
def test_a_deadline_of_a_thousand_years_is_refused_where_prices_have_to_be_made_for_it(
    prompt: Prompt, market: str, most: str
) -> None:
    words = ("--budget", "9", "--market", market, "--deadline", "365000d")
    refused(prompt("simulate", prompt.study(), *words), "a deadline of 365000d", f"at most {most}")
    refused(prompt("run", prompt.study(), *words), "a deadline of 365000d", f"at most {most}")


def test_elsewhere_a_deadline_of_a_thousand_years_is_no_problem(prompt: Prompt) -> None:
    assert prompt("run", prompt.study(deadline='"365000d"', trials="1")).exit_code == 0
