"""`shoestring market`: learn from prices when machines are taken away, look at it, and judge what was learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoestring.cli.options import JSON
from shoestring.cli.output import aligned, next_commands, say_json

if TYPE_CHECKING:
    from shoestring.analysis.revocation_risk import MarketNow
    from shoestring.analysis.revocation_training import WindowScore
    from shoestring.models.revocation.saved import SavedModel

PRICES = click.argument("prices", type=click.Path(path_type=Path))
MACHINES = click.option("--machines", metavar="NAMES", help="Only these machine types, separated by commas.")
ZONES = click.option("--zones", metavar="NAMES", help="Only these zones, separated by commas.")
SEED = click.option("--seed", type=int, default=0, show_default=True, help="The same seed draws the same examples.")
EXAMPLES = click.option(
    "--examples",
    type=click.IntRange(min=200),
    default=30_000,
    show_default=True,
    help="How many moments to learn from.",
)


@click.group(short_help="When are machines taken away? Learn it from prices, look at it, judge it.")
def command() -> None:
    """How likely is it that a machine is taken away? Learned from a price history, for markets where price decides.

    PRICES is what `aws ec2 describe-spot-price-history --output json` prints, or the same records as JSON lines, CSV or
    parquet.

    \b
      shoestring market eval prices.csv                    which model can be believed on this market?
      shoestring market fit prices.csv -o model.json       train it on everything there is
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
    help="trees, logistic, frequency, prior, revpred or tributary.",
)
@click.option("--until", metavar="TIME", help="Learn from prices before this time only, e.g. 2016-04-01.")
@MACHINES
@ZONES
@EXAMPLES
@SEED
def fit(
    prices: Path,
    output: Path,
    name: str,
    until: str | None,
    machines: str | None,
    zones: str | None,
    examples: int,
    seed: int,
) -> None:
    """Train a model on the price history PRICES and save it as JSON.

    Examples are moments of the history at which a machine could be had, with a maximum price drawn in several manners:
    a little above the price, up to a fifth of the on-demand price above it, and the on-demand price itself. Only what
    was recorded up to a moment is told to the model; the hours after it are the answer.

    \b
      shoestring market fit prices.csv -o model.json
      shoestring market fit prices.csv -o model.json --until 2016-04-01 --model logistic
    """
    from shoestring.analysis.revocation_training import read_markets, said_span, save, trained

    markets = read_markets(prices, _words(machines), _words(zones))
    saved = trained(markets, name, until=_moment(until, "--until"), count=examples, seed=seed)
    save(saved, output)
    click.echo(
        f"{name}: {saved.examples} examples of {len(markets)} markets, {saved.revoked_share:.1%} of them revoked"
    )
    click.echo(f"prices from {said_span(saved)}; saved to {output}")
    next_commands(f"shoestring market show {prices} --model {output}", f"shoestring market eval {prices}")


@command.command("show", short_help="Prices and the chance to lose a machine.")
@PRICES
@click.option("--model", type=click.Path(path_type=Path), help="A model saved by fit.  [default: the past frequency]")
@click.option(
    "--max-price", type=float, metavar="USD", help="The most you pay an hour.  [default: the on-demand price]"
)
@click.option("--within", default="1h", show_default=True, metavar="TIME", help="Gone within which time?")
@click.option("--at", metavar="TIME", help="Asked at this time, e.g. 2016-04-01T12:00.  [default: the last record]")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the riskiest market there (SVG).")
@click.option("--days", type=click.FloatRange(min=0.04), default=7.0, show_default=True, help="How much to draw.")
@MACHINES
@ZONES
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
    as_json: bool,
) -> None:
    """What does each market of PRICES cost, and how likely is a machine gone within a time? Riskiest first.

    \b
      shoestring market show prices.csv --model model.json
      shoestring market show prices.csv --model model.json --machines m4.4xlarge --max-price 0.3 --plot risk.svg
    """
    from shoestring.analysis.revocation_risk import draw_risk, markets_now
    from shoestring.analysis.revocation_training import load, read_markets, said_span
    from shoestring.units import parse_duration_s

    within_s = parse_duration_s(within, "--within")
    saved = None if model is None else load(model)
    known = read_markets(prices, _words(machines), _words(zones))
    now, rows = markets_now(known, saved, max_price, within_s, _moment(at, "--at"))
    if plot is not None:
        draw_risk(plot, known, saved, rows[0], max_price, within_s, now, days * 86400.0)
    if as_json:
        say_json({"at": now, "within_s": within_s, "markets": [row.to_plain() for row in rows]})
        return
    _show_markets(rows, now, within)
    if saved is not None:
        click.echo(f"chances by {saved.name}, trained on {said_span(saved)}{_seen(saved, now)}")
    if plot is not None:
        click.echo(f"drew {rows[0].offer} to {plot}")


@command.command("eval", short_help="Which model can be believed? Walks forward in time.")
@PRICES
@click.option("--models", default="trees,logistic,frequency", show_default=True, metavar="NAMES", help="By commas.")
@click.option("--windows", type=click.IntRange(min=1), default=3, show_default=True, help="Stretches to judge by.")
@click.option(
    "--questions", type=click.IntRange(min=50), default=6_000, show_default=True, help="Asked in each of them."
)
@MACHINES
@ZONES
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
    examples: int,
    seed: int,
    as_json: bool,
) -> None:
    """Judge models on PRICES as they would have done: each window is asked about with what came before it alone.

    The last moment learned from is 61 minutes before the window. Skill is what counts: 1 is perfect, 0 as good as
    knowing the share of machines that went, below 0 worse. Accuracy and F1 follow that share and say little. Figures
    are averages over the windows; "worst" is the skill in the worst of them.

    \b
      shoestring market eval prices.csv
      shoestring market eval prices.csv --models trees --windows 5 --json
    """
    from shoestring.analysis.revocation_training import judged, read_markets

    known = read_markets(prices, _words(machines), _words(zones))
    asked = {"count": windows, "examples": examples, "questions": questions, "seed": seed}
    found = list(judged(known, _words(models) or (), MANNERS, **asked))
    if as_json:
        say_json([_plain(row) for row in found])
        return
    _show_judged(found)


MANNERS = ("absolute", "relative", "on_demand")
"""How maxima are drawn for judging: as printed, by the size of the machine, and as leases without a maximum have."""


# -- showing -----------------------------------------------------------------------------------------------------------
def _show_markets(rows: Sequence[MarketNow], now: float, within: str) -> None:
    from shoestring.market.prices import utc

    click.echo(f"at {utc(now)}")
    titles = ("machine", "zone", "price", "of on demand", "highest in a week", "maximum", f"gone within {within}")
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
        click.echo(line)


def _show_judged(found: Sequence[WindowScore]) -> None:
    if not found:
        click.echo("no window has both machines that went and machines that stayed: nothing can be judged")
        return
    rows = []
    known = sorted({(row.maxima, row.model) for row in found}, key=lambda pair: (MANNERS.index(pair[0]), pair[1]))
    for maxima, model in known:
        scores = [row.scores for row in found if (row.maxima, row.model) == (maxima, model)]
        means = {name: sum(getattr(one, name) for one in scores) / len(scores) for name in _FIGURES}
        rows.append(
            (maxima, model, *(f"{means[name]:.3f}" for name in _FIGURES), f"{min(s.skill for s in scores):.3f}")
        )
    titles = ("maxima", "model", "revoked", "brier", "skill", "auc", "calibration", "accuracy", "f1", "worst")
    for line in aligned([titles, *rows], to_the_left=2):
        click.echo(line)


_FIGURES = ("base_rate", "brier", "skill", "auc", "calibration_error", "accuracy", "f1")


def _seen(saved: SavedModel, now: float) -> str:
    return ": it has seen what came after" if now < saved.trained_until else ""


def _plain(row: WindowScore) -> dict[str, Any]:
    from dataclasses import asdict

    plain = asdict(row)
    scores: dict[str, Any] = plain.pop("scores")
    return plain | scores


# -- reading -----------------------------------------------------------------------------------------------------------
def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _moment(text: str | None, option: str) -> float | None:
    """UTC seconds of a date or time as people write it."""
    from datetime import UTC, datetime

    from shoestring.errors import SpecError

    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SpecError(f"{option} {text!r} is not a time", hint="write it as 2016-04-01 or 2016-04-01T12:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
