"""Accounts: slurmdbd over a MariaDB of its own, on loopback, so that Slurm says when each job began and ended."""

import os
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from shoestring.worker.ranks import free_port

PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb", "sacct", "sacctmgr")
PACKAGES = ("slurmdbd", "mariadb-server")
CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=slurm
StoragePass=accounts
StorageLoc=slurm_accounts
"""
OF_SLURM = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.socket
AccountingStoreFlags=job_comment
"""
DATABASE_USER = (
    "CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY 'accounts'; GRANT ALL ON slurm_accounts.* TO 'slurm'@'127.0.0.1';"
)


class AccountedJob(NamedTuple):
    name: str
    comment: str
    nodes: str
    state: str
    began_at: float
    ended_at: float


class Accounts:
    """Started before slurmctld; `ended` by the caller, with all it started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen] = []
        self.port, self._database_port = free_port(), free_port()
        conf = folder / "slurmdbd.conf"
        host = os.uname().nodename.partition(".")[0]
        conf.write_text(CONF.format(folder=folder, host=host, port=self.port, database_port=self._database_port))
        conf.chmod(0o600)

    @property
    def settings(self) -> str:
        """For slurm.conf."""
        return OF_SLURM.format(port=self.port, folder=self.folder)

    def start(self, environment: dict[str, str]) -> None:
        """munged must be up."""
        data, socket = self.folder / "accounts", self.folder / "accounts.socket"
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db",
             "--auth-root-authentication-method=normal"],
            check=True, capture_output=True,
        )  # fmt: skip
        self._run(
            environment, "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={socket}",
            f"--port={self._database_port}", "--bind-address=127.0.0.1", f"--pid-file={self.folder}/accounts.pid",
            "--innodb-buffer-pool-size=64M",
        )  # fmt: skip
        client = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"]
        _until(lambda: subprocess.run([*client, "-e", "SELECT 1"], capture_output=True, check=False).returncode == 0)
        subprocess.run([*client, "-e", DATABASE_USER], check=True, capture_output=True)
        self._run(environment, "slurmdbd", "-D")
        add = ["sacctmgr", "--immediate", "add", "cluster", "small"]
        _until(lambda: subprocess.run(add, env=environment, capture_output=True, check=False).returncode == 0)

    def _run(self, environment: dict[str, str], *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("ab") as log:
            program = [shutil.which(command[0]), *command[1:]]
            self._started.append(
                subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
            )

    def jobs(self, environment: dict[str, str]) -> list[AccountedJob]:
        """Every job there ever was that has ended."""
        fields = "JobName%100,Comment%100,NodeList%100,State,Start,End"
        words = ["sacct", "--allusers", "--allocations", "--parsable2", "--noheader", f"--format={fields}"]
        words += ["--starttime=2000-01-01", "--duplicates"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=60)
        rows = [line.split("|") for line in done.stdout.splitlines()]
        return [
            AccountedJob(name, comment, nodes, state, _wall(began), _wall(ended))
            for name, comment, nodes, state, began, ended in rows
            if began.startswith("2") and ended.startswith("2")
        ]

    def end(self) -> None:
        for process in reversed(self._started):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _wall(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _until(ready, seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, "the accounts of Slurm do not come up"
        time.sleep(0.2)
