"""A start builds its recipe once and folds its journal once: a new run, one that resumes, one that is over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import shoestring as ss
from shoestring import controller, recipes
from shoestring.kernel.step import replay
from shoestring.report import trials
from shoestring.runs.folder import RunFolder


def train(trial: ss.Trial) -> None:
    for step in trial.steps():
        trial.report(loss=trial["x"] + 1 / step)
        if trial["x"] > 0.3 and not Path("again").exists():  # one of the trials
            Path("again").touch()
            raise KeyboardInterrupt


def study(folder: Path, **more: object) -> ss.Study:
    return ss.tune(
        train,
        space={"x": ss.choice(0.1, 0.2, 0.4)},
        minimize="loss",
        max_steps=3,
        recipe="grid",
        on="inline",
        name="once",
        store=folder,
        **more,
    )


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many recipes were built, and how many entries were folded from a journal."""
    counts: Counter[str] = Counter()
    build = recipes._recipe

    def counted_build(spec):
        counts["built"] += 1
        return build(spec)

    def counted_replay(state, entry):
        counts["folded"] += 1
        replay(state, entry)

    monkeypatch.setattr(recipes, "_recipe", counted_build)
    for module in (controller, trials):
        monkeypatch.setattr(module, "replay", counted_replay)
    return counts


def entries(folder: Path) -> int:
    return len(list(RunFolder(folder / "once").entries()))


def test_each_start_builds_once_and_folds_each_entry_once(
    tmp_path: Path, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        study(tmp_path)
    assert counted == {"built": 1}  # an empty journal

    before = entries(tmp_path)
    assert before > 5
    counted.clear()
    resumed = study(tmp_path)
    looked_at = (repr(resumed), resumed.receipt, resumed.to_plain(), resumed.best)
    assert counted == {"built": 1, "folded": before}
    assert resumed.status == "completed"

    counted.clear()
    over = study(tmp_path)
    assert (repr(over), over.receipt, over.to_plain(), over.best) == looked_at  # watched or folded, it is the same
    assert counted == {"built": 1, "folded": entries(tmp_path)}

    counted.clear()
    assert ss.resume("once", store=tmp_path).state.concluded
    assert counted == {"folded": entries(tmp_path)}


def test_a_simulation_too(counted: Counter[str], tmp_path: Path) -> None:
    words = {"space": {"x": ss.uniform(0, 1)}, "minimize": "loss", "trials": 6, "max_steps": 4, "seed": 3}
    market = {"market": "modern", "budget": 5, "deadline": "6h"}
    memory = ss.simulate(recipe="asha", **words, **market)
    stored = ss.simulate(recipe="asha", name="kept", store=tmp_path, **words, **market)
    watched = [(study.trials.to_plain(), study.receipt) for study in (memory, stored)]
    assert counted == {"built": 2}
    assert [(study.refresh().trials.to_plain(), study.receipt) for study in (memory, stored)] == watched
    assert counted["folded"] > 0
