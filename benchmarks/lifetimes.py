"""Lifetime models by cross-validation on 1,442 published lifetimes of preemptible VMs of 2019.

Each fold is predicted by models fitted to the others; machines launched on one day stay in one fold. Half of the
machines were released by their users: they are right-censored, in the likelihood and in the distance (KS). Preemptions
at the 24 h limit or within the hour after it count as one event, so that models with and without an atom there can be
compared. The paper's own procedure, least squares on the preempted machines, is `bathtub_printed`.

    python -m benchmarks.lifetimes [--quick] [--json FILE] [--parameters]

`--parameters` prints the fit that ships, the lines of `shoestring.market.preemptible_2019`, and nothing else.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from benchmarks import datasets
from benchmarks.rows import Row, cpu_s, parser, publish
from shoestring.errors import DataError
from shoestring.models.lifetimes.families import Weibull
from shoestring.models.lifetimes.fit import DEFAULT, MODELS, fit, log_likelihoods
from shoestring.models.lifetimes.groups import Trait, fit_groups
from shoestring.models.lifetimes.records import LifetimeRecords, read_lifetimes
from shoestring.models.lifetimes.saved import fit_saved
from shoestring.models.lifetimes.scores import LifetimeScores, cross_validated, folds

LIVES = "google_preemptible*.csv*"
PAPER, RIVAL = "bathtub_printed", "mixture_atom"
SHIPPED: tuple[Trait, ...] = ("machine", "zone")
LAUNCH: tuple[Trait, ...] = ("time", "weekday")
FEW = 48
"""As many machines as a few runs may have used."""

Parts = Sequence[np.ndarray]


def gain_error(better: LifetimeScores, worse: LifetimeScores) -> float:
    """The standard error of the difference of two mean log-likelihoods on the same machines."""
    return float((better.each - worse.each).std(ddof=1)) / math.sqrt(len(better.each))


def with_kinds(seen: LifetimeRecords, parts: Parts, traits: Sequence[Trait]) -> np.ndarray:
    """The log-likelihood of each machine under the default with multipliers of its groups by these traits."""
    each = np.zeros(len(seen))
    for part in parts:
        learned = seen.pick(np.setdiff1d(np.arange(len(seen)), part))
        saved = fit_saved(learned, DEFAULT)
        saved = replace(saved, kinds=fit_groups(saved.pooled, learned, traits))
        for row in part:
            model = saved.model_for(seen.machine[row], seen.zone[row], float(seen.launched_at[row]))
            each[row] = log_likelihoods(model, seen.pick(np.array([row])))[0]
    return each


def parameters(seen: LifetimeRecords) -> str:
    """The source lines of the fit that ships."""
    model = fit(DEFAULT, seen)
    assert isinstance(model, Weibull)
    lines = [f"SCALE_S = {model.scale_s:.1f}", f"SHAPE = {model.shape:.5f}", f"LIMIT_S = {model.limit_s}"]
    for groups in fit_groups(model, seen, SHIPPED):
        lines.append(f"BY_{groups.trait.upper()} = {{")
        lines += [f'    "{name}": {groups.multiplier(name):.3f},' for name in sorted(groups.kinds)]
        lines.append("}")
    return "\n".join(lines)


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
    seen: LifetimeRecords,
    scores: dict[str, LifetimeScores],
    kinds: dict[tuple[Trait, ...], np.ndarray],
    few: dict[str, float],
    fit_s: float,
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
            float(kinds[SHIPPED].mean()) - default.log_likelihood,
            "nats/VM",
            f"{DEFAULT} with machine type and zone, as it ships, against {DEFAULT}",
        ),
        *(
            Row(
                f"{trait}_of_launch_loglik_gain",
                float(kinds[(*SHIPPED, trait)].mean() - kinds[SHIPPED].mean()),
                "nats/VM",
                f"{what} added to type and zone; alone {float(kinds[(trait,)].mean()) - default.log_likelihood:+.4f}",
            )
            for trait, what in zip(LAUNCH, ("day or night", "workday or weekend"), strict=True)
        ),
        Row("default_fit_ms", fit_s * 1e3, "ms", "CPU, all machines, kinds included"),
    ]
    for name, found in sorted(scores.items(), key=lambda pair: -pair[1].log_likelihood):
        made.append(Row(f"loglik_{name}", found.log_likelihood, "nats/VM", f"KS {found.ks:.3f}"))
    return made


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--parameters", action="store_true", help="print the fit that ships as source lines")
    datasets.add_held_out_option(options)
    asked = options.parse_args()
    try:
        path, *_ = datasets.files(LIVES)
    except DataError as missing:
        print(f"skipped: {missing} ({missing.hint})")
        return
    seen = read_lifetimes(path)
    if asked.parameters:
        print(parameters(seen))
        return
    datasets.announce("lifetimes", [path.name.split(".")[0]])
    parts = folds(seen, 3 if asked.quick else 10)
    scores = {name: cross_validated(partial(fit, name), seen, parts) for name in MODELS}
    tried = (SHIPPED, *((*SHIPPED, trait) for trait in LAUNCH), *((trait,) for trait in LAUNCH))
    few = {name: from_few(name, seen, 5 if asked.quick else 40) for name in (DEFAULT, RIVAL)}
    fit_s = cpu_s(lambda: fit_saved(seen, DEFAULT))
    publish(
        rows(seen, scores, {traits: with_kinds(seen, parts, traits) for traits in tried}, few, fit_s),
        asked.json,
        unprinted=[Row(f"ks_{name}", found.ks, "", "") for name, found in scores.items()],
    )


if __name__ == "__main__":
    main()
