"""A journal that is followed while it grows gives the same fold as one read at the end."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from shoestring.report.study import Study
from shoestring.runs.folder import RunFolder
from shoestring.server.journal_follower import Follower, concludes, progress_of
from shoestring.server.streams import lines_after
from shoestring.storage.journal.sqlite import SqliteJournal
from tests.studies import play, random_case


@pytest.mark.parametrize("seed", range(8))
def test_following_in_any_chunks_gives_the_same_fold(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    _, recorded = play(random_case(rng))
    folder = RunFolder(tmp_path / "run")
    follower = Follower(folder)
    follower.refresh()
    assert progress_of(follower.state) is None, "there is no journal yet"
    read: list[int] = []
    with closing(SqliteJournal.open(folder.journal)) as journal:
        for entry in recorded.read():
            journal.append(entry, wait=rng.random() < 0.1)
            if rng.random() < 0.1:
                follower.refresh()
                read += [seq for seq, _ in lines_after(folder, read[-1] if read else 0)]
    follower.refresh()
    while more := lines_after(folder, read[-1] if read else 0):
        read += [seq for seq, _ in more]
    study = Study.in_folder(folder)
    assert progress_of(follower.state) == progress_of(study.state)
    assert str(follower.tally.rows()) == str(list(study.trials))
    assert str(follower.tally.rows(2, 3)) == str(list(study.trials[2:5]))
    assert read == list(range(1, study.state.seq + 1))
    assert concludes(folder) == study.state.concluded


def test_a_replaced_journal_is_followed_from_its_start(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    follower = Follower(folder)
    for seed in (1, 2):
        for old in folder.path.glob("journal.sqlite*"):
            old.unlink()
        with closing(SqliteJournal.open(folder.journal)) as journal:
            for entry in play(random_case(random.Random(seed)))[1].read():
                journal.append(entry, wait=False)
        follower.refresh()
        assert progress_of(follower.state) == progress_of(Study.in_folder(folder).state)


def test_damage_is_reported_and_a_repaired_journal_is_read_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with closing(SqliteJournal.open(folder.journal)) as journal:
        for entry in play(random_case(random.Random(3)))[1].read():
            journal.append(entry, wait=False)
    sound = folder.journal.read_bytes()
    folder.journal.write_bytes(sound[:2000])
    follower = Follower(folder)
    follower.refresh()
    assert follower.damage
    assert progress_of(follower.state) is None
    assert not concludes(folder)
    folder.journal.write_bytes(sound)
    follower.refresh()
    assert not follower.damage
    assert progress_of(follower.state) == progress_of(Study.in_folder(folder).state)
