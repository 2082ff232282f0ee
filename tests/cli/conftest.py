from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.prompt import Prompt


@pytest.fixture
def prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prompt:
    folder = tmp_path / "a folder"  # with a blank, as people have them
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("SHOESTRING_HOME", raising=False)
    monkeypatch.delenv("SHOESTRING_DEBUG", raising=False)
    return Prompt(folder)
