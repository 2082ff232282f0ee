"""Access tokens by name, stored as hashes in a file only its owner can read.

A token is 256 random bits, so a plain SHA-256 of it cannot be inverted by guessing. It is shown once, when it is
created.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import sys
import time
from pathlib import Path

import msgspec

from shoestring.errors import SpecError, StorageError
from shoestring.runs.folder import TOKENS
from shoestring.worker.task import write_json

FILE = TOKENS
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_PREFIX = "shoe_"
"""Lets scanners for leaked secrets recognize one."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    sha256: str
    made_at: float


def add_token(file: Path, name: str) -> str:
    """Create a token; the only time it is returned."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{name!r} cannot name a token", hint="up to 64 letters, digits, '.', '_', '@' and '-', e.g. alice-laptop"
        )
    known = read_tokens(file)
    if any(token.name == name for token in known):
        raise SpecError(f"there is a token {name!r} already", hint=f"shoestring serve token revoke {name}")
    secret = _PREFIX + secrets.token_urlsafe(32)
    _write(file, [*known, Token(name=name, sha256=_hashed(secret), made_at=time.time())])
    return secret


def revoke_token(file: Path, name: str) -> None:
    """Delete a token; running servers notice with the next request."""
    known = read_tokens(file)
    left = [token for token in known if token.name != name]
    if len(left) == len(known):
        names = ", ".join(token.name for token in known) or "none"
        raise SpecError(f"there is no token {name!r}", hint=f"there are: {names}")
    _write(file, left)


def read_tokens(file: Path) -> list[Token]:
    try:
        with file.open("rb") as opened:
            if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                raise StorageError(f"{file} is open to others than its owner", hint=f"chmod 600 {file}")
            return msgspec.json.decode(opened.read(), type=list[Token])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise StorageError(
            f"{file} cannot be read: {error}", hint="restore it, or remove it and create new tokens"
        ) from None


class TokenStore:
    """Checks tokens. Reads the file again when it has changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen: tuple[int, int] | None = None
        self._tokens: list[Token] = []

    def name_of(self, secret: str) -> str | None:
        """The name of this token. Compares with every token, each in constant time, so timing reveals nothing."""
        presented = _hashed(secret)
        found = None
        for token in self._current():
            if hmac.compare_digest(token.sha256, presented):
                found = token.name
        return found

    def _current(self) -> list[Token]:
        try:
            now = self._file.stat()
        except OSError:
            return []
        if (now.st_ino, now.st_ctime_ns) != self._seen:
            try:
                self._tokens = read_tokens(self._file)
            except StorageError as error:  # if the file cannot be trusted, every request is refused
                sys.stderr.write(f"shoestring: all requests are refused: {error}\n")
                self._tokens = []
            self._seen = now.st_ino, now.st_ctime_ns
        return self._tokens


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _write(file: Path, tokens: list[Token]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = os.umask(0o077)  # the file must never be readable by others, not even for a moment
        try:
            write_json(file, tokens)
        finally:
            os.umask(before)
    except OSError as error:
        raise StorageError(
            f"cannot write {file}: {error.strerror}", hint="choose another folder with --store"
        ) from error
