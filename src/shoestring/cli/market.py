"""`shoestring market`: fit, show and evaluate models of the preemption risk, from a price history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoestring.cli.options import JSON
from shoestring.cli.output import aligned, echo, next_commands, say_json

if TYPE_CHECKING:
    from shoestring.analysis.revocation_risk import MarketNow
    from shoestring.analysis.revocation_training import WindowScore
    from shoestring.models.revocation.saved import SavedModel

PRICES = click.argument("prices", type=click.Path(path_type=Path))
MACHINES = click.option("--machines", metavar="NAMES", help="Only these instance types, separated by commas.")
ZONES = click.option("--zones", metavar="NAMES", help="Only these zones, separated by commas.")
MAX_GAP = click.option(
    "--max-gap", default="2d", show_default=True, metavar="TIME", help="Longest time without a record that is bridged."
)
SEED = click.option("--seed", type=int, default=0, show_default=True, help="Random seed of the examples.")
EXAMPLES = click.option(
    "--examples",
    type=click.IntRange(min=200),
    default=30_000,
    show_default=True,
    help="Training examples.",
)


@click.group()
def command() -> None:
    """How likely is a preemption? Learned from a price history, for markets where the price decides.

    PRICES is what `aws ec2 describe-spot-price-history --output json` prints, or the same records as JSON lines, CSV or
    parquet.

    \b
      shoestring market eval prices.csv                    compare models on this market
      shoestring market fit prices.csv -o model.json       train on the whole history
      shoestring market show prices.csv --model model.json --max-price 0.05 --plot risk.svg
    """


@command.command("fit", short_help="Train a model and save it.")
@PRICES
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Where to save it."
)
@click.option(
    "--model",
    "name",
    metavar="NAME",
    default="trees",
    show_default=True,
    help="trees, logistic, frequency, rises, prior, revpred or tributary.",
)
@click.option("--until", metavar="TIME", help="Train on prices before this time only, e.g. 2016-04-01.")
@MACHINES
@ZONES
@MAX_GAP
@EXAMPLES
@SEED
def fit(
    prices: Path,
    output: Path,
    name: str,
    until: str | None,
    machines: str | None,
    zones: str | None,
    max_gap: str,
    examples: int,
    seed: int,
) -> None:
    """Train a model on the price history PRICES and save it as JSON.

    Examples are moments of the history at which a machine was available, with a maximum price sampled in several ways:
    a little above the price, up to a fifth of the on-demand price above it, and the on-demand price itself. The model
    sees only what was recorded up to that moment; the hours after it are the label.

    \b
      shoestring market fit prices.csv -o model.json
      shoestring market fit prices.csv -o model.json --until 2016-04-01 --model logistic
    """
    from shoestring.analysis.revocation_training import read_markets, save, trained, trained_span

    markets = read_markets(prices, _split(machines), _split(zones), _max_gap_s(max_gap))
    saved = trained(markets, name, until=_moment(until, "--until"), count=examples, seed=seed)
    save(saved, output)
    echo(f"{name}: {saved.examples} examples of {len(markets)} markets, {saved.revoked_share:.1%} of them preempted")
    echo(f"prices from {trained_span(saved)}; saved to {output}")
    next_commands(f"shoestring market show {prices} --model {output}", f"shoestring market eval {prices}")


@command.command("show", short_help="Prices, and the probability of a preemption.")
@PRICES
@click.option("--model", type=click.Path(path_type=Path), help="A model saved by fit.  [default: the past frequency]")
@click.option("--max-price", type=float, metavar="USD", help="Maximum price per hour.  [default: the on-demand price]")
@click.option("--within", default="1h", show_default=True, metavar="TIME", help="Horizon of the prediction.")
@click.option("--at", metavar="TIME", help="Predict at this time, e.g. 2016-04-01T12:00.  [default: the last record]")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Plot the riskiest market (SVG).")
@click.option("--days", type=click.FloatRange(min=0.04), default=7.0, show_default=True, help="Days to plot.")
@MACHINES
@ZONES
@MAX_GAP
@JSON
def show(
    prices: Path,
    model: Path | None,
    max_price: float | None,
    within: str,
    at: str | None,
    plot: Path | None,
    days: float,
    machines: str | None,
    zones: str | None,
    max_gap: str,
    as_json: bool,
) -> None:
    """Show the price of each market of PRICES and the probability of a preemption within a time, riskiest first.

    \b
      shoestring market show prices.csv --model model.json
      shoestring market show prices.csv --model model.json --machines m4.4xlarge --max-price 0.3 --plot risk.svg
    """
    from shoestring.analysis.revocation_risk import draw_risk, markets_now
    from shoestring.analysis.revocation_training import load, read_markets, trained_span
    from shoestring.units import parse_duration_s

    within_s = parse_duration_s(within, "--within")
    saved = None if model is None else load(model)
    known = read_markets(prices, _split(machines), _split(zones), _max_gap_s(max_gap))
    now, rows = markets_now(known, saved, max_price, within_s, _moment(at, "--at"))
    if plot is not None:
        draw_risk(plot, known, saved, rows[0], max_price, within_s, now, days * 86400.0)
    if as_json:
        say_json({"at": now, "within_s": within_s, "markets": [row.to_plain() for row in rows]})
        return
    _show_markets(rows, now, within)
    if saved is not None:
        echo(f"probabilities by {saved.name}, trained on {trained_span(saved)}{_seen(saved, now)}")
    if plot is not None:
        echo(f"plotted {rows[0].offer} to {plot}")


@command.command("eval", short_help="Compare models by walk-forward validation.")
@PRICES
@click.option(
    "--models", default="trees,logistic,frequency,rises", show_default=True, metavar="NAMES", help="By commas."
)
@click.option("--windows", type=click.IntRange(min=1), default=3, show_default=True, help="Test windows.")
@click.option(
    "--questions", type=click.IntRange(min=50), default=6_000, show_default=True, help="Predictions per window."
)
@MACHINES
@ZONES
@MAX_GAP
@EXAMPLES
@SEED
@JSON
def evaluate(
    prices: Path,
    models: str,
    windows: int,
    questions: int,
    machines: str | None,
    zones: str | None,
    max_gap: str,
    examples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare models on PRICES by walk-forward validation: each window is predicted from the history before it.

    Training ends 61 minutes before the window. The Brier skill is what counts: 1 is perfect, 0 is as good as the base
    rate of preemptions, below 0 is worse. Accuracy and F1 follow the base rate and say little. Scores are averages over
    the windows; "worst" is the skill in the worst of them.

    \b
      shoestring market eval prices.csv
      shoestring market eval prices.csv --models trees --windows 5 --json
    """
    from shoestring.analysis.revocation_training import read_markets, score_models

    known = read_markets(prices, _split(machines), _split(zones), _max_gap_s(max_gap))
    options = {"count": windows, "examples": examples, "questions": questions, "seed": seed}
    scores = list(score_models(known, _split(models) or (), MAXIMA, **options))
    if as_json:
        say_json([_plain(row) for row in scores])
        return
    _show_scores(scores)


MAXIMA = ("absolute", "relative", "on_demand", "bid")
"""How maximum prices are sampled for evaluation: as in the paper, relative to the on-demand price, equal to it, as for
leases without a maximum, and that of `refund_seeking`, just above the price."""


# -- showing -----------------------------------------------------------------------------------------------------------
def _show_markets(rows: Sequence[MarketNow], now: float, within: str) -> None:
    from shoestring.market.prices import utc

    echo(f"at {utc(now)}")
    titles = ("machine", "zone", "price", "of on-demand", "highest in a week", "maximum", f"gone within {within}")
    cells = [
        (
            row.offer.machine,
            row.offer.zone,
            f"${row.usd_per_hour:.4f}",
            f"{row.usd_per_hour / row.on_demand_usd_per_hour:.0%}",
            f"${row.highest_usd_per_hour:.4f}",
            f"${row.max_usd_per_hour:.4f}",
            f"{row.chance:.1%}",
        )
        for row in rows
    ]
    for line in aligned([titles, *cells], to_the_left=2):
        echo(line)


def _show_scores(found: Sequence[WindowScore]) -> None:
    if not found:
        echo("no window has both preempted machines and others: nothing can be scored")
        return
    rows = []
    known = sorted({(row.maxima, row.model) for row in found}, key=lambda pair: (MAXIMA.index(pair[0]), pair[1]))
    for maxima, model in known:
        scores = [row.scores for row in found if (row.maxima, row.model) == (maxima, model)]
        means = {name: sum(getattr(one, name) for one in scores) / len(scores) for name in _FIGURES}
        rows.append(
            (maxima, model, *(f"{means[name]:.3f}" for name in _FIGURES), f"{min(s.skill for s in scores):.3f}")
        )
    titles = ("maxima", "model", "preempted", "brier", "skill", "auc", "calibration", "accuracy", "f1", "worst")
    for line in aligned([titles, *rows], to_the_left=2):
        echo(line)


_FIGURES = ("base_rate", "brier", "skill", "auc", "calibration_error", "accuracy", "f1")


def _seen(saved: SavedModel, now: float) -> str:
    return ": it was trained on later prices too" if now < saved.trained_until else ""


def _plain(row: WindowScore) -> dict[str, Any]:
    from dataclasses import asdict

    plain = asdict(row)
    scores: dict[str, Any] = plain.pop("scores")
    return plain | scores


# -- reading -----------------------------------------------------------------------------------------------------------
def _split(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _max_gap_s(text: str) -> float:
    from shoestring.units import parse_duration_s

    return parse_duration_s(text, "--max-gap")


def _moment(text: str | None, option: str) -> float | None:
    from shoestring.units import parse_moment

    return None if text is None else parse_moment(text, option)
