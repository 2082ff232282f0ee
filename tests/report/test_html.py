"""The page: plots that are correct, complete and small, for any run."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoestring as ss
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.decisions import Decision
from shoestring.kernel.events import Event
from shoestring.kernel.history import Entry
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.types import LOCAL, THIS_MACHINE, Listing, Offer
from shoestring.report.html import LOG_HEAD, LOG_TAIL, page
from shoestring.report.plots.journal_pass import Chronicle, TrialInterval
from shoestring.report.plots.machines import SHOWN, lanes, machine_bars
from shoestring.report.plots.svg import escaped
from shoestring.report.study import Study
from tests.studies import play, random_case

HOSTILE = "</title><script>alert('x')</script>\x1b&"
SPEC = RunSpec(name="told", metric="loss", trials=3, max_steps=9, budget_usd=1.0, deadline_s=7200.0)
FIGURE = re.compile(r'<figure id="(\w+)">.*?</figure>', re.DOTALL)


def simulated(curve: Callable[[dict], Callable[[int], dict]], **changes: object) -> ss.Study:
    fields: dict[str, object] = {
        "space": {"lr": ss.log(1e-4, 1), "kind": ss.choice("a", HOSTILE)},
        "minimize": "loss",
        "trials": 20,
        "max_steps": 9,
        "budget": "$5",
        "deadline": "12h",
        "market": {"kind": "modern", "interruptions_per_hour": 2.0},
        "name": "drawn",
    }
    workload = ss.Workload(curve=curve, seconds_per_step=ss.SublinearSpeed(900.0))
    return ss.simulate(workload=workload, **(fields | changes))


def plain_curve(config: dict) -> Callable[[int], dict]:
    return lambda step: {"loss": 1 / step + config["lr"]}


@pytest.fixture(scope="module")
def study() -> ss.Study:
    return simulated(plain_curve)


def figures(text: str) -> dict[str, ET.Element]:
    """The figures by name; they must parse as XML."""
    return {match[1]: ET.fromstring(match[0]) for match in FIGURE.finditer(text)}


def drawing(figure: ET.Element) -> ET.Element:
    found = figure.find("svg")
    assert found is not None
    return found


def text_of(element: ET.Element) -> str:
    return " ".join(element.itertext())


def journal(*turns: Event | tuple[Event, Sequence[Decision]]) -> list[Entry]:
    pairs = [turn if isinstance(turn, tuple) else (turn, ()) for turn in turns]
    return [Entry(seq=i + 1, event=event, decisions=tuple(taken)) for i, (event, taken) in enumerate(pairs)]


# -- the whole page ----------------------------------------------------------------------------------------------------
def test_every_figure_is_well_formed_and_has_text_for_screen_readers(study: ss.Study) -> None:
    found = figures(page(study))
    assert list(found) == ["curves", "money", "machines"]
    for name, figure in found.items():
        svg = drawing(figure)
        title, described = svg[0], svg[1]
        assert (title.tag, described.tag) == ("title", "desc")
        assert title.text
        assert len(described.text or "") > 20
        assert svg.get("aria-labelledby") == f"{title.get('id')} {described.get('id')}"
        assert title.get("id") == f"{name}-title"


def test_nothing_is_fetched_and_nothing_runs(study: ss.Study) -> None:
    text = page(study)
    for forbidden in ("<script", "http:", "https:", "src=", "url(", "@import", "onload"):
        assert forbidden not in text
    assert "prefers-color-scheme: dark" in text


def test_user_names_and_values_are_escaped() -> None:
    study = simulated(lambda _: lambda step: {HOSTILE: 1 / step}, minimize=HOSTILE)
    machine = Study(lambda: rented(spec_with(offer(HOSTILE)), of=offer(HOSTILE)))
    text = page(study) + page(machine)
    assert "<script" not in text
    assert "alert(" in text
    for figure in figures(text).values():
        assert {element.tag for element in figure.iter()} <= {
            *("figure", "h2", "p", "span", "figcaption", "svg", "title", "desc"),
            *("g", "path", "line", "rect", "circle", "text"),
        }


def test_escaped_text_is_valid_xml() -> None:
    assert ET.fromstring(f"<p>{escaped(HOSTILE)}</p>").text == HOSTILE.replace("\x1b", "\ufffd")


def test_a_run_without_data_says_so() -> None:
    entries = journal(e.RunStarted(at=100.0, spec=SPEC, seed=0))
    text = page(Study(lambda: entries))
    assert "<svg" not in text
    assert "No trial has reported a value of loss yet." in text
    assert "No machine has been rented yet." in text


def test_a_bag_that_follows_no_metric_has_no_learning_curves() -> None:
    entries = journal(e.RunStarted(at=0.0, spec=RunSpec(name="bag", kind="bag"), seed=0))
    assert "Learning curves" not in page(Study(lambda: entries))


def test_a_long_log_keeps_its_beginning_and_its_end() -> None:
    cheapest = {"placement": "cheapest"}  # decided at once; the log is as long
    study = simulated(plain_curve, trials=400, budget="$50", deadline="30d", max_machines=40, options=cheapest)
    whole = len(study.log())
    assert whole > LOG_HEAD + LOG_TAIL
    text = page(study)
    assert f"... {whole - LOG_HEAD - LOG_TAIL:,} lines omitted" in text
    assert "study drawn started" in text
    assert "over, best is trial " in text
    assert "and 350 more: shoestring export writes them all" in text
    assert len(text) < 600_000


# -- what is true over time --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(12))
def test_the_chronicle_agrees_with_the_fold(seed: int) -> None:
    state, memory = play(random_case(random.Random(seed)))
    chronicle = Chronicle(memory.read())
    assert chronicle.billed()[-1][1] == pytest.approx(state.spent_usd)
    assert chronicle.held()[-1][1] == 0
    assert all(number >= 0 for _, number in chronicle.held())
    assert chronicle.now_s == pytest.approx(state.now - state.started_at)
    up_and_taken = sum(machine.preempted for machine in chronicle.machines)
    assert up_and_taken <= state.revocations
    for machine in chronicle.machines:
        for interval in machine.intervals:
            assert interval.ended_s is not None
            assert machine.began_s <= interval.began_s <= interval.ended_s
    assert list(figures(page(Study(memory.read)))) == ["curves", "money", "machines"]


def test_the_cost_curve_ends_at_the_total_of_the_receipt(study: ss.Study) -> None:
    svg = drawing(figures(page(study))["money"])
    total = study.receipt.charged
    assert total.usd > 0
    assert str(total) in [text.text for text in svg.iter("text") if text.get("class") == "value"]
    path = next(path.get("d", "") for path in svg.iter("path") if path.get("id") == "billed")
    end_y = float(path.rpartition("V")[2])
    marks = {float((text.text or "")[1:]): float(text.get("y", "")) - 4 for text in svg.iter("text") if _is_tick(text)}
    (low, low_y), *_, (high, high_y) = sorted(marks.items())
    end_usd = low + (end_y - low_y) / (high_y - low_y) * (high - low)
    assert end_usd == pytest.approx(study.receipt.charged.usd, rel=0.02)


def _is_tick(text: ET.Element) -> bool:
    return text.get("text-anchor") == "end" and (text.text or "").startswith("$") and text.get("class") is None


def test_limits_in_range_are_lines_and_distant_ones_are_named_at_the_edge(study: ss.Study) -> None:
    far = text_of(figures(page(study))["money"])
    assert "↑ budget $5.00" in far
    near = drawing(figures(page(simulated(plain_curve, budget="$0.05", deadline="3h")))["money"])
    assert "budget $0.05" in text_of(near)
    assert "↑" not in text_of(near)
    assert len([line for line in near.iter("line") if line.get("class") == "limit"]) == 2


def offer(machine: str = "m1", *, spot: bool = True, provider: str = "aws") -> Offer:
    return Offer(provider=provider, zone="z", machine=machine, spot=spot)


def rented(spec: RunSpec, *, of: Offer, late: bool = False) -> list[Entry]:
    """One trial on one machine for an hour; `late`: the bill arrives before everything else."""
    bill = e.LeaseEnded(at=3700.0, lease="l0", cause="revoked", charged_usd=spec.budget_usd / 2)
    stopped = e.SegmentEnded(at=3690.0, segment="s0", step=3, cause="reached")
    ending = [bill, stopped, e.LeaseGranted(at=100.0, lease="l0")] if late else [stopped, bill]
    start = d.StartSegment(segment="s0", job="j0", leases=("l0",), config={}, until_step=3, why="it waits")
    request = d.RequestLease(lease="l0", offer=of, end_by=9e3, reserve_usd=spec.budget_usd / 2, why="there is work")
    return journal(
        (
            e.RunStarted(at=50.0, spec=spec, seed=0),
            [
                d.AddJob(job="j0", config={}, why="the first"),
                d.RunJob(job="j0", until_step=3, why="the first"),
                request,
            ],
        ),
        (e.LeaseGranted(at=100.0, lease="l0"), [start]),
        *ending,
    )


def spec_with(*offers: Offer, budget_usd: float = 1.0) -> RunSpec:
    listings = tuple(Listing(offer=one, vcpus=2, memory_gb=4, on_demand_usd_per_hour=0.1) for one in offers)
    return RunSpec(name="hand", metric="loss", max_steps=9, budget_usd=budget_usd, deadline_s=7200.0, listings=listings)


@pytest.mark.parametrize("late", [False, True])
def test_lease_ended_may_arrive_before_segment_ended(late: bool) -> None:
    entries = rented(spec_with(offer()), of=offer(), late=late)
    chronicle = Chronicle(entries)
    (machine,) = chronicle.machines
    assert (machine.began_s, machine.ended_s, machine.cause) == (50.0, 3650.0, "revoked")
    assert [(interval.trial, interval.began_s) for interval in machine.intervals] == [(0, 50.0)]
    assert machine.intervals[0].ended_s == (3650.0 if late else 3640.0)
    assert chronicle.billed() == [(0.0, 0.0), (3650.0, 0.5)]
    assert chronicle.held() == [(0.0, 0), (50.0, 1), (3650.0, 0)]


def test_a_run_free_of_charge_shows_machines_and_no_cost() -> None:
    here = offer(provider=LOCAL, machine=THIS_MACHINE)
    found = figures(page(Study(lambda: rented(spec_with(here, budget_usd=0.0), of=here))))
    assert "dollars" not in text_of(found["money"])
    assert "nothing was billed" in text_of(found["money"])
    assert "machines held" in text_of(found["money"])
    assert "this machine" in text_of(found["machines"])


def test_an_active_run_shows_machines_still_held() -> None:
    entries = rented(spec_with(offer(spot=False)), of=offer(spot=False))[:2]
    found = figures(page(Study(lambda: entries)))
    assert "1 machine still held." in text_of(found["money"])
    assert "still held (1)" in text_of(found["machines"])
    assert "m1*" in text_of(found["machines"])


def test_entries_newer_than_the_results_are_left_out() -> None:
    """A run that is active while its page is made: figures and receipt show the same moment."""
    entries = rented(spec_with(offer()), of=offer())
    seen = entries[:2]
    study = Study(lambda: seen)
    assert study.spent == 0.0
    seen = entries
    assert "preempted" not in text_of(figures(page(study))["machines"])


# -- machines ----------------------------------------------------------------------------------------------------------
def test_bars_are_coloured_by_how_the_lease_ended(study: ss.Study) -> None:
    figure = figures(page(study))["machines"]
    counted = dict(re.findall(r"(released|preempted) \((\d+)\)", text_of(figure)))
    assert int(counted["preempted"]) == study.receipt.revocations > 0
    bars = [rect.get("class") for rect in drawing(figure).iter("rect") if "bar" in rect.get("class", "")]
    assert bars.count("bar revoked") == study.receipt.revocations
    assert len(bars) == study.receipt.leases <= SHOWN


def test_of_very_many_machines_the_first_are_shown() -> None:
    requests = [d.RequestLease(lease=f"l{i}", offer=offer(), end_by=9e9, why="more") for i in range(500)]
    entries = journal(
        (e.RunStarted(at=0.0, spec=SPEC, seed=0), requests),
        *(e.LeaseGranted(at=float(i), lease=f"l{i}") for i in range(500)),
        *(e.LeaseEnded(at=600.0 + i, lease=f"l{i}", cause="expired", charged_usd=0.01) for i in range(500)),
    )
    figure = ET.fromstring(machine_bars(Chronicle(entries), 1e6))
    assert f"The first {SHOWN} of 500 machines." in text_of(figure)
    assert len([rect for rect in drawing(figure).iter("rect") if rect.get("class") == "bar expired"]) == SHOWN


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), max_size=30))
def test_trials_side_by_side_never_share_a_lane(times: list[tuple[float, float]]) -> None:
    intervals = [TrialInterval(trial=i, began_s=at, ended_s=at + long) for i, (at, long) in enumerate(times)]
    found = lanes(intervals, 1000.0)
    assert sum(map(len, found)) == len(intervals)
    for lane in found:
        assert all(a.ended_s <= b.began_s for a, b in pairwise(lane))


def test_trials_too_short_to_tell_apart_are_one_box() -> None:
    chronicle = Chronicle(rented(spec_with(offer()), of=offer()))
    (machine,) = chronicle.machines
    machine.intervals = [TrialInterval(trial=i, began_s=i / 10, ended_s=(i + 1) / 10) for i in range(20_000)]
    machine.intervals.append(TrialInterval(trial=7, began_s=2000.0, ended_s=3600.0))
    figure = ET.fromstring(machine_bars(chronicle, 1e9))
    (path,) = [path.get("d", "") for path in drawing(figure).iter("path") if path.get("class") == "revoked"]
    assert path.count("M") == 2
    assert [text.text for text in drawing(figure).iter("text") if text.get("class") == "inside"] == ["7"]
