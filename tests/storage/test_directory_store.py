"""The directory store: damage is reported with its file, a full disk loses nothing, and no files are left behind."""

import os
import subprocess
import sys
import time

import pytest

from shoestring.errors import CheckpointMissing, StorageError
from shoestring.storage.checkpoints import directory as checkpoints
from shoestring.storage.checkpoints.directory import DirectoryStore
from shoestring.testing.checkpoint_suite import contents, folder


@pytest.fixture
def store(tmp_path):
    return DirectoryStore(tmp_path / "store")


@pytest.fixture
def ref(store, tmp_path):
    return store.put("j3", 42, folder(tmp_path / "source", {"net": b"weights", "opt/state": b"momentum"}), segment="s7")


def test_a_checkpoint_has_a_readable_name(store, ref):
    assert ref.name == "j3/000042-s7"
    assert (store.root / ref.name / "files" / "net").read_bytes() == b"weights"


def shorten(files):
    (files / "net").write_bytes(b"weigh")


def change(files):
    (files / "opt" / "state").write_bytes(b"Momentum")


def remove(files):
    (files / "net").unlink()


def rewrite_manifest(files):
    manifest = files.parent / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"net"', '"../net"'))


def garble_manifest(files):
    (files.parent / "manifest.json").write_text("{")


def gut_manifest(files):
    (files.parent / "manifest.json").write_text('{"job": "j3", "step": 42, "holds": {"files": 7}}')


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (shorten, "'net' has 5 bytes instead of 7"),
        (change, "'opt/state' has other contents"),
        (remove, "'net' is missing"),
        (rewrite_manifest, "damaged.*leads out"),
        (garble_manifest, "damaged"),
        (gut_manifest, "damaged"),
    ],
)
def test_damage_is_reported_with_its_file(store, ref, tmp_path, damage, says):
    damage(store.root / ref.name / "files")
    with pytest.raises(CheckpointMissing, match=f"job 'j3' at step 42.*{says}") as caught:
        store.get(ref, tmp_path / "back")
    assert caught.value.hint
    assert not (tmp_path / "back").exists()


def test_a_new_save_replaces_one_whose_manifest_is_gone(store, ref, tmp_path):
    garble_manifest(store.root / ref.name / "files")
    assert store.list() == []
    again = store.put("j3", 42, tmp_path / "source", segment="s7")
    assert again == ref
    store.get(again, tmp_path / "back")


def test_a_full_disk_keeps_the_earlier_checkpoint_and_nothing_of_the_new_one(tiny_disk, tmp_path):
    store = DirectoryStore(tiny_disk.path / "store")
    before = store.put("j1", 1, folder(tmp_path / "small", {"net": b"x" * 1000}))
    held = store.size_bytes()
    with pytest.raises(StorageError, match="disk is full: cannot save job 'j1' at step 2") as caught:
        store.put("j1", 2, folder(tmp_path / "large", {"a": b"x" * 100_000, "b": b"y" * 2_000_000}))
    assert "free some space" in caught.value.hint
    assert store.list() == [before]
    assert store.size_bytes() <= held + 100
    store.get(before, tmp_path / "back")
    assert contents(tmp_path / "back") == contents(tmp_path / "small")


def test_a_restore_to_a_full_disk_is_not_reported_as_a_damaged_checkpoint(tiny_disk, store, tmp_path):
    ref = store.put("j1", 1, folder(tmp_path / "large", {"net": b"x" * 2_000_000}))
    with pytest.raises(StorageError, match="disk is full: cannot restore") as caught:
        store.get(ref, tiny_disk.path / "back")
    assert not isinstance(caught.value, CheckpointMissing)
    assert list(tiny_disk.path.iterdir()) == []


def test_a_read_only_store_is_an_error(tiny_disk, tmp_path):
    store = DirectoryStore(tiny_disk.path / "store")
    source = folder(tmp_path / "source", {"net": b"x"})
    ref = store.put("j1", 1, source)
    tiny_disk.make_readonly()
    with pytest.raises(StorageError, match="cannot save"):
        store.put("j1", 2, source)
    with pytest.raises(StorageError, match="cannot drop"):
        store.drop(ref)
    store.get(ref, tmp_path / "back")


def test_a_file_instead_of_the_store_is_an_error(tmp_path):
    (tmp_path / "store").write_text("x")
    store = DirectoryStore(tmp_path / "store")
    assert store.list() == []
    with pytest.raises(StorageError, match="cannot save"):
        store.put("j1", 1, folder(tmp_path / "source", {"net": b"x"}))


def test_a_pipe_cannot_be_saved(store, tmp_path):
    source = folder(tmp_path / "source", {"net": b"x"})
    os.mkfifo(source / "pipe")
    with pytest.raises(StorageError, match="neither a file nor a folder"):
        store.put("j1", 1, source)


def test_links_within_the_folder_still_lead_there_in_the_copy(store, tmp_path):
    source = folder(tmp_path / "source", {"deep/net": b"x"})
    os.symlink(source.absolute() / "deep" / "net", source / "absolute")
    os.symlink("../deep", source / "deep" / "loop")
    os.symlink("not yet", source / "dangling")
    store.get(store.put("j1", 1, source), tmp_path / "back")
    assert (tmp_path / "back" / "absolute").resolve() == tmp_path / "back" / "deep" / "net"
    assert os.readlink(tmp_path / "back" / "dangling") == "not yet"
    assert (tmp_path / "back" / "deep" / "loop" / "net").read_bytes() == b"x"


def test_file_modes_and_unusual_names_are_kept(store, tmp_path):
    odd = os.fsdecode(b"caf\xe9 \n.bin")
    source = folder(tmp_path / "source", {"run.sh": b"#!/bin/sh", odd: b"x"})
    (source / "run.sh").chmod(0o555)
    store.get(store.put("j1", 1, source), tmp_path / "back")
    assert os.access(tmp_path / "back" / "run.sh", os.X_OK)
    assert contents(tmp_path / "back") == contents(source)


def aged(path, seconds):
    for place in (*path.rglob("*"), path):
        os.utime(place, (time.time() - seconds,) * 2)


def test_sweeping_removes_leftovers_of_killed_puts_but_not_puts_under_way(store, ref):
    for name in ("killed long ago", "under way"):
        folder(store.root / ".partial" / name / "files", {"net": b"half"})
    aged(store.root / ".partial" / "killed long ago", 7200)
    assert store.sweep() == (".partial/killed long ago",)
    assert os.listdir(store.root / ".partial") == ["under way"]
    assert store.list() == [ref]


def test_a_long_put_of_one_growing_file_is_under_way_however_old_its_folder(store):
    partial = folder(store.root / ".partial" / "growing" / "files", {"net": b"half"}).parent
    aged(partial, 7200)
    os.utime(partial / "files" / "net")
    assert store.sweep() == ()


def test_sweeping_with_a_list_of_what_to_keep_removes_old_strays_only(store, ref, tmp_path):
    stray = store.put("j3", 50, tmp_path / "source", segment="s8")
    fresh = store.put("j3", 51, tmp_path / "source", segment="s9")
    for old in (ref, stray):
        aged(store.root / old.name, 7200)
    assert store.sweep(keep=[ref]) == (stray.name,)
    assert store.list() == [ref, fresh]


def test_a_drop_that_dies_half_way_is_invisible_and_swept_later(store, ref, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.shutil, "rmtree", lambda *_args, **_kwargs: None)
        store.drop(ref)
    assert store.list() == []
    assert store.size_bytes() > 0
    store.sweep()
    assert os.listdir(store.root / ".dropped") == []


def test_the_store_reports_its_size(store, tmp_path):
    assert store.size_bytes() == 0
    ref = store.put("j1", 1, folder(tmp_path / "source", {"net": b"x" * 50_000}))
    assert 50_000 < store.size_bytes() < 60_000
    store.drop(ref)
    assert store.size_bytes() == 0


def test_a_worker_can_import_the_store_without_heavy_modules():
    code = "import sys, shoestring.storage.checkpoints.directory; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sqlite3", "numpy", "click", "rich", "shoestring.kernel.events"} & set(loaded)
