"""KeptProcess: a Ray head or node on this machine under a keeper, started by this controller or an earlier one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from shoestring.backends.ray.keeper import KEEP, KEPT_IN, Keep, KeeperSignature, clear_up, end_session
from shoestring.worker.process_identity import birth
from shoestring.worker.task import LOG, PID, read_json, write_json

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # user code sees the GPUs it would see without Ray
    "RAY_health_check_initial_delay_ms": "3000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
}
RAY_START = (sys.executable, "-P", "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats")
SMALL = ("--num-cpus=0", "--num-gpus=0", "--object-store-memory=80000000", "--include-log-monitor=false")
"""We count slots ourselves, and only small messages go through Ray: no prestarted workers, a minimal object store."""


class KeptProcess:
    """Its folder holds everything that is known: another instance, after a kill -9, finds it there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ours: subprocess.Popen[bytes] | None = None
        self._signed: KeeperSignature | None = None
        self._keep: Keep | None = None

    @property
    def keep(self) -> Keep | None:
        if self._keep is None and (self._folder / KEEP).exists():
            self._keep = read_json(self._folder / KEEP, Keep)
        return self._keep

    def start(self, keep: Keep, environment: Mapping[str, str] | None = None) -> None:
        """Harmless if a keeper is running already: only one ever gets the folder's lock."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(keep)
        with (self._folder / LOG).open("ab") as log:
            self._ours = subprocess.Popen(
                [sys.executable, "-P", "-m", "shoestring.backends.ray.keeper", str(self._folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **_ENVIRONMENT, KEPT_IN: str(self._folder), **(environment or {})},
                start_new_session=True,
            )

    def keep_until(self, end_at: float) -> None:
        keep = self.keep
        if keep is not None and keep.end_at != end_at:
            self._write(msgspec.structs.replace(keep, end_at=end_at))

    def _write(self, keep: Keep) -> None:
        write_json(self._folder / KEEP, keep)
        self._keep = keep

    @property
    def never_started(self) -> bool:
        return self._ours is None and self._signed_in() is None

    def alive(self) -> bool:
        """Is it running, or about to?"""
        running = self._ours is not None and self._ours.poll() is None  # poll() also reaps it
        signed = self._signed_in()
        return running if signed is None else birth(signed.pid) == signed.birth

    def end(self) -> None:
        """Kill its whole session, workers with user code included, and wait until all of it is dead."""
        keep = self.keep
        if keep is None:
            return  # never started, or ended before
        self.keep_until(0.0)  # a keeper that is still starting finds that its time is over
        signed = self._signed_in()
        if signed is not None:
            keeper_alive = birth(signed.pid) == signed.birth
            end_session(signed.pid, kept_in=None if keeper_alive else self._folder)
        elif self._ours is not None and self._ours.poll() is None:
            end_session(self._ours.pid)
        if self._ours is not None:
            self._ours.wait()
        clear_up(keep)
        (self._folder / KEEP).unlink(missing_ok=True)
        self._keep = None

    def exit_reason(self) -> str:
        """The last line it printed."""
        try:
            lines = (self._folder / LOG).read_text(errors="replace").strip().splitlines()
        except FileNotFoundError:
            lines = []
        return lines[-1][:300] if lines else "it printed nothing"

    def _signed_in(self) -> KeeperSignature | None:
        if self._signed is None:
            try:
                self._signed = read_json(self._folder / PID, KeeperSignature)
            except FileNotFoundError:
                return None
        return self._signed
