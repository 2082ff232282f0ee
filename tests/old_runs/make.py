"""Make whole run folders, one finished and one half-way for each kind:  python -m tests.old_runs.make NAME

`NAME` is a folder to be made beside this file. What lies there already was made by earlier releases and is never made
again: the promise is that it opens, reports and resumes for ever.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import shoestring as ss
from shoestring.client import Client

HERE = Path(__file__).parent
PLACE = Path("/tmp/old_runs")
"""Always the same: a run with a model file holds on to the path of that."""
CLI = [sys.executable, "-c", "from shoestring.cli import main; main()"]
KINDS = ("study", "bag", "trimtuner", "spottune")
HALFWAY = {"study": signal.SIGKILL, "bag": signal.SIGINT, "trimtuner": signal.SIGKILL, "spottune": signal.SIGINT}
"""Runs in a market's fast time are paused, for its clock stands still only while nothing is rented."""


def main(name: str) -> None:
    kept = HERE / name
    kept.mkdir()
    shutil.rmtree(PLACE, ignore_errors=True)
    for kind in (*KINDS, "service"):
        folder = PLACE / kind
        folder.mkdir(parents=True)
        (_serve_runs if kind == "service" else _run)(folder, kind)
        (folder / "facts.json").write_text(json.dumps(_facts(folder), indent=1) + "\n")
        with tarfile.open(kept / f"{kind}.tar.gz", "w:gz") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name, filter=_plain)
        print(f"{kind}: {(kept / f'{kind}.tar.gz').stat().st_size} bytes")
    shutil.rmtree(PLACE)


def _run(folder: Path, kind: str) -> None:
    shutil.copy(HERE / "programs" / f"{kind}.py", folder)
    _model_files(folder, kind)
    command = [*CLI, "run", f"{kind}.py", "--store", "runs"]
    subprocess.run([*command, "--name", "finished"], cwd=folder, check=True)
    running = subprocess.Popen([*command, "--name", "halfway"], cwd=folder)
    _wait_for_reports(folder / "runs" / "halfway")
    running.send_signal(HALFWAY[kind])
    running.wait()
    _end_workers(folder)


def _serve_runs(folder: Path, kind: str) -> None:
    spec = json.loads((HERE / "programs" / f"{kind}.json").read_text())
    token = subprocess.check_output([*CLI, "serve", "token", "add", "old", "--store", "runs"], cwd=folder, text=True)
    serving = subprocess.Popen(
        [*CLI, "serve", "--store", "runs", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert serving.stdout is not None
    address = serving.stdout.readline().split(" on ")[1].partition(",")[0]
    client = Client(address, token.split()[-1])
    client.submit({**spec, "name": "finished"})
    client.wait("finished")
    client.submit({**spec, "name": "halfway"})
    _wait_for_reports(folder / "runs" / "halfway")
    serving.terminate()
    serving.wait()
    _end_workers(folder)


def _model_files(folder: Path, kind: str) -> None:
    if kind == "bag":
        rows = "".join(f"n1-highcpu-16,us-east1-b,{hours * 3600},{hours < 24}\n" for hours in (1, 2, 3, 9, 15, 22, 24))
        (folder / "lives.csv").write_text("machine,zone,lifetime_s,revoked\n" + rows * 5)
        subprocess.run([*CLI, "lifetimes", "fit", "lives.csv", "-o", "lifetimes.json"], cwd=folder, check=True)
    if kind == "spottune":
        from datetime import UTC, datetime

        day = 86400
        with open(folder / "prices.csv", "w") as file:
            print("timestamp,machine,zone,usd_per_hour", file=file)
            for number, machine in enumerate(("m3.medium", "r3.large")):
                for hour in range(24 * 12):
                    at = datetime.fromtimestamp(1_700_000_000 // day * day + hour * 3600, UTC).isoformat()
                    print(at, machine, "us-east-1a", 0.01 * (1 + (hour * 7 + number) % 13), sep=",", file=file)
        fit = [*CLI, "market", "fit", "prices.csv", "-o", "model.json", "--examples", "500"]
        subprocess.run(fit, cwd=folder, check=True)


def _wait_for_reports(run: Path, reports: int = 10) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if run.joinpath("journal.sqlite").exists():
            entries = ss.Study.in_folder(_folder(run)).entries()
            if sum(type(entry.event).__name__ == "JobReported" for entry in entries) >= reports:
                return
        time.sleep(0.1)
    raise SystemExit(f"{run} does not get on")


def _facts(folder: Path) -> dict[str, dict[str, object]]:
    """What this release says of the runs: what every later one must say too."""
    facts: dict[str, dict[str, object]] = {}
    for name in ("finished", "halfway"):
        study = ss.Study.in_folder(_folder(folder / "runs" / name))
        facts[name] = {
            "phase": study.state.phase,
            "ending": study.state.ending,
            "trials": len(study.state.jobs),
            "best": None if study.best is None else study.best.value,
            "steps": {job: record.step for job, record in study.state.jobs.items()},
            "spent_usd": study.state.spent_usd,
        }
    return facts


def _folder(path: Path):  # type: ignore[no-untyped-def]
    try:
        from shoestring.runs.folder.folder import RunFolder
    except ImportError:
        from shoestring.runs.folder import RunFolder
    return RunFolder(path)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without owners, and without what only told processes apart."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return None if member.name.endswith((".lock", "__pycache__")) else member


def _end_workers(folder: Path) -> None:
    """A controller that was killed leaves workers: no controller comes back here to adopt them."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            mine = str(folder).encode() in path.read_bytes()
        except OSError:
            continue
        if mine and int(path.parent.name) != os.getpid():
            os.kill(int(path.parent.name), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
