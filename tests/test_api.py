"""The four calls, from Python: what they accept, what they refuse, and how runs are resumed."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import shoestring as ss
from shoestring.errors import SpecError
from shoestring.specs.market import make_market
from shoestring.testing.slowness import PATIENCE_S

SPACE = {"lr": ss.uniform(0, 1)}
WORKLOAD = ss.Workload(
    curve=lambda config: lambda step: {"loss": 1 / step + abs(config["lr"] - 0.3)},
    seconds_per_step=ss.SublinearSpeed(300.0),
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOESTRING_HOME", raising=False)


def train(trial: ss.Trial) -> None:
    for step in trial.steps():
        trial.report(loss=1 / step + abs(trial["lr"] - 0.3))
        with trial.save() as folder:
            if folder:
                (folder / "step").write_text(str(step))


# -- tune --------------------------------------------------------------------------------------------------------------
def test_a_study_on_this_machine_is_free_of_charge_and_is_found_again() -> None:
    study = ss.tune(train, space=SPACE, minimize="loss", trials=5, max_steps=9, on="inline", name="mine")
    assert study.status == "completed"
    assert study.spent == 0
    assert study.best is not None
    assert study.best.checkpoint is not None
    assert (study.best.checkpoint / "step").read_text() == str(study.best.step)
    again = ss.resume("mine")
    assert again.best == study.best


def test_a_live_run_on_a_price_file_begins_at_its_start_with_the_prices_before_as_history(tmp_path: Path) -> None:
    lines = [f"2025-03-{day:02}T00:00:00Z,m5.large,us-east-1a,0.0{day}" for day in range(3, 9)]
    (tmp_path / "prices.csv").write_text("\n".join(["timestamp,machine,zone,usd_per_hour", *lines]))
    market = {"prices": "prices.csv", "start": "2025-03-06T12:00", "speedup": 3600}
    study = ss.tune(
        train, space=SPACE, minimize="loss", trials=1, market=market, budget=1, deadline="1d", on="inline", name="later"
    )
    assert datetime.fromtimestamp(study.state.started_at, UTC).isoformat() == "2025-03-06T12:00:00+00:00"
    offer = next(listing.offer for listing in study.spec.listings if listing.offer.spot)
    provider = make_market(market).open_live(86400.0)
    known = provider.feed.history(offer, provider.start)
    assert (provider.start, known.usd_per_hour) == (study.state.started_at, (0.03, 0.04, 0.05, 0.06))


def test_inline_accepts_any_callable() -> None:
    offset = 0.25
    study = ss.tune(
        lambda trial: trial.report(loss=abs(trial["lr"] - offset)),
        space=SPACE,
        minimize="loss",
        trials=3,
        on="inline",
        name="closure",
    )
    assert len(study.trials) == 3


def test_real_processes_find_the_function_in_its_file() -> None:
    study = ss.tune(train, space=SPACE, minimize="loss", trials=2, max_steps=3, recipe="random", name="processes")
    assert [row.step for row in study.trials] == [3, 3]
    assert all(row.machines == ("this machine",) for row in study.trials)


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import shoestring as ss\n"
        "def train(trial):\n"
        "    for step in trial.steps():\n"
        "        trial.report(loss=trial['lr'])\n"
        "study = ss.tune(train, space={'lr': ss.choice(0.5, 0.25)}, minimize='loss', recipe='grid', max_steps=2)\n"
        "print('best', study.best.value, 'of', len(study.trials))\n"
    )
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=PATIENCE_S, cwd=tmp_path
    )
    assert ran.stdout == "best 0.25 of 2\n", ran.stderr
    assert (tmp_path / ".shoestring" / "script").is_dir()


def test_what_cannot_be_run_is_refused_before_anything_is_written() -> None:
    with pytest.raises(SpecError, match="budgte"):
        ss.tune(train, space=SPACE, minimize="loss", on="inline", budgte=3)
    with pytest.raises(SpecError, match="no metric"):
        ss.tune(train, space=SPACE, on="inline")
    with pytest.raises(SpecError, match="cannot be found"):
        ss.tune(lambda _: None, space=SPACE, minimize="loss")
    assert not Path(".shoestring").exists()


def test_a_bag_runs_every_combination() -> None:
    done: list[tuple[int, int]] = []
    bag = ss.run_bag(
        lambda job: done.append((job["a"], job["b"])), over={"a": [1, 2], "b": range(3)}, on="inline", name="bag"
    )
    assert sorted(done) == [(a, b) for a in (1, 2) for b in range(3)]
    assert [row.status for row in bag.trials] == ["finished"] * 6


def test_a_function_of_a_bag_is_done_when_it_returns() -> None:
    done: list[int] = []

    def converge(job: ss.Trial) -> None:
        for step in job.steps():
            job.report(energy=-float(step))
            if step == 2 + job["k"]:
                break
        done.append(job["k"])

    bag = ss.run_bag(converge, over={"k": [1, 2, 3]}, on="inline", name="converge")
    assert done == [1, 2, 3]
    assert [(row["status"], row["energy"]) for row in bag.results] == [("finished", -2.0 - k) for k in (1, 2, 3)]


def test_max_steps_of_a_bag_bounds_the_loop_of_a_function_and_not_its_reports() -> None:
    def work(job: ss.Trial) -> None:
        for step in job.steps():
            job.report(loss=float(step))
        for step in (4, 5, 6):
            job.report(step=step, loss=float(step))

    bag = ss.run_bag(work, over={"k": [1]}, max_steps=3, on="inline", name="scaled")
    assert [(row["status"], row["loss"]) for row in bag.results] == [("finished", 6.0)]
    assert [job.step for job in bag.state.jobs.values()] == [6]


# -- going on ----------------------------------------------------------------------------------------------------------
def test_an_interrupted_run_is_resumed_by_the_same_call() -> None:
    calls: list[int] = []

    def impatient(trial: ss.Trial) -> None:
        calls.append(trial.number)
        if len(calls) == 3:
            raise KeyboardInterrupt
        train(trial)

    def tune() -> ss.Study:
        return ss.tune(impatient, space=SPACE, minimize="loss", trials=4, recipe="random", on="inline", name="again")

    with pytest.raises(KeyboardInterrupt):
        tune()
    study = tune()
    assert study.status == "completed"
    assert sorted(set(calls)) == [0, 1, 2, 3]
    assert len(calls) == 5, "only the interrupted one ran twice"


def test_resuming_an_inline_run_without_its_function_is_refused() -> None:
    def interrupted(_: ss.Trial) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ss.tune(interrupted, space=SPACE, minimize="loss", on="inline", name="closure")
    with pytest.raises(SpecError, match="inline"):
        ss.resume("closure")


# -- simulate ----------------------------------------------------------------------------------------------------------
def simulated(**changes: object) -> ss.Study:
    fields: dict[str, object] = {
        "space": SPACE,
        "minimize": "loss",
        "trials": 12,
        "max_steps": 9,
        "budget": "$5",
        "deadline": "12h",
        "market": {"kind": "modern", "interruptions_per_hour": 1.0},
        "name": "sim",
    }
    return ss.simulate(workload=WORKLOAD, **(fields | changes))


def test_a_simulation_needs_no_code_and_leaves_nothing_behind() -> None:
    study = simulated()
    assert study.status == "completed"
    assert 0 < study.spent <= 5
    assert study.state.revocations > 0
    assert not Path(".shoestring").exists()


def test_the_same_seed_makes_the_same_run_and_another_seed_another() -> None:
    first, again, other = (str(simulated(seed=seed).log()) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_simulation_can_be_stored() -> None:
    study = simulated(store="kept")
    assert study.folder is not None
    assert ss.resume("sim-simulated", store="kept").best == study.best


def test_machines_are_chosen_by_size_name_or_provider() -> None:
    study = simulated(market="modern", machines=ss.machines("gcp", spot=True, max_vcpus=4, gpus=0))
    assert {listing.offer.provider for listing in study.spec.listings} == {"gcp"}
    assert all(listing.offer.spot and listing.vcpus <= 4 for listing in study.spec.listings)
    study = simulated(market="auction", machines=["m5.large"], zones=["us-east-1b"])
    assert {(x.offer.machine, x.offer.zone) for x in study.spec.listings} == {("m5.large", "us-east-1b")}


def test_naming_machines_implies_a_market() -> None:
    assert make_market(None).kind == "free"
    assert make_market(None, machines=["m5.large"]).kind == "modern"
    assert make_market("auction", speedup=900).speedup == 900


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("moderne", "modern"),
        (17, "is not a market"),
        ({"kind": "modern", "interuptions_per_hour": 1}, "interuptions_per_hour"),
        ({"kind": "modern", "speedup": 0}, "speedup"),
        ({"kind": "modern", "machines": {"max_cpus": 3}}, "max_cpus"),
    ],
)
def test_an_invalid_market_is_refused_with_a_message(asked: object, words: str) -> None:
    with pytest.raises(SpecError) as refusal:
        make_market(asked)
    assert words in f"{refusal.value} {refusal.value.hint}"


def test_importing_the_package_and_its_names() -> None:
    assert set(ss.__all__) <= set(dir(ss))
    assert ss.tune is sys.modules["shoestring.api"].tune
    with pytest.raises(AttributeError, match="nonsense"):
        _ = ss.nonsense
