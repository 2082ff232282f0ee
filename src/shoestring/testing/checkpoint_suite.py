"""CheckpointSuite: the laws of checkpoint stores, as tests to run on your own.

class TestMine(CheckpointSuite):
    def make(self, tmp_path):
        return MyStore(tmp_path / "store")
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from shoestring.errors import CheckpointMissing, StorageError
from shoestring.kernel.types import CheckpointRef, JobId
from shoestring.storage.checkpoints.directory import CheckpointStore

J1, J2 = JobId("j1"), JobId("j2")


class CheckpointSuite:
    """Subclass it, define `make`, and run pytest."""

    def make(self, tmp_path: Path) -> CheckpointStore:
        """A handle on the store kept in `tmp_path / "store"`, as another worker would open it."""
        raise NotImplementedError

    def damage(self, tmp_path: Path, ref: CheckpointRef) -> None:
        """Change a byte of what is stored under `ref`, without the store."""
        import pytest

        del tmp_path, ref
        pytest.skip("the suite of this store does not define `damage`")

    def test_a_folder_is_restored_as_it_was_saved(self, tmp_path: Path) -> None:
        source = folder(
            tmp_path / "source", {"net.npz": b"weights", "opt/state": b"", "opt/deep/er": b"\0" * 3_000_000}
        )
        (source / "nothing here").mkdir()
        os.symlink("opt/state", source / "latest")
        ref = self.make(tmp_path).put(J1, 7, source)
        assert (ref.job, ref.step, ref.size_bytes) == ("j1", 7, 3_000_007)
        self.make(tmp_path).get(ref, tmp_path / "back")
        assert contents(tmp_path / "back") == contents(source)

    def test_a_checkpoint_is_a_copy(self, tmp_path: Path) -> None:
        source = folder(tmp_path / "source", {"net": b"old"})
        store = self.make(tmp_path)
        ref = store.put(J1, 1, source)
        (source / "net").write_bytes(b"new")
        store.get(ref, tmp_path / "a")
        (tmp_path / "a" / "net").write_bytes(b"spoilt")
        store.get(ref, tmp_path / "b")
        assert contents(tmp_path / "b") == {"net": b"old"}

    def test_get_fills_an_empty_folder_and_refuses_one_with_files(self, tmp_path: Path) -> None:
        import pytest

        store = self.make(tmp_path)
        ref = store.put(J1, 1, folder(tmp_path / "source", {"net": b"x"}))
        (tmp_path / "empty").mkdir()
        store.get(ref, tmp_path / "empty")
        assert contents(tmp_path / "empty") == {"net": b"x"}
        full = folder(tmp_path / "full", {"mine": b"y"})
        with pytest.raises(StorageError):
            store.get(ref, full)
        assert contents(full) == {"mine": b"y"}

    def test_a_second_put_of_a_step_of_a_segment_returns_the_first(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        first = store.put(J1, 1, folder(tmp_path / "one", {"net": b"one"}), segment="s1")
        again = store.put(J1, 1, folder(tmp_path / "two", {"net": b"two"}), segment="s1")
        other = store.put(J1, 1, folder(tmp_path / "three", {"net": b"three"}), segment="s2")
        assert again == first
        assert other.name != first.name
        assert {ref.name for ref in store.list()} == {first.name, other.name}
        store.get(first, tmp_path / "back")
        assert contents(tmp_path / "back") == {"net": b"one"}

    def test_the_same_folder_saved_twice_is_one_checkpoint(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        source = folder(tmp_path / "source", {"net": b"one"})
        assert store.put(J1, 1, source) == store.put(J1, 1, source)
        assert len(store.list()) == 1

    def test_checkpoints_are_listed_by_job_and_step(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        assert store.list() == []
        source = folder(tmp_path / "source", {"net": b"x"})
        refs = [store.put(job, step, source) for job, step in ((J2, 5), (J1, 1_000_000), (J1, 20), (J1, 3))]
        assert store.list() == refs[::-1]
        assert store.list(J2) == refs[:1]
        assert store.list(JobId("j")) == []

    def test_a_dropped_checkpoint_is_missing_and_the_others_stay(self, tmp_path: Path) -> None:
        import pytest

        store = self.make(tmp_path)
        one = store.put(J1, 1, folder(tmp_path / "one", {"net": b"one"}))
        two = store.put(J1, 2, folder(tmp_path / "two", {"net": b"two"}))
        store.drop(one)
        store.drop(one)
        assert store.list() == [two]
        with pytest.raises(CheckpointMissing, match=r"j1.*step 1"):
            store.get(one, tmp_path / "back")
        assert not (tmp_path / "back").exists()
        store.get(two, tmp_path / "back")

    def test_a_damaged_checkpoint_is_never_restored(self, tmp_path: Path) -> None:
        import pytest

        store = self.make(tmp_path)
        before = store.put(J1, 1, folder(tmp_path / "one", {"net": b"one"}))
        ref = store.put(J1, 2, folder(tmp_path / "two", {"net": b"two", "opt": b"adam"}))
        self.damage(tmp_path, ref)
        with pytest.raises(CheckpointMissing, match=r"j1.*step 2.*damaged"):
            store.get(ref, tmp_path / "back")
        left = {path.name for path in tmp_path.iterdir() if path.name not in ("store", "one", "two")}
        assert left == set(), "no files of a damaged checkpoint are left behind"
        store.get(before, tmp_path / "back")

    def test_another_checkpoint_of_the_same_name_is_not_restored(self, tmp_path: Path) -> None:
        import pytest

        store = self.make(tmp_path)
        ref = store.put(J1, 1, folder(tmp_path / "one", {"net": b"one"}), segment="s1")
        store.drop(ref)
        store.put(J1, 1, folder(tmp_path / "two", {"net": b"two"}), segment="s1")
        with pytest.raises(CheckpointMissing):
            store.get(ref, tmp_path / "back")

    def test_links_out_of_the_folder_are_refused(self, tmp_path: Path) -> None:
        import pytest

        store = self.make(tmp_path)
        for target in ("/etc/passwd", "../secret", "sub/../../secret"):
            source = folder(tmp_path / "source", {"sub/net": b"x"})
            os.symlink(target, source / "link")
            with pytest.raises(StorageError, match="link"):
                store.put(J1, 1, source)
            (source / "link").unlink()
        assert store.list() == []

    def test_names_out_of_the_store_are_refused(self, tmp_path: Path) -> None:
        import pytest

        store = self.make(tmp_path)
        source = folder(tmp_path / "source", {"net": b"x"})
        for bad in ("..", "../j1", "/j1", "a/b", "", ".hidden", "a\0b"):
            with pytest.raises(StorageError):
                store.put(JobId(bad), 1, source)
        for bad in ("..", "../s", "/s", "a/b"):
            with pytest.raises(StorageError):
                store.put(J1, 1, source, segment=bad)
        ref = store.put(J1, 1, source)
        for bad in ("../outside", "/etc", "j1/../../outside", "j1", "j1/.."):
            with pytest.raises(StorageError):
                store.get(msgspec.structs.replace(ref, name=bad), tmp_path / "back")
            with pytest.raises(StorageError):
                store.drop(msgspec.structs.replace(ref, name=bad))
        assert store.list() == [ref]

    def test_a_missing_source_is_a_storage_error(self, tmp_path: Path) -> None:
        import pytest

        store = self.make(tmp_path)
        with pytest.raises(StorageError, match="nothing to save"):
            store.put(J1, 1, tmp_path / "never written")


def folder(path: Path, files: dict[str, bytes]) -> Path:
    """A folder with these files."""
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def contents(path: Path) -> dict[str, bytes | str | None]:
    """Everything below a folder: bytes of files, targets of links, None for folders."""
    return {
        str(place.relative_to(path)): os.readlink(place)
        if place.is_symlink()
        else place.read_bytes()
        if place.is_file()
        else None
        for place in sorted(path.rglob("*"))
    }
