"""Overhead of a trial: CPU per trial with 10 reports, against Optuna; start-up, growth, memory.

Ours is the whole product: the inline backend and a journal in SQLite that survives kill -9. Every figure is CPU time of
this process or of a fresh one, interleaved with its baseline.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.one_trial import run_cpu_s
from benchmarks.rows import Row, arguments, as_installed, cpu_s, median_ratio, publish

REPORTS = 10
MANY_REPORTS = 50
_ONE_TRIAL_OF_OPTUNA = """
import optuna
optuna.create_study().optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=1)
"""


def shoestring_cpu_s(trials: int, reports: int = REPORTS) -> float:
    import shoestring as ss

    def train(trial: ss.Trial) -> None:
        x = trial["x"]
        for step in trial.steps():
            trial.report(loss=x * x + 1 / step)

    with tempfile.TemporaryDirectory() as store:
        return cpu_s(
            lambda: ss.tune(
                train,
                space={"x": ss.uniform(-1, 1), "y": ss.log(1e-4, 1), "z": ss.choice("a", "b")},
                minimize="loss",
                max_steps=reports,
                trials=trials,
                recipe="random",
                on="inline",
                name="bench",
                store=store,
            )
        )


def optuna_cpu_s(trials: int, reports: int = REPORTS, *, sqlite: bool) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1, 1)
        trial.suggest_float("y", 1e-4, 1, log=True)
        trial.suggest_categorical("z", ["a", "b"])
        loss = 0.0
        for step in range(1, reports + 1):
            loss = x * x + 1 / step
            trial.report(loss, step)
        return loss

    with tempfile.TemporaryDirectory() as folder:
        storage = f"sqlite:///{folder}/optuna.db" if sqlite else None
        study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=0))
        return cpu_s(lambda: study.optimize(objective, n_trials=trials))


def command_cpu_s(*argv: str) -> float:
    """CPU seconds of a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, env=as_installed(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def against_optuna(trials: int, sqlite_trials: int, repeats: int) -> list[Row]:
    shoestring_cpu_s(50)
    optuna_cpu_s(50, sqlite=False)
    ours, memory, ratio = median_ratio(
        lambda: shoestring_cpu_s(trials) / trials, lambda: optuna_cpu_s(trials, sqlite=False) / trials, repeats
    )
    _, _, many = median_ratio(
        lambda: shoestring_cpu_s(trials, MANY_REPORTS),
        lambda: optuna_cpu_s(trials, MANY_REPORTS, sqlite=False),
        repeats,
    )
    database = statistics.median(optuna_cpu_s(sqlite_trials, sqlite=True) / sqlite_trials for _ in range(3))
    return [
        Row("durable_cpu_per_trial", 1e3 * ours, "ms", f"{trials} trials x {REPORTS} reports, median of {repeats}"),
        Row("optuna_memory_cpu_per_trial", 1e3 * memory, "ms", "the same, nothing kept"),
        Row("optuna_sqlite_cpu_per_trial", 1e3 * database, "ms", f"{sqlite_trials} trials, median of 3"),
        Row("durable_cpu_vs_optuna_memory", ratio, "ratio", "goal <= 1.0, at least <= 2.0"),
        Row("durable_cpu_vs_optuna_memory_50_reports", many, "ratio", f"{MANY_REPORTS} reports a trial instead"),
        Row("durable_cpu_vs_optuna_sqlite", ours / database, "ratio", "goal <= 0.02"),
    ]


def start_up(repeats: int) -> list[Row]:
    python, folder = sys.executable, Path(sys.executable).parent

    def less_bare(*argv: str) -> Callable[[], float]:
        return lambda: command_cpu_s(*argv) - bare

    bare = statistics.median(command_cpu_s(python, "-c", "pass") for _ in range(repeats))
    numpy = less_bare(python, "-c", "import numpy")
    _, _, importing = median_ratio(less_bare(python, "-c", "import shoestring"), numpy, repeats)
    _, _, with_api = median_ratio(less_bare(python, "-c", "import shoestring.runs.launch"), numpy, repeats)
    helping, theirs, help_ratio = median_ratio(
        lambda: command_cpu_s(str(folder / "shoestring"), "--help"),
        lambda: command_cpu_s(str(folder / "optuna"), "--help"),
        repeats,
    )
    running, _, run_ratio = median_ratio(run_cpu_s, lambda: command_cpu_s(python, "-c", _ONE_TRIAL_OF_OPTUNA), repeats)
    return [
        Row("import_cpu_vs_numpy", importing, "ratio", "import shoestring, the interpreter taken off; goal <= 1.5"),
        Row("import_api_cpu_vs_numpy", with_api, "ratio", "with all that tune() needs, loaded on its first use"),
        Row("help_cpu", 1e3 * helping, "ms", f"optuna --help: {1e3 * theirs:.0f} ms"),
        Row("help_cpu_vs_optuna", help_ratio, "ratio", "goal <= 0.15"),
        Row("run_cpu_one_trial", 1e3 * running, "ms", "shoestring run: controller, supervisors and user code"),
        Row("run_cpu_one_trial_vs_optuna", run_ratio, "ratio", "optuna: one trial in one process, nothing kept"),
    ]


def growth(trials: int, repeats: int) -> list[Row]:
    """Does the last tenth of a large study cost more than the first? In processes of their own, for their memory."""
    size, rows = f"{trials // 1000}k", []
    for recipe, name in (("random", size), ("asha", f"asha_{size}")):
        argv = [sys.executable, "-m", "benchmarks.growth", str(trials), recipe]
        printed = [subprocess.run(argv, check=True, capture_output=True, text=True).stdout for _ in range(repeats)]
        figures = [[float(word) for word in text.split()] for text in printed]
        ratio, rss_mb, events = (statistics.median(column) for column in zip(*figures, strict=True))
        what = f"{recipe}: CPU per event, last tenth of {events:.0f} against the first, median of {repeats}"
        rows += [
            Row(f"growth_{name}_trials", ratio, "ratio", f"{what}; goal <= 1.2"),
            Row(f"rss_mb_{name}_trials", rss_mb, "MB", f"{recipe}: largest resident size of the whole process"),
        ]
    return rows


def main() -> None:
    args = arguments(__doc__ or "")
    rows = against_optuna(200, 20, 3) if args.quick else against_optuna(1000, 100, 7)
    rows += start_up(5 if args.quick else 11)
    rows += growth(5_000, 1) if args.quick else growth(100_000, 5)
    publish(rows, args.json)


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"({time.monotonic() - began:.0f} s)")
