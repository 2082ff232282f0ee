"""Lifetime models by cross-validation on 1,442 published lifetimes of preemptible VMs of 2019.

Each fold is predicted by models fitted to the others; machines launched on one day stay in one fold. Half of the
machines were released by their users: they are right-censored, in the likelihood and in the distance (KS). Preemptions
at the 24 h limit or within the hour after it count as one event, so that models with and without an atom there can be
compared. The paper's own procedure, least squares on the preempted machines, is `bathtub_printed`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks import datasets
from benchmarks.rows import Row, cpu_s, parser, publish
from shoestring.errors import DataError
from shoestring.models.lifetimes.fit import DEFAULT, MODELS, fit, log_likelihoods
from shoestring.models.lifetimes.records import LifetimeRecords, read_lifetimes
from shoestring.models.lifetimes.saved import fit_saved
from shoestring.models.lifetimes.scores import LifetimeScores, cross_validated, folds

LIVES = "google_preemptible*.csv*"
PAPER, RIVAL = "bathtub_printed", "mixture_atom"
FEW = 48
"""As many machines as a few runs may have used."""

Parts = Sequence[np.ndarray]


def gain_error(better: LifetimeScores, worse: LifetimeScores) -> float:
    """The standard error of the difference of two mean log-likelihoods on the same machines."""
    return float((better.each - worse.each).std(ddof=1)) / math.sqrt(len(better.each))


def with_kinds(seen: LifetimeRecords, parts: Parts) -> np.ndarray:
    """The log-likelihood of each machine under the default with multipliers of its type, zone and time of launch."""
    each = np.zeros(len(seen))
    for part in parts:
        saved = fit_saved(seen.pick(np.setdiff1d(np.arange(len(seen)), part)), DEFAULT)
        for row in part:
            model = saved.model_for(seen.machine[row], seen.zone[row], float(seen.launched_at[row]))
            each[row] = log_likelihoods(model, seen.pick(np.array([row])))[0]
    return each


def from_few(name: str, seen: LifetimeRecords, samples: int) -> float:
    """The mean held-out log-likelihood of models fitted to small samples."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(samples):
        few = rng.choice(len(seen), FEW, replace=False)
        others = np.setdiff1d(np.arange(len(seen)), few)
        found.append(float(log_likelihoods(fit(name, seen.pick(few)), seen.pick(others)).mean()))
    return statistics.mean(found)


def rows(
    seen: LifetimeRecords, scores: dict[str, LifetimeScores], kinds: np.ndarray, few: dict[str, float], fit_s: float
) -> list[Row]:
    default, paper = scores[DEFAULT], scores[PAPER]
    best = max(scores, key=lambda name: scores[name].log_likelihood)
    what = f"{len(seen)} machines, {int(seen.revoked.sum())} taken, {int(seen.at_limit.sum())} of them at the limit"
    made = [
        Row(
            "default_loglik_gain_vs_paper_fit",
            default.log_likelihood - paper.log_likelihood,
            "nats/VM",
            f"goal >= 0.15; {DEFAULT} against {PAPER}, +- {gain_error(default, paper):.3f}; {what}",
        ),
        Row("default_ks", default.ks, "", f"goal <= 0.05; the paper's fit {paper.ks:.3f}"),
        Row(
            "default_loglik_loss_vs_best",
            scores[best].log_likelihood - default.log_likelihood,
            "nats/VM",
            f"against {best}, +- {gain_error(scores[best], default):.3f}",
        ),
        Row(
            "default_loglik_gain_from_few",
            few[DEFAULT] - few[RIVAL],
            "nats/VM",
            f"against {RIVAL}, both fitted to {FEW} machines: {few[DEFAULT]:.3f} and {few[RIVAL]:.3f}",
        ),
        Row(
            "kinds_loglik_gain",
            float(kinds.mean()) - default.log_likelihood,
            "nats/VM",
            f"{DEFAULT} with machine type, zone and time of launch, against {DEFAULT}",
        ),
        Row("default_fit_ms", fit_s * 1e3, "ms", "CPU, all machines, kinds included"),
    ]
    for name, found in sorted(scores.items(), key=lambda pair: -pair[1].log_likelihood):
        made.append(Row(f"loglik_{name}", found.log_likelihood, "nats/VM", f"KS {found.ks:.3f}"))
    return made


def main() -> None:
    options = parser(__doc__ or "")
    datasets.add_held_out_option(options)
    asked = options.parse_args()
    try:
        path, *_ = datasets.files(LIVES)
    except DataError as missing:
        print(f"skipped: {missing} ({missing.hint})")
        return
    datasets.announce("lifetimes", [path.name.split(".")[0]])
    seen = read_lifetimes(path)
    parts = folds(seen, 3 if asked.quick else 10)
    scores = {name: cross_validated(partial(fit, name), seen, parts) for name in MODELS}
    few = {name: from_few(name, seen, 5 if asked.quick else 40) for name in (DEFAULT, RIVAL)}
    fit_s = cpu_s(lambda: fit_saved(seen, DEFAULT))
    publish(
        rows(seen, scores, with_kinds(seen, parts), few, fit_s),
        asked.json,
        unprinted=[Row(f"ks_{name}", found.ks, "", "") for name, found in scores.items()],
    )


if __name__ == "__main__":
    main()
