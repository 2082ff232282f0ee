"""Revocation models on the auction prices of 2016, evaluated walking forward in time.

    python -m benchmarks.revpred [--quick] [--json FILE] [--plot FILE] [--choosing] [--held-out FOLDER]

In each window a predictor is trained on all that came before it, with 61 minutes between the last training example and
the first query. Windows are the weeks for reporting (with `--choosing` the others) after the first third of the prices.
The horizon is an hour, with four kinds of maximum prices: as printed (up to 20 cents above the price), relative (up to
a fifth of the on-demand price above it), the on-demand price, and that of `refund_seeking`, 0.05 % above the price.
Rows named `default` are about what placements use where nothing is chosen. Networks are trained for each market, and
for a few busy markets only, because of the time that takes; the trees, trained on all markets, get the same queries
there. The base rate is that of the test outcomes themselves, which no model could have known.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from msgspec.structs import replace

from benchmarks import datasets
from benchmarks.plotting import add_plot_option, check_plot
from benchmarks.revpred_plot import brier_ratio
from benchmarks.revpred_plot import draw as draw_picture
from benchmarks.rows import Row, parser, publish
from shoestring.analysis.revocation_training import read_markets, whole_span, windows
from shoestring.errors import DataError
from shoestring.market.prices import utc
from shoestring.models.revocation.examples import Examples, draw, mixed_times
from shoestring.models.revocation.lstm_training import fit_revpred, fit_tributary
from shoestring.models.revocation.model import RevocationModel
from shoestring.models.revocation.price_arrays import Markets
from shoestring.models.revocation.saved import DEFAULT as TREES
from shoestring.models.revocation.saved import fit
from shoestring.models.revocation.scores import RevocationScores, scores

RECORDING = "2016"
MANNERS = ("absolute", "relative", "on_demand", "bid")
LEARNERS = (TREES, "logistic", "frequency", "rises", "prior")
RISK_OF = {
    "refund_seeking": ("rises", "bid"),
    "as printed": ("rises", "absolute"),
    "cheapest_step": ("prior", "on_demand"),
}
"""Where placements take the risk from unless told otherwise, and the maximum prices they ask about. `prior` is what
`assumed` is before a run has seen machines of its own."""
MIXED, PRINTED_BIDS, TRIBUTARY = "revpred, mixed bids", "revpred, Alg. 2 bids", "tributary"
AS_PRINTED = ", Eq. 3 as printed"


@dataclass(frozen=True)
class Size:
    examples: int
    questions: int
    """In each window, for each kind of maximum price: many, because few machines are preempted at the on-demand
    price."""
    of_nets: int
    """The same where networks are tested too."""
    per_net: int
    """Examples for the network of one market."""
    nets: int
    """Markets that have networks."""


WHOLE, QUICK = Size(30_000, 20_000, 2_500, 2_000, 4), Size(3_000, 1_000, 200, 100, 2)
HELD_OUT_WINDOWS = 3


@dataclass(frozen=True)
class Cell:
    where: str
    """all: every market · busy: those that have networks."""
    window: int
    manner: str
    model: str
    scores: RevocationScores
    train_s: float
    us: float


def stretches_of(markets: Markets, role: datasets.Role) -> list[tuple[float, float]]:
    """The test windows: weeks of 2016 in this role; of other prices all that is after the first third."""
    if datasets.held_out() is not None:
        return windows(markets, HELD_OUT_WINDOWS)
    (first, _), *_ = windows(markets, 1)
    return [(begin, end) for begin, end in datasets.weeks(RECORDING, role) if begin >= first]


def cells(markets: Markets, size: Size, stretches: Sequence[tuple[float, float]]) -> Iterator[Cell]:
    start, _ = whole_span(markets)
    busy = busiest(markets, start, stretches[0][0], size.nets)
    for number, (begin, end) in enumerate(stretches):
        rng = np.random.default_rng(number)
        examples = partial(_mixture, markets, start, begin, size.examples, number)
        learned = {name: _trained(lambda name=name, examples=examples: fit(name, examples())) for name in LEARNERS}
        yield from _judged("all", number, learned, _queries(markets, begin, end, size.questions, rng, None))
        nets = dict(_nets(markets, start, begin, size.per_net * len(busy), busy)) if find_spec("torch") else {}
        yield from _judged("busy", number, learned | nets, _queries(markets, begin, end, size.of_nets, rng, busy))


def busiest(markets: Markets, start: float, until: float, count: int) -> list[int]:
    """The markets whose price was above the on-demand price for longest, as far as the first window may know."""
    everyone = np.arange(len(markets))
    seen = markets.windows(everyone, np.full(len(markets), start), np.full(len(markets), until))
    above = seen.total((seen.price > markets.on_demand[seen.owner]) * (seen.until - seen.since))
    return sorted(np.argsort(-above, kind="stable")[:count].tolist())


def _mixture(markets: Markets, start: float, until: float, count: int, seed: int) -> Examples:
    rng = np.random.default_rng(seed)
    return draw(markets, start, until, count, rng, within_s=mixed_times(rng))


def _nets(
    markets: Markets, start: float, until: float, count: int, busy: Sequence[int]
) -> Iterator[tuple[str, tuple[RevocationModel, float]]]:
    """RevPred on mixed bids, as in print on the bids of Alg. 2, both with either Eq. 3; Tributary on random bids."""
    import torch

    torch.set_num_threads(1)

    def examples(*maxima: str) -> Examples:
        return draw(markets, start, until, count, np.random.default_rng(7), maxima=maxima, only=busy)

    for name, maxima in (
        (MIXED, ("absolute", "relative", "fluctuation", "on_demand")),
        (PRINTED_BIDS, ("fluctuation",)),
    ):
        net, train_s = _trained(lambda maxima=maxima: fit_revpred(examples(*maxima)))
        yield name, (net, train_s)
        yield name + AS_PRINTED, (replace(net, equation="printed"), train_s)
    yield TRIBUTARY, _trained(lambda: fit_tributary(examples("absolute")))


def _trained(train: Callable[[], RevocationModel]) -> tuple[RevocationModel, float]:
    began = time.process_time()
    return train(), time.process_time() - began


def _queries(
    markets: Markets, begin: float, end: float, count: int, rng: np.random.Generator, only: Sequence[int] | None
) -> dict[str, Examples]:
    return {manner: draw(markets, begin, end, count, rng, maxima=(manner,), only=only) for manner in MANNERS}


def _judged(
    where: str, window: int, models: dict[str, tuple[RevocationModel, float]], queries: dict[str, Examples]
) -> Iterator[Cell]:
    for manner, test in queries.items():
        if not 0 < test.revoked.sum() < len(test):
            continue  # no machine was lost, or none could be had: there is no score
        for name, (model, train_s) in models.items():
            began = time.process_time()
            chances = model.chance(test.queries)
            us = (time.process_time() - began) / len(test) * 1e6
            yield Cell(where, window, manner, name, scores(chances, test.revoked), train_s, us)


# -- what comes of it --------------------------------------------------------------------------------------------------
def summed_up(found: Sequence[Cell], where: str) -> None:
    """A table for people: averages over the windows; "worst" is the highest Brier against the base rate's."""
    print(f"\n{where} markets, averages over {1 + max(cell.window for cell in found)} windows")
    titles = " brier   skill  worst    auc calib.   acc.     f1  train s     us"
    for manner in MANNERS:
        mine = [cell for cell in found if (cell.where, cell.manner) == (where, manner)]
        if not mine:
            continue
        base = statistics.mean(cell.scores.base_rate for cell in mine)
        print(f"{f'{manner}, {base:.1%} revoked':<42} {titles}")
        for model in dict.fromkeys(cell.model for cell in mine):
            ours = [cell for cell in mine if cell.model == model]
            s = [cell.scores for cell in ours]
            skill, worst = statistics.mean(x.skill for x in s), max(brier_ratio(x) for x in s)
            print(
                f"  {model:<40} {_mean(s, 'brier'):6.4f} {skill:7.3f} {worst:6.3f} {_mean(s, 'auc'):6.3f}"
                f" {_mean(s, 'calibration_error'):6.3f} {_mean(s, 'accuracy'):6.3f} {_mean(s, 'f1'):6.3f}"
                f" {statistics.mean(c.train_s for c in ours):8.2f} {statistics.mean(c.us for c in ours):6.0f}"
            )


def shown(begin: float, end: float) -> str:
    return f"{utc(begin)[:10]} to {utc(end)[:10]}"


def _mean(found: Sequence[RevocationScores], name: str) -> float:
    return statistics.mean(getattr(one, name) for one in found)


def rows(found: Sequence[Cell]) -> list[Row]:
    whole = [cell for cell in found if cell.where == "all"]
    trees = [cell for cell in whole if cell.model == TREES and cell.manner != "bid"]
    used = [cell for cell in whole if (cell.model, cell.manner) in RISK_OF.values()]
    by_level = max(brier_ratio(cell.scores) for cell in whole if (cell.model, cell.manner) == ("frequency", "bid"))
    made = [
        _worst("trees_brier_vs_base_rate", trees, ""),
        _worst(
            "bid_brier_vs_base_rate",
            [cell for cell in used if cell.manner == "bid"],
            f"`rises`, at the maximum of refund_seeking; `frequency`, the rule before, {by_level:.2f}; ",
        ),
        _worst("default_brier_vs_base_rate", used, f"what {', '.join(RISK_OF)} use; "),
    ]
    busy = [cell for cell in found if cell.where == "busy"]
    if any(cell.model == MIXED for cell in busy):
        made += _against_nets(busy)
    return made


def _worst(name: str, cells: Sequence[Cell], told: str) -> Row:
    """The highest Brier score against that of the base rate."""
    worst = max(cells, key=lambda cell: brier_ratio(cell.scores))
    where = f"window {worst.window + 1}, {worst.model} at {worst.manner} maxima, {worst.scores.base_rate:.2%} revoked"
    return Row(name, brier_ratio(worst.scores), "ratio", f"{told}goal < 1; worst of {len(cells)}: {where}")


def _against_nets(busy: Sequence[Cell]) -> list[Row]:
    names = [name for name in dict.fromkeys(cell.model for cell in busy) if name not in LEARNERS]

    def brier(model: str) -> float:
        return statistics.mean(cell.scores.brier for cell in busy if cell.model == model and cell.manner != "bid")

    def train_s(model: str) -> float:
        return statistics.mean(cell.train_s for cell in busy if cell.model == model)

    def figure(model: str, name: str) -> float:
        return statistics.mean(getattr(c.scores, name) for c in busy if c.model == model and c.manner == "absolute")

    best = min(names, key=brier)
    printed = PRINTED_BIDS + AS_PRINTED
    return [
        Row("trees_brier_vs_best_lstm", brier(TREES) / brier(best), "ratio", f"goal <= 1.1; against {best}"),
        Row(
            "train_time_vs_lstm",
            train_s(TREES) / train_s(MIXED),
            "ratio",
            f"CPU; {train_s(TREES):.1f} s for all markets against {train_s(MIXED):.1f} s for the busy ones",
        ),
        Row("corrected_eq3_vs_printed", brier(MIXED) / brier(MIXED + AS_PRINTED), "ratio", "Brier; same networks"),
        *(
            Row(
                f"revpred_{name}_over_tributary",
                figure(printed, name) - figure(TRIBUTARY, name),
                "points",
                f"paper {paper}; all as printed: {figure(printed, name):.3f} against {figure(TRIBUTARY, name):.3f}",
            )
            for name, paper in (("accuracy", "+20 %"), ("f1", "+34 %"))
        ),
    ]


def main() -> None:
    options = parser(__doc__ or "")
    add_plot_option(options, "accuracy and F1 as in the paper's Figure 10, with Brier score and calibration")
    options.add_argument("--choosing", action="store_true", help="the weeks for choosing, not those for reporting")
    datasets.add_held_out_option(options)
    args = options.parse_args()
    check_plot(args.plot)
    datasets.refuse_choosing_on_held_out(args.choosing)
    role: datasets.Role = "choosing" if args.choosing else "reporting"
    pattern = "spot_aws*" if datasets.held_out() else datasets.price_file(RECORDING)
    try:
        path, *others = datasets.files(pattern)
    except DataError as missing:
        print(f"skipped: {missing} ({missing.hint})")
        return
    markets = read_markets(path)
    stretches = stretches_of(markets, role)
    datasets.announce(RECORDING, [f"{path.name} {shown(*stretch)}" for stretch in stretches], role)
    if others:
        print(f"one file at a time: {', '.join(other.name for other in others)} left out")
    found = list(cells(markets, QUICK if args.quick else WHOLE, stretches))
    summed_up(found, "all")
    summed_up(found, "busy")
    print()
    made = rows(found)
    if not any(cell.model == MIXED for cell in found):
        print("torch is not installed: the rows about networks are left out")
    publish(made, args.json)
    if args.plot:
        draw_picture(found, args.plot)


if __name__ == "__main__":
    main()
