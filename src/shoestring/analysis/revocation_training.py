"""Training and testing revocation models on a price file: what `shoestring market` does, without the printing."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoestring.errors import DataError, SpecError
from shoestring.market.catalog import catalog
from shoestring.market.price_files import MAX_GAP_S, read_prices
from shoestring.market.prices import utc
from shoestring.units import show_duration

if TYPE_CHECKING:
    from shoestring.models.revocation.price_arrays import Markets
    from shoestring.models.revocation.saved import SavedModel
    from shoestring.models.revocation.scores import RevocationScores

EXAMPLES, QUESTIONS = 30_000, 6_000
LEAST_WINDOW_S = 6 * 3600.0
TRAINED_FIRST = 1 / 3
"""The share of the prices before the first test window."""


def read_markets(
    path: Path,
    machines: Collection[str] | None = None,
    zones: Collection[str] | None = None,
    max_gap_s: float = MAX_GAP_S,
) -> Markets:
    """The series of a price file whose on-demand price is in the catalogue; prices are modelled as shares of it."""
    from shoestring.models.revocation.price_arrays import Markets

    book = read_prices(path, machines=machines, zones=zones, max_gap_s=max_gap_s)
    known = {found.name: found.on_demand_usd_per_hour for found in catalog.machines("aws")}
    on_demand = {offer: known[offer.machine] for offer in book if offer.machine in known}
    if not on_demand:
        raise DataError(
            f"{path}: none of its machine types is in the catalogue, so their on-demand prices are not known",
            hint="the catalogue has Amazon's common types",
        )
    return Markets.of_book(book, on_demand)


def whole_span(markets: Markets) -> tuple[float, float]:
    """From the first record of any market to the last of any."""
    spans = [markets.span(one) for one in range(len(markets))]
    return min(low for low, _ in spans), max(high for _, high in spans)


def trained(
    markets: Markets, name: str, *, until: float | None = None, count: int = EXAMPLES, seed: int = 0
) -> SavedModel:
    """A model of this name, trained on all records before `until`."""
    import numpy as np

    from shoestring.models.revocation.examples import draw, mixed_times
    from shoestring.models.revocation.saved import SavedModel, fit

    begin, end = whole_span(markets)
    end = end if until is None else min(end, until)
    rng = np.random.default_rng(seed)
    examples = draw(markets, begin, end, count, rng, within_s=mixed_times(rng))
    return SavedModel(
        name=name,
        trained_from=begin,
        trained_until=end,
        examples=len(examples),
        revoked_share=float(examples.revoked.mean()) if len(examples) else 0.0,
        model=fit(name, examples, seed),
    )


def save(saved: SavedModel, path: Path) -> None:
    from shoestring.models.revocation.saved import encoded

    try:
        path.write_bytes(encoded(saved))
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error


def load(path: Path) -> SavedModel:
    from shoestring.models.revocation.saved import decoded

    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}", hint="make a model with shoestring market fit"
        ) from error
    return decoded(content, str(path))


@dataclass(frozen=True)
class WindowScore:
    """One model in one window, with maximum prices of one kind."""

    window: int
    maxima: str
    model: str
    scores: RevocationScores
    train_s: float
    """CPU seconds, features included."""
    us_per_question: float


def windows(markets: Markets, count: int) -> list[tuple[float, float]]:
    """Consecutive test windows of equal length, after the first third of the prices, which is for training."""
    begin, end = whole_span(markets)
    first = begin + (end - begin) * TRAINED_FIRST
    length = (end - first) / count
    if length < LEAST_WINDOW_S:
        raise SpecError(
            f"the prices last {show_duration(end - begin)}, too short for {count} windows after a third for training",
            hint="choose fewer windows, or give a longer price history",
        )
    return [(first + index * length, first + (index + 1) * length) for index in range(count)]


def score_models(
    markets: Markets,
    names: Sequence[str],
    maxima: Sequence[str],
    *,
    count: int = 3,
    examples: int = EXAMPLES,
    questions: int = QUESTIONS,
    seed: int = 0,
) -> Iterator[WindowScore]:
    """Walk-forward validation: in each window every model is trained on all records before it and tested on a horizon
    of an hour.

    The last training example is 61 minutes before the window: an hour for its label, and a minute's record.
    """
    import numpy as np

    from shoestring.models.revocation.examples import draw
    from shoestring.models.revocation.scores import scores

    for number, (begin, end) in enumerate(windows(markets, count)):
        queries = {
            name: draw(markets, begin, end, questions, np.random.default_rng((seed, number, index)), maxima=(name,))
            for index, name in enumerate(maxima)
        }
        for name in names:
            began = time.process_time()
            saved = trained(markets, name, until=begin, count=examples, seed=seed)
            train_s = time.process_time() - began
            for kind, test in queries.items():
                if not 0 < test.revoked.sum() < len(test):
                    continue  # only one class: no score would be meaningful
                began = time.process_time()
                chances = saved.model.chance(test.queries)
                spent = time.process_time() - began
                yield WindowScore(number, kind, name, scores(chances, test.revoked), train_s, spent / len(test) * 1e6)


def trained_span(saved: SavedModel) -> str:
    return f"{utc(saved.trained_from)} to {utc(saved.trained_until)}"
