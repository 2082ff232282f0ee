"""Placements that bid, from the command line: a fitted model is found and pinned, and errors get a message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoestring.kernel.decisions import RequestLease
from shoestring.runs.folder import run_folder
from tests.cli.prompt import Prompt, refused

SPEC = """
command: python train.py --lr {{lr}}
space: {{lr: {{float: [0, 1]}}}}
minimize: loss
trials: 4
max_steps: 20
budget: 5
deadline: 24h
recipe: {recipe}
options: {{{options}}}
market: {{prices: later.csv{start}}}
simulate: {{seconds_per_step: 300}}
"""


def prices(prompt: Prompt, name: str, day: int) -> str:
    """Three days of two markets that jump every quarter of an hour, from this day of March on."""
    begin = datetime(2025, 3, day, tzinfo=UTC)
    lines = ["timestamp,machine,zone,usd_per_hour"]
    for machine, low in (("m3.medium", 0.01), ("r3.large", 0.02)):
        for quarter in range(3 * 96):
            at = begin + timedelta(minutes=15 * quarter)
            lines.append(f"{at.isoformat()},{machine},us-east-1a,{low * (1 + quarter * 7 % 10 / 10)}")
    return prompt.write(name, "\n".join(lines))


def spec(prompt: Prompt, options: str, recipe: str = "spottune", start: str = "") -> str:
    begin = f", start: {start}" if start else ""
    return prompt.write("study.yaml", SPEC.format(options=options, recipe=recipe, start=begin))


def test_a_model_fitted_on_older_prices_is_used_in_a_simulation_of_later_ones(prompt: Prompt) -> None:
    fit = ("--examples", "300", "--model", "logistic")
    earlier, later = prices(prompt, "earlier.csv", 3), prices(prompt, "later.csv", 10)
    assert prompt("market", "fit", earlier, "-o", "model.json", *fit).exit_code == 0
    for placement in ("cheapest_step", "refund_seeking", "as_printed"):
        result = prompt("simulate", spec(prompt, f"placement: {placement}, revocations: model.json"))
        assert result.exit_code == 0, result.output
        assert "best" in result.output
    assert prompt("market", "fit", later, "-o", "later.json", *fit).exit_code == 0
    refused(prompt("simulate", spec(prompt, "revocations: later.json")), "it would know the future", "--until")


@pytest.mark.parametrize("start", ["2025-03-11", "2025-03-11T06:00:00Z", "1741651200"])
def test_a_run_begins_at_its_start_in_a_price_file_and_its_risk_counts_the_prices_before(
    prompt: Prompt, start: str
) -> None:
    prices(prompt, "later.csv", 10)
    assert prompt("simulate", spec(prompt, "", start=start)).exit_code == 0
    began, requested = _first_request(prompt)
    assert datetime.fromtimestamp(began, UTC).day == 11
    assert _chance(requested) > 0.6
    assert prompt("simulate", spec(prompt, "")).exit_code == 0
    began, requested = _first_request(prompt)
    assert datetime.fromtimestamp(began, UTC).day == 10
    assert _chance(requested) == pytest.approx(0.488), "nothing is known of the time before the file"


def _first_request(prompt: Prompt) -> tuple[float, str]:
    entries = list(run_folder("study-simulated", prompt.folder / ".shoestring").entries())
    why = next(x.why for entry in entries for x in entry.decisions if isinstance(x, RequestLease))
    return entries[0].event.at, why


def _chance(why: str) -> float:
    return float(why.partition("% chance")[0].rpartition(" ")[2]) / 100


def test_a_start_outside_the_price_file_is_refused_with_its_times(prompt: Prompt) -> None:
    prices(prompt, "later.csv", 10)
    refused(prompt("simulate", spec(prompt, "", start="2025-03-09")), "start at 2025-03-10", "start the run later")
    refused(prompt("simulate", spec(prompt, "", start="2025-03-14")), "end at 2025-03-12", "start earlier")
    refused(prompt("simulate", spec(prompt, "", start="soon")), "market: start 'soon' is not a time", "2016-04-01")
    study = prompt.write(
        "other.yaml", SPEC.format(options="", recipe="random", start="").replace("later.csv", "modern")
    )
    text = (prompt.folder / study).read_text().replace("prices: modern", "kind: modern, start: 2025-03-11")
    prompt.write("other.yaml", text)
    refused(prompt("simulate", study), "market: start has no meaning")


def test_a_model_of_the_prices_before_the_start_is_no_hindsight(prompt: Prompt) -> None:
    later = prices(prompt, "later.csv", 10)
    fit = ("--examples", "300", "--model", "logistic", "--until", "2025-03-11T12:00")
    assert prompt("market", "fit", later, "-o", "model.json", *fit).exit_code == 0
    refused(prompt("simulate", spec(prompt, "revocations: model.json", start="2025-03-11")), "would know the future")
    assert prompt("simulate", spec(prompt, "revocations: model.json", start="2025-03-11T12:00")).exit_code == 0


def test_a_missing_or_invalid_model_is_refused(prompt: Prompt) -> None:
    prices(prompt, "later.csv", 10)
    refused(prompt("simulate", spec(prompt, "revocations: model.json")), "cannot be read", "shoestring market fit")
    prompt.write("model.json", "no model")
    refused(prompt("simulate", spec(prompt, "revocations: model.json")), "is not a saved revocation model")


def test_the_printed_algorithm_runs_and_hourly_rotation_is_refused_without_refunds(prompt: Prompt) -> None:
    prices(prompt, "later.csv", 10)
    result = prompt("simulate", spec(prompt, "mcnt: 2", recipe="spottune_as_printed"))
    assert result.exit_code == 0, result.output
    assert prompt("simulate", spec(prompt, "placement: cheapest_step, rotate: 1h")).exit_code == 0
    refused(
        prompt("simulate", spec(prompt, "placement: slack, rotate: 1h")),
        "decides by itself when to move",
        "leave it out",
    )
