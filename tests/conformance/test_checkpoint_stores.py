"""The checkpoint stores we ship satisfy the laws of checkpoint stores."""

from pathlib import Path

from shoestring.kernel.types import CheckpointRef
from shoestring.storage.checkpoints.directory import CheckpointStore, DirectoryStore
from shoestring.testing.checkpoint_suite import CheckpointSuite


class TestDirectoryStore(CheckpointSuite):
    def make(self, tmp_path: Path) -> CheckpointStore:
        return DirectoryStore(tmp_path / "store")

    def damage(self, tmp_path: Path, ref: CheckpointRef) -> None:
        stored = next(path for path in (tmp_path / "store" / ref.name / "files").rglob("*") if path.is_file())
        data = bytearray(stored.read_bytes())
        data[0] ^= 1
        stored.write_bytes(data)
