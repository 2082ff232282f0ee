"""A network trained for real over hyperparameters, machines and data fractions, against an exhaustive sweep.

    python -m benchmarks.trimmed_for_real [--quick] [--json FILE]

`examples/workloads/trimmed.py`, as processes of this computer that emulate machines of three types, under constraints
on the cost and the time of a run on all of the data. The sweep trains every configuration on all of the data; its
measurements score the recommendation of `trimtuner`. `--quick` sweeps a part of the space.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import shoestring as ss
from benchmarks.datasets import announce, data_folder
from benchmarks.rows import Row, arguments, publish
from shoestring.report.study import Study
from shoestring.worker.loading import load_function

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "workloads"
TRIALS, QUICK_TRIALS = 20, 8
GOAL = 0.95
"""Of the best accuracy that satisfies the constraints."""
SPEEDUP = 600
"""Of the market's clock: an hour of it takes six seconds."""


def main() -> None:
    args = arguments(__doc__ or "")
    if not (data_folder() / "fashion_mnist_20k_5k.npz").exists():
        print(f"skipped: fashion_mnist_20k_5k.npz is not in {data_folder()}; set SHOESTRING_DATA to its folder")
        return
    announce("fashion_mnist", ["fashion_mnist_20k_5k"])
    train = load_function("trimmed.py:train", EXAMPLE)
    example: Mapping[str, Any] = train.__globals__
    space = dict(example["SPACE"])
    if args.quick:
        space |= {"width": ss.choice(16, 64), "batch": ss.constant(128), "machine": ss.machine_type("m5.large")}
    with tempfile.TemporaryDirectory() as folder:
        trimmed = _tuned(train, example, space, "trimtuner", folder, QUICK_TRIALS if args.quick else TRIALS)
        swept = _tuned(train, example, space, "grid", folder)
        publish(_rows(trimmed, swept), args.json)


def _tuned(
    train: Callable[[ss.Trial], None],
    example: Mapping[str, Any],
    space: Mapping[str, object],
    recipe: str,
    folder: str,
    trials: int | None = None,
) -> Study:
    print(f"\n{recipe}:", flush=True)
    return ss.tune(
        train,
        name=recipe,
        store=folder,
        space=space,
        maximize=example["METRIC"],
        max_steps=example["MAX_STEPS"],
        fractions=example["FRACTIONS"] if recipe == "trimtuner" else (),
        constraints=example["LIMITS"],
        recipe=recipe,
        **({} if trials is None else {"trials": trials}),
        budget="$100",
        deadline="30d",
        max_machines=2,
        speedup=SPEEDUP,
    )


def _rows(trimmed: Study, swept: Study) -> list[Row]:
    answer, best, all_of_them = trimmed.answer, swept.best, swept.state.jobs.values()
    if answer is None or best is None:
        sys.exit(f"no configuration was found to keep the limits: {trimmed.without_best}; {swept.without_best}")
    judged = next(job for job in all_of_them if job.config == answer.config)
    keep = sum(1 for job in all_of_them if job.feasible)
    return [
        Row(
            "real_accuracy_vs_best",
            judged.best / best.value,
            "ratio",
            f"{judged.best:.4f} and {best.value:.4f}, both measured by the sweep; goal >= {GOAL}",
        ),
        Row("real_feasible", float(bool(judged.feasible)), "share", f"{keep} of {len(all_of_them)} keep the limits"),
        Row(
            "real_cost_vs_sweep",
            trimmed.spent / swept.spent,
            "ratio",
            f"${trimmed.spent:.2f} and ${swept.spent:.2f} as billed, start-up and idle machines included",
        ),
        Row(
            "real_training_vs_sweep",
            _training_usd(trimmed) / _training_usd(swept),
            "ratio",
            f"${_training_usd(trimmed):.2f} and ${_training_usd(swept):.2f} of training alone",
        ),
    ]


def _training_usd(study: Study) -> float:
    return sum(job.usd or 0.0 for job in study.state.jobs.values())


if __name__ == "__main__":
    main()
