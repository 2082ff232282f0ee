"""Options that name a file, such as a fitted model.

A resumed run must decide as it would have. So a file's path is recorded with a digest of its content, and other content
under the same path is refused.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from shoestring.errors import DataError
from shoestring.kernel.spec import RunSpec

_PINNED = re.compile(r"(?P<path>.+)#(?P<digest>[0-9a-f]{16})")


@dataclass(frozen=True)
class FileOption:
    option: str
    words: tuple[str, ...]
    """Values of the option that name no file."""
    what: str
    """What is in the file, for people."""
    made_with: str

    def named(self, spec: RunSpec) -> str | None:
        value = spec.options.get(self.option)
        return value if isinstance(value, str) and value not in self.words else None

    def pinned(self, spec: RunSpec, folder: Path) -> RunSpec:
        """The spec with the file's absolute path and the digest of its current content, if it names a file at all. A
        relative path starts at `folder`."""
        path = self.named(spec)
        if path is None or _PINNED.fullmatch(path):
            return spec
        whole = os.path.abspath(folder / Path(path).expanduser())
        return replace(spec, options={**spec.options, self.option: f"{whole}#{_digest(self._content(whole))}"})

    def read(self, named: str) -> tuple[bytes, str]:
        """The content of the file, if it is unchanged, and its path."""
        found = _PINNED.fullmatch(named)
        path = named if found is None else found["path"]
        content = self._content(path)
        if found is not None and _digest(content) != found["digest"]:
            raise DataError(
                f"{path} is not the {self.what} that this run began with: its content has changed",
                hint="restore the old file, or start again with --fresh",
            )
        return content, path

    def _content(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            words = "".join(f"{word!r}, " for word in self.words).removesuffix(", ")
            raise DataError(
                f"options.{self.option}={path!r} cannot be read: {error.strerror}",
                hint=f"it is {words} or the path of a {self.what} made with {self.made_with}",
            ) from error


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()
