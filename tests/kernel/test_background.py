"""Names of background tasks are recorded, so they must stay valid when modules move."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shoestring.errors import PolicyError
from shoestring.kernel.background import background_task, current_name, run_task, task_name


@background_task()
def doubled(given: int) -> int:
    return 2 * given


@background_task("tests.tripled")
def tripled(given: int) -> int:
    return 3 * given


def test_a_function_is_named_by_its_module_unless_it_has_a_name_of_its_own() -> None:
    assert task_name(doubled) == f"{__name__}:doubled"
    assert task_name(tripled) == "tests.tripled"
    assert run_task("tests.tripled", 4) == 12


@pytest.mark.parametrize("recorded", ["trimtuner.suggest", "shoestring.search.trimtuner_thinker:suggest"])
def test_a_fresh_process_finds_our_tasks_by_the_names_of_today_and_of_old_journals(recorded: str) -> None:
    assert current_name(recorded) == "trimtuner.suggest"
    code = f"from shoestring.kernel.background import run_task; run_task({recorded!r}, {{}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "KeyError: 'problem'" in done.stderr  # the function itself, missing what it is to work on


def test_nothing_unregistered_is_run() -> None:
    with pytest.raises(PolicyError, match="not a registered background task"):
        run_task("os:getcwd", None)
