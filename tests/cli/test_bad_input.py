"""Bad input gets a message and an exit code, never a traceback, and loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from shoestring.storage.journal.sqlite import SqliteJournal
from shoestring.testing.slowness import PATIENCE_S
from tests.cli.prompt import Prompt, refused

NEVER = "def train(trial):\n    for step in trial.steps():\n        trial.report(other=1.0)\n"
NAN = "def train(trial):\n    for step in trial.steps():\n        trial.report(loss=float('nan'))\n"
RAISES = "def train(trial):\n    raise RuntimeError('no such data set')\n"
MISSPELT = "def train(trial):\n    trial['learning_rate']\n"


# -- the request ------------------------------------------------------------------------------------------------------
def test_an_unknown_field_is_named_with_the_nearest_known(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(budgte="3")), "budgte", "budget")


def test_an_unknown_parameter_in_a_command(prompt: Prompt) -> None:
    spec = "command: echo {lrr}\nspace: {lr: {float: [0, 1]}}\nminimize: loss\n"
    refused(prompt("run", prompt.write("spec.yaml", spec)), "{lrr}", "lr")


def test_a_parameter_that_the_code_reads_and_the_space_lacks(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(train=MISSPELT, max_failures="0")), "learning_rate", "lr")


def test_an_empty_space(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(space="{}")), "space is empty")


def test_a_negative_budget(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(), "--budget", "-3"), "budget")


def test_a_budget_that_cannot_pay_one_minute(prompt: Prompt) -> None:
    result = prompt("run", prompt.study(), "--market", "modern", "--budget", "0.00001")
    refused(result, "cannot pay the first minute of the cheapest machine", "raise --budget")
    assert not Path(".shoestring").exists()


def test_a_market_without_a_budget(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(), "--market", "modern"), "no budget is given")


def test_a_negative_deadline(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(), "--deadline", "-2h"), "deadline")
    refused(prompt("run", prompt.study(deadline="-5")), "is negative")


def test_an_unknown_recipe_market_machine_and_place(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(), "--recipe", "ashs"), "ashs", "asha")
    refused(prompt("run", prompt.study(), "--market", "moderne", "--budget", "3"), "moderne", "modern")
    refused(prompt("run", prompt.study(), "--machines", "m6i.lurge", "--budget", "3"), "m6i.lurge", "m6i.large")
    refused(prompt("run", prompt.study(), "--on", "moon"), "moon", "local")
    assert not Path(".shoestring").exists()


def test_a_lambda_cannot_be_found_by_another_process(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(train="train = lambda trial: None", on='"local"')), "def")


# -- the file ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("empty.py", "x = 1\n", "starts no study"),
        ("broken.py", "def train(:\n", "SyntaxError"),
        ("raises.py", "1 / 0\n", "ZeroDivisionError"),
        ("leaves.py", "import sys; sys.exit('no data')\n", "no data"),
        ("broken.yaml", "a: [1\n", "not YAML"),
        ("study.txt", "hello\n", "not a study file"),
    ],
)
def test_a_file_that_is_not_a_study(prompt: Prompt, name: str, text: str, words: str) -> None:
    refused(prompt("run", prompt.write(name, text)), name, words)


def test_a_missing_file(prompt: Prompt) -> None:
    refused(prompt("run", "nowhere.py"), "nowhere.py")


# -- user code ---------------------------------------------------------------------------------------------------------
def test_a_metric_that_is_never_reported(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(train=NEVER, max_failures="0")), "without a result", "loss")


def test_metrics_that_are_not_numbers(prompt: Prompt) -> None:
    refused(prompt("run", prompt.study(train=NAN)), "without a result")


def test_a_function_that_raises(prompt: Prompt) -> None:
    result = prompt("run", prompt.study(train=RAISES, max_failures="1"))
    refused(result, "no such data set", "study.py:", "4 trials failed")


def test_a_command_that_does_not_exist(prompt: Prompt) -> None:
    spec = "command: ./no-such-program {lr}\nspace: {lr: {float: [0, 1]}}\nminimize: loss\n"
    refused(prompt("run", prompt.write("spec.yaml", spec)), "no-such-program")
    assert not Path(".shoestring").exists()


def test_a_program_that_prints_garbage(prompt: Prompt) -> None:
    prompt.write("garbage.py", "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 9 + b'\\n{\"loss\": \\n')\n")
    spec = f"command: [{sys.executable!r}, garbage.py]\nspace: {{lr: {{float: [0, 1]}}}}\n"
    spec += "minimize: loss\ntrials: 2\nmax_failures: 0\non: inline\n"
    refused(prompt("run", prompt.write("spec.yaml", spec)), "without a result", "loss")


# -- what is on disk ---------------------------------------------------------------------------------------------------
def test_another_study_under_the_same_name(prompt: Prompt) -> None:
    assert prompt("run", prompt.study()).exit_code == 0
    refused(prompt("run", prompt.study(max_steps="5")), "max_steps", "was 4, now 5", "--fresh", "--name")


def test_a_truncated_journal_is_named_and_left_alone(prompt: Prompt) -> None:
    assert prompt("run", prompt.study()).exit_code == 0
    journal = Path(".shoestring/study/journal.sqlite")
    whole = journal.read_bytes()
    journal.write_bytes(whole[: len(whole) // 2])
    refused(prompt("report"), "journal")
    refused(prompt("run", prompt.study()), "journal")
    assert journal.read_bytes() == whole[: len(whole) // 2]


def test_a_journal_that_is_something_else(prompt: Prompt) -> None:
    folder = prompt.folder / ".shoestring" / "study"
    folder.mkdir(parents=True)
    (folder / "journal.sqlite").write_text("shopping list: eggs, milk\n" * 100)
    refused(prompt("run", prompt.study()), "journal")


def test_a_second_controller(prompt: Prompt) -> None:
    file = prompt.study()
    assert prompt("run", file).exit_code == 0
    journal = SqliteJournal.open(Path(".shoestring/study/journal.sqlite"))
    try:
        refused(prompt("run", file, "--fresh"), "is running this study")
    finally:
        journal.close()


def test_a_full_disk(prompt: Prompt) -> None:
    """No file may grow beyond 64 kB, as on a disk that is nearly full."""
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536));"
        "from shoestring.cli import main; main(sys.argv[1:])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, "run", prompt.study(trials="400")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 2, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "shoestring: " in ran.stderr
    assert prompt("run", prompt.study(trials="400")).exit_code == 0, "with room on the disk, it resumes"


def test_an_unknown_run_name(prompt: Prompt) -> None:
    for words in (["report"], ["why", "1"], ["export"], ["stop"], ["status"]):
        refused(prompt(*words, "nobody"), "nobody")
        refused(prompt(*words), "there is no run")


def test_an_unknown_trial(prompt: Prompt) -> None:
    assert prompt("run", prompt.study()).exit_code == 0
    refused(prompt("why", "99"), "99", "from 0 to 3")


# -- prices ------------------------------------------------------------------------------------------------------------
def prices(*rows: tuple[str, str], zone: str = "us-east-1a") -> str:
    records = [
        {
            "Timestamp": at,
            "SpotPrice": price,
            "InstanceType": "m5.large",
            "AvailabilityZone": zone,
            "ProductDescription": "Linux/UNIX",
        }
        for at, price in rows
    ]
    return json.dumps({"SpotPriceHistory": records})


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("negative.json", prices(("2025-03-03T00:00:00Z", "-0.1")), "-0.1"),
        ("gap.json", prices(("2025-03-03T00:00:00Z", "0.04"), ("2025-03-20T00:00:00Z", "0.04")), "gap"),
        ("columns.csv", "when,what\n1,2\n", "columns.csv"),
        ("empty.csv", "", "empty.csv"),
        ("missing.json", None, "missing.json"),
    ],
)
def test_an_invalid_price_file(prompt: Prompt, name: str, text: str | None, words: str) -> None:
    if text is not None:
        prompt.write(name, text)
    refused(prompt("simulate", prompt.study(), "--market", name, "--budget", "5", "--deadline", "2h"), words)


def test_a_price_file_that_ends_before_the_deadline(prompt: Prompt) -> None:
    prompt.write("short.json", prices(("2025-03-03T00:00:00Z", "0.04"), ("2025-03-03T05:00:00Z", "0.05")))
    refused(prompt("simulate", prompt.study(), "--market", "short.json", "--budget", "5", "--deadline", "9d"), "end")


# -- commands and options----------------------------------------------------------------------------------------------
def test_unknown_commands_and_options_are_usage_errors(prompt: Prompt) -> None:
    assert prompt("fly").exit_code == 2
    assert prompt("run", "x.py", "--wings").exit_code == 2
    assert prompt("why", "seven").exit_code == 2


@pytest.mark.parametrize("command", ["report-metric", "tell"])  # the second is its former name
def test_reporting_a_metric_outside_a_job_and_in_a_bad_form(prompt: Prompt, command: str) -> None:
    refused(prompt(command, "step=3", "loss=0.2"), "listening")
    refused(prompt(command, "loss"), "loss")
    refused(prompt(command, "loss=0.2"), "step")
