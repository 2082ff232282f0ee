"""Every error Shoestring raises on purpose.

    ShoestringError                    .hint: what to do about it
    ├─ SpecError        (ValueError)   the run as described is impossible: bad space, a budget below the cheapest offer
    ├─ DataError        (ValueError)   an input file is invalid: prices, curves, tables
    ├─ MissingExtra     (ImportError)  an optional library is missing; the hint installs it
    ├─ PolicyError                     a bug in a policy: nothing of this turn was recorded or done; the run parks
    │   └─ IllegalDecision             starts a pruned job, releases an unknown lease
    ├─ BackendError
    │   ├─ TransientError              throttled, network; the live world retries with backoff
    │   └─ PermanentError              credentials, quota, no such command; the run pauses and reports it
    └─ StorageError
        ├─ JournalTaken                another controller holds this run
        ├─ JournalDamaged              names the damaged entry
        ├─ DamagedFile                 names the file
        └─ CheckpointMissing           the job restarts from the previous checkpoint

What the cloud does (a revocation, no capacity) is an event, never an exception.
"""

from __future__ import annotations

import importlib
from types import ModuleType


class ShoestringError(Exception):
    """Base of all. `hint` says how to fix it; the command line prints it under the message."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SpecError(ShoestringError, ValueError):
    """The run as described is impossible."""


class DataError(ShoestringError, ValueError):
    """An input file is invalid."""


class MissingExtra(ShoestringError, ImportError):
    """An optional library is missing."""


class PolicyError(ShoestringError):
    """A policy broke its contract: nothing of this turn was recorded or done."""


class IllegalDecision(PolicyError):
    """A decision that is invalid in the current state."""


class BackendError(ShoestringError):
    """The backend or the cloud failed."""


class TransientError(BackendError):
    """Worth a retry."""


class PermanentError(BackendError):
    """Will not go away without the user."""


class StorageError(ShoestringError):
    """The journal or the checkpoint store failed."""


class JournalTaken(StorageError):
    """Another controller holds the lock of this run."""


class JournalDamaged(StorageError):
    """The journal does not contain what was written to it."""


class DamagedFile(StorageError):
    """A file of a run is empty or does not contain what was written to it."""


class CheckpointMissing(StorageError):
    """A checkpoint is missing or differs from what was saved."""


def need(module: str, *, extra: str) -> ModuleType:
    """Import an optional library on first use, or raise with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"this needs the library {module.partition('.')[0]!r}, which is not installed",
            hint=f"pip install 'shoestring[{extra}]'",
        ) from error
