"""What a trial prints, raises or is given is shown as text: no terminal obeys it, no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
import json

from click.testing import CliRunner

from shoestring.cli.main import cli
from tests.cli.prompt import Prompt

RAISES = """
def train(trial):
    raise ValueError("gone \\x1b]0;pwned\\x07 \\x1b[2J \\x9b31m \\u202e end\\n0:00:00  forged: \\x1b[2J line")
"""
SPACE = r'{"lr": ss.choice("a\x1b[31m"), "note": ss.choice("=1+1")}'
ACTIVE = ("\x1b", "\x07", "\x9b", "\u202e")


def on_a_terminal(*words: str) -> str:
    """Output as a terminal gets it: with all escape sequences."""
    return CliRunner().invoke(cli, list(words), prog_name="shoestring", color=True).output


def test_no_command_passes_escape_sequences_of_a_trial_on(prompt: Prompt) -> None:
    study = prompt.study(train=RAISES, space=SPACE, trials="1", max_failures="0")
    shown = {
        words: on_a_terminal(*words)
        for words in (("run", study), ("why", "0"), ("why", "0", "--json"), ("report", "--log"), ("status",))
    }
    for words, output in shown.items():
        assert not any(character in output for character in ACTIVE), (words, output)
    assert r"ValueError: gone \x1b]0;pwned\x07 \x1b[2J" in shown["why", "0"]
    assert r"gone \x1b]0;pwned" in shown["run", study]
    assert r"gone \x1b]0;pwned" in shown["report", "--log"]
    assert "\n0:00:00  forged" not in shown["why", "0"]


def test_a_pipe_gets_the_values_as_they_are(prompt: Prompt) -> None:
    prompt(*("run", prompt.study(train=RAISES, space=SPACE, trials="1", max_failures="0")))
    (row,) = csv.DictReader(io.StringIO(prompt("export").stdout))
    assert row["config.lr"] == "a\x1b[31m"


def test_a_spreadsheet_gets_formulas_as_text_and_numbers_as_numbers(prompt: Prompt) -> None:
    jobs = ["=1+1", "@SUM(A1)", "+cmd|x", "-2+HYPERLINK(A1)", "\t=1", "-0.5", "-O3", "plain"]
    (prompt.folder / "jobs.jsonl").write_text("".join(json.dumps({"x": value, "n": -1.5}) + "\n" for value in jobs))
    prompt("bag", "--table", "jobs.jsonl", "--name", "cells", "--", "echo", "={x}")
    assert prompt("export", "cells", "-o", "cells.csv").exit_code == 0
    rows = list(csv.DictReader((prompt.folder / "cells.csv").open()))
    assert [row["x"] for row in rows] == [*(f"'{value}" for value in jobs[:5]), *jobs[5:]]
    assert {row["n"] for row in rows} == {"-1.5"}
    assert all(row["output"].startswith("'=") for row in rows)
    assert json.loads(prompt("export", "cells", "--format", "json").stdout)["results"][0]["x"] == "=1+1"
