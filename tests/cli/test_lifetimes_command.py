"""`shoestring lifetimes`: what it prints, what it saves, and what it refuses."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from random import Random

import pytest

from shoestring.models.lifetimes.families import Weibull
from tests.cli.prompt import Prompt, refused

DAY_S = 86400.0
PATH = ".//{http://www.w3.org/2000/svg}path"


@pytest.fixture
def lifetimes(prompt: Prompt) -> str:
    """Two hundred machines of two types, limit 24 h; the big ones are preempted earlier, a third is released."""
    rng, lines = Random(5), ["machine,zone,launched_at,lifetime_s,taken,limit_s"]
    for number in range(200):
        big = number % 2
        life = Weibull(scale_s=3e5 / (1 + 3 * big), shape=0.5, limit_s=DAY_S).sample(rng)
        stop = rng.uniform(0.0, 3 * DAY_S)
        at = datetime.fromtimestamp(1.7e9 + rng.uniform(0, 20) * DAY_S, UTC).isoformat()
        lines.append(f"{'big' if big else 'small'},here,{at},{min(life, stop):.1f},{life <= stop},{DAY_S:.0f}")
    return prompt.write("lives.csv", "\n".join(lines))


@pytest.fixture
def model(prompt: Prompt, lifetimes: str) -> str:
    result = prompt("lifetimes", "fit", lifetimes, "-o", "model.json")
    assert result.exit_code == 0, result.output
    assert "weibull_atom from 200 machines" in result.output
    assert "saved to model.json" in result.output
    return "model.json"


def test_a_fitted_model_is_shown_by_age_and_by_group(prompt: Prompt, model: str) -> None:
    text = prompt("lifetimes", "show", model, "--work", "6h").output
    assert "gone within 6h" in text
    assert "machine  big" in text
    told = json.loads(prompt("lifetimes", "show", model, "--json").stdout)
    survivals = [row["survival"] for row in told["ages"]]
    assert survivals == sorted(survivals, reverse=True)
    assert told["kinds"]["machine"]["big"]["multiplier"] > told["kinds"]["machine"]["small"]["multiplier"]


def test_a_higher_hazard_gives_a_shorter_mean_lifetime(prompt: Prompt, model: str) -> None:
    def mean_s(*words: str) -> float:
        return float(json.loads(prompt("lifetimes", "show", model, "--json", *words).stdout)["mean_s"])

    assert mean_s("--machine", "big") < mean_s() < mean_s("--machine", "small")


def test_plots_are_written(prompt: Prompt, lifetimes: str, model: str) -> None:
    shown = prompt("lifetimes", "show", model, "--data", lifetimes, "--plot", "kinds.svg")
    assert "wrote the plot to kinds.svg" in shown.output
    # all machines, two types, a zone, two times of day and of the week, each as counted and as fitted
    assert len(ET.fromstring((prompt.folder / "kinds.svg").read_text()).findall(PATH)) == 16
    prompt("lifetimes", "show", model, "--plot", "fitted.svg")
    assert len(ET.fromstring((prompt.folder / "fitted.svg").read_text()).findall(PATH)) == 8
    judged = prompt(
        "lifetimes", "eval", lifetimes, "--models", "weibull_atom,uniform", "--folds", "2", "--plot", "m.svg"
    )
    assert "wrote the plot to m.svg" in judged.output
    assert len(ET.fromstring((prompt.folder / "m.svg").read_text()).findall(PATH)) == 3


def test_models_are_compared_best_first(prompt: Prompt, lifetimes: str) -> None:
    words = ("--models", "exponential,weibull_atom,bathtub_printed", "--folds", "2")
    rows = json.loads(prompt("lifetimes", "eval", lifetimes, *words, "--json").stdout)
    assert rows[0]["model"] == "weibull_atom"
    assert [row["log_likelihood"] for row in rows] == sorted((row["log_likelihood"] for row in rows), reverse=True)
    table = prompt("lifetimes", "eval", lifetimes, *words).output
    assert table.splitlines()[1].split() == ["model", "log-likelihood", "KS", "mean", "lifetime"]


def test_the_papers_procedure_is_there_to_compare(prompt: Prompt, lifetimes: str) -> None:
    for words in (("--model", "bathtub_printed"), ("--by", "least-squares")):
        assert prompt("lifetimes", "fit", lifetimes, "-o", "paper.json", *words).exit_code == 0
        assert json.loads(prompt("lifetimes", "show", "paper.json", "--json").stdout)["by"] == "least_squares"


def test_own_runs_are_used_in_the_fit(prompt: Prompt, lifetimes: str) -> None:
    study = prompt.study(on='"local"', trials="8", max_steps="40")
    ran = prompt(
        "simulate", study, "--name", "mine", "--budget", "20", "--deadline", "12h", "--seconds-per-step", "600",
        "--market", "modern",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    result = prompt("lifetimes", "fit", lifetimes, "--runs", "mine-simulated", "-o", "both.json")
    assert result.exit_code == 0, result.output
    assert "yours: " in result.output
    own = json.loads(prompt("lifetimes", "show", "both.json", "--json").stdout)["kinds"]["own"]
    assert own["expected"] > 0
    assert "own" in prompt("lifetimes", "show", "both.json").output


def test_runs_without_a_spot_machine_have_nothing_to_learn_from(prompt: Prompt) -> None:
    study = prompt.study(on='"local"', trials="2", max_steps="2")
    assert prompt("simulate", study, "--name", "mine", "--market", "free").exit_code == 0
    refused(prompt("lifetimes", "fit", "--runs", "mine-simulated", "-o", "m.json"), "no spot machine", "preempted")


def test_bad_input_gets_a_message(prompt: Prompt, lifetimes: str, model: str) -> None:
    refused(prompt("lifetimes", "fit", "-o", "m.json"), "there are no lifetimes to fit")
    refused(prompt("lifetimes", "fit", "nowhere.csv", "-o", "m.json"), "there is no such file")
    refused(
        prompt("lifetimes", "fit", lifetimes, "-o", "m.json", "--model", "weibul"), "'weibul' is unknown", "weibull"
    )
    refused(prompt("lifetimes", "fit", lifetimes, "-o", "m.json", "--limit", "soon"), "soon")
    refused(prompt("lifetimes", "fit", lifetimes, "-o", "m.json", "--limit", "0"), "--limit must be more than 0")
    refused(prompt("lifetimes", "fit", lifetimes, "-o", "no/such/m.json"), "cannot be written")
    refused(prompt("lifetimes", "fit", lifetimes, "-o", "m.json", "--machines", "huge"), "no machine matches")
    refused(prompt("lifetimes", "fit", "--runs", "never", "-o", "m.json"), "there is no run 'never'")
    refused(prompt("lifetimes", "show", lifetimes), "is not a saved lifetime model")
    refused(prompt("lifetimes", "show", "nowhere.json"), "nowhere.json cannot be read")
    refused(prompt("lifetimes", "show", model, "--work", "ever"), "ever")
    refused(prompt("lifetimes", "eval", lifetimes, "--models", "trees"), "'trees' is unknown")
    refused(prompt("lifetimes", "eval", lifetimes, "--folds", "900"), "200 machines cannot be split into 900 folds")
    bad = prompt.write("bad.csv", "lifetime_s,taken\nlong,true\n")
    refused(prompt("lifetimes", "eval", bad), "bad.csv, line 2", "'long' is not a lifetime")
    none_taken = prompt.write("calm.csv", "lifetime_s,taken\n5,no\n6,no\n7,no\n")
    refused(prompt("lifetimes", "fit", none_taken, "-o", "m.json"), "0 of 3 machines were preempted")
