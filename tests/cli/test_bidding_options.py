"""Placements that bid, from the command line: a fitted model is found and pinned, and errors get a message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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
market: {{prices: later.csv}}
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


def spec(prompt: Prompt, options: str, recipe: str = "spottune") -> str:
    return prompt.write("study.yaml", SPEC.format(options=options, recipe=recipe))


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
