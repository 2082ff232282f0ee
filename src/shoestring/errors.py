"""Every error Shoestring raises on purpose.

    ShoestringError                    .hint: what to do about it
    ├─ SpecError        (ValueError)   the run as described cannot be: bad space, a budget below the cheapest offer
    ├─ DataError        (ValueError)   a file we were given to read is not what it should be: prices, curves, tables
    ├─ MissingExtra     (ImportError)  an optional library is absent; names the line to type
    ├─ PolicyError                     a bug in a policy: nothing of this turn was recorded or done; the run parks
    │   └─ IllegalDecision             starts a dropped job, releases an unknown lease
    ├─ BackendError
    │   ├─ TransientError              throttled, network; the live world retries with backoff
    │   └─ PermanentError              credentials, quota, no such command; the run pauses and says so
    └─ StorageError
        ├─ JournalTaken                another controller holds this run
        ├─ JournalDamaged              refuses to guess; names the entry
        └─ CheckpointMissing           the job restarts from the checkpoint before

What the cloud does to us (a revocation, no capacity) is an event, never an exception.
"""

from __future__ import annotations

import importlib
from types import ModuleType


class ShoestringError(Exception):
    """Base of all. `hint` is the way out, in words; the command line prints it under the message."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SpecError(ShoestringError, ValueError):
    """The run as described cannot be."""


class DataError(ShoestringError, ValueError):
    """A file we were given to read is not what it should be."""


class MissingExtra(ShoestringError, ImportError):
    """An optional library is absent."""


class PolicyError(ShoestringError):
    """A policy broke its contract: nothing of this turn was recorded or done."""


class IllegalDecision(PolicyError):
    """A decision that makes no sense in the present state."""


class BackendError(ShoestringError):
    """The place where machines come from failed us."""


class TransientError(BackendError):
    """Worth another try."""


class PermanentError(BackendError):
    """Will not go away by itself."""


class StorageError(ShoestringError):
    """The journal or the checkpoint store failed us."""


class JournalTaken(StorageError):
    """Another controller holds this run."""


class JournalDamaged(StorageError):
    """The journal does not hold what was written to it."""


class CheckpointMissing(StorageError):
    """A checkpoint is gone or is not what was saved."""


def need(module: str, *, extra: str) -> ModuleType:
    """Import an optional library on first use, or say which line to type."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"this needs the library {module.partition('.')[0]!r}, which is not installed",
            hint=f"pip install 'shoestring[{extra}]'",
        ) from error
