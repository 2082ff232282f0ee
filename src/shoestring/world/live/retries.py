"""Retries of decisions that failed transiently, in order: later ones on the same lease or segment wait."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from shoestring.errors import BackendError, PermanentError, ShoestringError, StorageError, TransientError
from shoestring.kernel.decisions import Decision

_FIRST_WAIT_S = 0.5
_MOST_TRIES = 8
"""Waits double, so the last try comes about a minute after the first."""


class _Stuck:
    def __init__(self, decision: Decision) -> None:
        self.decisions = deque([decision])
        self.tries = 1
        self.next_at = time.monotonic() + _FIRST_WAIT_S


class Retries:
    """`act` carries a decision out; `give_up` is called for those that cannot be."""

    def __init__(self, act: Callable[[Decision], None], give_up: Callable[[Decision, ShoestringError], None]) -> None:
        self._act = act
        self._give_up = give_up
        self._stuck: dict[str, _Stuck] = {}

    def do(self, decision: Decision) -> None:
        subject = _subject(decision)
        if subject in self._stuck:
            self._stuck[subject].decisions.append(decision)
        elif not self._tried(decision):
            self._stuck[subject] = _Stuck(decision)

    def again(self) -> None:
        """Retry every decision whose wait is over."""
        if not self._stuck:
            return
        now = time.monotonic()
        for subject, stuck in list(self._stuck.items()):
            while stuck.decisions and now >= stuck.next_at:
                last = stuck.tries + 1 >= _MOST_TRIES
                if not self._tried(stuck.decisions[0], last=last):
                    stuck.next_at = now + _FIRST_WAIT_S * 2**stuck.tries
                    stuck.tries += 1
                    break
                stuck.decisions.popleft()
                stuck.tries = 0
            if not stuck.decisions:
                del self._stuck[subject]

    def _tried(self, decision: Decision, *, last: bool = False) -> bool:
        """True when it was carried out or given up."""
        try:
            self._act(decision)
        except TransientError as error:
            if not last:
                return False
            self._give_up(decision, error)
        except (BackendError, StorageError) as error:
            self._give_up(decision, error)
        except OSError as error:  # a full disk, a folder that was removed
            self._give_up(decision, PermanentError(f"{error.strerror or error}: {error.filename or 'this machine'}"))
        return True


def _subject(decision: Decision) -> str:
    return str(getattr(decision, "lease", None) or getattr(decision, "segment", None) or decision.id)
