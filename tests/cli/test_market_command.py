"""`shoestring market`: what it prints, what it saves, and what it refuses."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import pytest

from shoestring.market.catalog import catalog
from shoestring.market.simulated import synthetic_prices as synthetic
from tests.cli.prompt import Prompt, refused

pytest.importorskip("sklearn")

FEW = ("--examples", "400")


@pytest.fixture
def prices(prompt: Prompt) -> str:
    """Nine days of three made-up markets of the auction years."""
    lines = ["timestamp,machine,zone,usd_per_hour"]
    names = ("m3.medium", "r3.large", "m4.4xlarge")
    listings = [catalog.listing(catalog.machine("aws", name), "us-east-1a", spot=True) for name in names]
    book = synthetic.auction(listings, seed=3, days=9)
    for offer in book:
        trace = book.trace(offer)
        for at, price in zip(trace.times, trace.usd_per_hour, strict=True):
            lines.append(f"{datetime.fromtimestamp(at, UTC).isoformat()},{offer.machine},{offer.zone},{price}")
    return prompt.write("prices.csv", "\n".join(lines))


@pytest.fixture
def model(prompt: Prompt, prices: str) -> str:
    result = prompt("market", "fit", prices, "-o", "model.json", "--until", "2025-03-09", *FEW)
    assert result.exit_code == 0, result.output
    assert "of 3 markets" in result.output
    assert "2025-03-09 00:00 UTC; saved to model.json" in result.output
    return "model.json"


def test_a_trained_model_is_shown_with_the_riskiest_market_first(prompt: Prompt, prices: str, model: str) -> None:
    shown = prompt("market", "show", prices, "--model", model, "--json")
    rows = json.loads(shown.stdout)["markets"]
    assert {row["machine"] for row in rows} == {"m3.medium", "r3.large", "m4.4xlarge"}
    chances = [row["chance"] for row in rows]
    assert chances == sorted(chances, reverse=True)
    assert all(0 <= chance <= 1 for chance in chances)
    text = prompt("market", "show", prices, "--model", model).output
    assert "gone within 1h" in text
    assert "trained on later prices" not in text
    assert "trained on later prices" in prompt("market", "show", prices, "--model", model, "--at", "2025-03-07").output


def test_a_higher_maximum_is_no_riskier(prompt: Prompt, prices: str, model: str) -> None:
    def chance(usd: str) -> float:
        words = ("--machines", "r3.large", "--max-price", usd, "--model", model, "--json")
        return json.loads(prompt("market", "show", prices, *words).stdout)["markets"][0]["chance"]

    assert chance("0.001") == 1.0
    assert chance("5") < 0.5


def test_a_plot_is_written(prompt: Prompt, prices: str, model: str) -> None:
    result = prompt("market", "show", prices, "--model", model, "--plot", "risk.svg", "--machines", "r3.large")
    assert "plotted r3.large spot in us-east-1a to risk.svg" in result.output
    picture = ET.fromstring((prompt.folder / "risk.svg").read_text())
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}path")) == 2


def test_models_are_compared_by_walk_forward_validation(prompt: Prompt, prices: str) -> None:
    words = ("--models", "trees,frequency", "--windows", "2", "--questions", "200", *FEW)
    rows = json.loads(prompt("market", "eval", prices, *words, "--json").stdout)
    assert {row["model"] for row in rows} == {"trees", "frequency"}
    assert {row["window"] for row in rows} <= {0, 1}
    table = prompt("market", "eval", prices, *words).output
    assert table.splitlines()[0].split()[:4] == ["maxima", "model", "preempted", "brier"]


def test_a_gap_is_refused_with_the_option_that_bridges_it(prompt: Prompt, prices: str) -> None:
    lines = (prompt.folder / prices).read_text().splitlines()
    days = ("2025-03-05", "2025-03-06", "2025-03-07")
    gap = prompt.write("gap.csv", "\n".join(line for line in lines if not line.startswith(days)))
    commands = (
        ("show", gap),
        ("fit", gap, "-o", "m.json", "--model", "frequency", *FEW),
        ("eval", gap, "--models", "frequency", "--questions", "50", *FEW),
    )
    for words in commands:
        refused(prompt("market", *words), "no price of", "--max-gap")
        bridged = prompt("market", *words, "--max-gap", "4d")
        assert bridged.exit_code == 0, bridged.output
    refused(prompt("market", "show", gap, "--max-gap", "long"), "--max-gap='long' is not a length of time")


def test_bad_input_gets_a_message(prompt: Prompt, prices: str) -> None:
    refused(prompt("market", "fit", "nowhere.csv", "-o", "m.json"), "there is no such file")
    refused(prompt("market", "fit", prices, "-o", "m.json", "--model", "tree", *FEW), "'tree' is unknown", "trees")
    refused(prompt("market", "fit", prices, "-o", "m.json", "--until", "soon", *FEW), "'soon' is not a time")
    refused(prompt("market", "fit", prices, "-o", "m.json", "--until", "2025-03-03", *FEW), "too short to learn from")
    refused(prompt("market", "fit", prices, "-o", "no/such/m.json", "--model", "prior", *FEW), "cannot be written")
    refused(prompt("market", "show", prices, "--model", prices), "is not a saved revocation model")
    refused(prompt("market", "show", prices, "--model", "nowhere.json"), "nowhere.json cannot be read")
    refused(prompt("market", "show", prices, "--max-price", "-1"), "--max-price -1 is not a price")
    refused(prompt("market", "show", prices, "--within", "ever"), "ever")
    refused(prompt("market", "show", prices, "--at", "1999-01-01"), "no market is recorded at 1999-01-01")
    refused(prompt("market", "eval", prices, "--windows", "900"), "too short for 900 windows")
    other = prompt.write("other.csv", "timestamp,machine,zone,usd_per_hour\n2025-03-03T00:00:00Z,big.iron,here,1\n")
    refused(prompt("market", "show", other), "none of its machine types is in the catalogue")
