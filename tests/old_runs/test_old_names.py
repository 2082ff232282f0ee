"""Programs that an earlier release left waiting or running still find what they start by its former name."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from shoestring.testing.slowness import PATIENCE_S

FORMER = {
    "shoestring.backends.slurm_host": "shoestring.backends.slurm.host",
    "shoestring.backends.ray_keeper": "shoestring.backends.ray.keeper",
    "shoestring.backends.ray_driver": "shoestring.backends.ray.driver",
    "shoestring.world.thoughts": "shoestring.world.live.background",
}


def start(module: str, *words: str, said: str = "") -> str:
    command = [sys.executable, "-P", "-m", module, *words]
    return subprocess.run(command, input=said, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout


@pytest.mark.parametrize("former", FORMER)
def test_a_former_name_starts_the_same_program(former: str) -> None:
    assert import_module(former).main is import_module(FORMER[former]).main


@pytest.mark.parametrize("former", ["shoestring.backends.slurm_host", "shoestring.backends.slurm.host"])
def test_a_slurm_job_that_was_queued_by_an_earlier_release_signs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, former: str
) -> None:
    (tmp_path / "orders").mkdir()
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURMD_NODENAME", "s0")
    start(former, str(tmp_path))  # nothing says until when to host: it leaves at once
    signed = json.loads((tmp_path / "host.json").read_text())
    assert (signed["job"], signed["node"]) == ("12", "s0")
    assert signed["wall"] > 0
    assert json.loads((tmp_path / "left.json").read_text())["cause"] == "released"


def test_a_keeper_keeps_what_its_folder_says(tmp_path: Path) -> None:
    keep = {"command": ["touch", str(tmp_path / "ran")], "heartbeat": str(tmp_path), "silence_s": 60.0}
    (tmp_path / "keep.json").write_text(json.dumps(keep))
    start("shoestring.backends.ray_keeper", str(tmp_path))
    assert (tmp_path / "ran").exists()


def test_background_tasks_of_a_running_controller_are_answered() -> None:
    asked = {"name": "t", "question": "shoestring.search.trimtuner_thinker:suggest", "given": {}}
    answered = json.loads(start("shoestring.world.thoughts", said=json.dumps(asked) + "\n"))
    assert "KeyError" in answered["error"]  # it is the right function, given nothing to work on
