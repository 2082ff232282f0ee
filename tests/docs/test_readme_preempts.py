"""The example of real preemptions in the README does preempt."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from shoestring.cli.main import cli
from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from tests.docs.markdown import ROOT, blocks


def test_the_example_of_real_preemptions_preempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_HOME", raising=False)
    readme = ROOT / "README.md"
    (study,) = [block for block in blocks(readme) if block.file == "study.py"]
    Path("study.py").write_text(study.text)
    command = re.search(r"\*\*Real preemptions\.\*\* `shoestring ([^`]+)`", readme.read_text(encoding="utf-8"))
    assert command is not None
    # Six trials are enough: the first machine is preempted within three minutes of market time, half a second.
    result = CliRunner().invoke(cli, [*shlex.split(command[1]), "--trials", "6"], prog_name="shoestring")
    assert result.exit_code == 0, result.output
    assert Study.in_folder(RunFolder(Path(".shoestring/study"))).state.revocations > 0
