"""Learning curves, and the parts of all plots: scales, ticks, thinned lines."""

from __future__ import annotations

import math
import random
import xml.etree.ElementTree as ET
from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.kernel.records import Job
from shoestring.kernel.spec import RunSpec
from shoestring.report.plots import axes
from shoestring.report.plots.learning_curves import BEST_SHOWN, OTHERS_SHOWN, choose, learning_curves, span_of
from shoestring.report.plots.svg import thin

SPEC = RunSpec(name="told", metric="loss", trials=3, max_steps=9, budget_usd=1.0, deadline_s=7200.0)


def drawing(figure: ET.Element) -> ET.Element:
    found = figure.find("svg")
    assert found is not None
    return found


def said(element: ET.Element) -> str:
    return " ".join(element.itertext())


def job(number: int, values: Sequence[float], status: str = "finished") -> Job:
    finite = [value for value in values if not math.isnan(value)]
    return Job(
        id=f"j{number}",
        number=number,
        config={"lr": 0.1},
        tags={},
        status=status,
        steps=array("q", range(1, len(values) + 1)),
        values=array("d", values),
        best=min(finite, default=math.nan),
    )


def curves(jobs: Sequence[Job], best: Job | None = None) -> ET.Element:
    return ET.fromstring(learning_curves(SPEC, jobs, best))


def marks(figure: ET.Element, class_: str) -> list[ET.Element]:
    return [element for element in drawing(figure).iter() if element.get("class") == class_]


def test_the_best_trial_lies_on_top_and_dropped_ones_are_faint() -> None:
    jobs = [job(0, [3.0, 2.0]), job(1, [3.0, 1.0]), job(2, [4.0, 4.0], "pruned")]
    figure = curves(jobs, best=jobs[1])
    lines = [path.get("class") for path in drawing(figure).iter("path")]
    assert lines == ["early", "going", "best"]
    assert "best: trial 1, loss 1" in said(figure)


def test_one_report_is_a_dot() -> None:
    only = job(0, [0.5])
    figure = curves([only], best=only)
    assert not list(drawing(figure).iter("path"))
    assert marks(figure, "best dot")


def test_nan_leaves_a_gap() -> None:
    broken = job(0, [4.0, 3.0, math.nan, 2.0, math.inf, 1.0, 0.5])
    figure = curves([broken, job(1, [math.nan, math.inf])], best=broken)
    (line,) = marks(figure, "best")[-1:]
    assert line.get("d", "").count("M") == 2
    assert len(marks(figure, "best dot")) == 2  # the lone value between two gaps, and the best one
    assert "1 trial never reported a number for loss." in said(figure)


def test_only_nan_gives_no_plot() -> None:
    figure = curves([job(0, [math.nan, -math.inf])])
    assert figure.find("svg") is None
    assert "No trial has reported a number for loss yet." in said(figure)


def test_of_very_many_trials_the_best_and_a_sample_are_drawn() -> None:
    rng = random.Random(1)
    jobs = [job(i, [rng.random() + 10_000 / (i + 1) for _ in range(500)]) for i in range(10_000)]
    best = min(jobs, key=lambda one: one.best)
    chosen = choose(SPEC, jobs)
    assert len({one.number for one in chosen}) == BEST_SHOWN + OTHERS_SHOWN
    assert {one.number for one in sorted(jobs, key=lambda one: one.best)[:BEST_SHOWN]} <= {one.number for one in chosen}
    text = learning_curves(SPEC, jobs, best)
    assert len(text) < 500_000
    assert "60 of 10,000 trials: the 20 best, and an even sample of the others." in text
    assert f"best: trial {best.number}," in text


def test_two_decades_of_positive_values_get_a_log_scale_and_others_do_not() -> None:
    assert span_of([0.01, 0.1, 1.0, 2.0], SPEC).log
    assert not span_of([0.1, 1.0, 2.0], SPEC).log
    assert not span_of([-0.01, 0.1, 1.0, 2.0], SPEC).log
    assert "loss (log scale)" in said(curves([job(0, [100.0, 10.0, 0.1])]))


def test_a_trial_that_diverges_does_not_flatten_the_others() -> None:
    values = [1.0 - i / 100 for i in range(50)]
    span = span_of([*values, 1e250], SPEC)
    assert span.cut
    assert not span.log
    assert span.high < 3
    assert "cut off" in said(curves([job(0, values), job(1, [1e250])]))


ANY_VALUE = st.floats(allow_nan=False, allow_infinity=False, max_value=1e299, min_value=-1e299)


@given(st.lists(ANY_VALUE, min_size=1, max_size=20), st.sampled_from(["minimize", "maximize"]))
@settings(max_examples=200)
def test_any_values_make_a_plot_with_the_best_in_it(values: list[float], direction: str) -> None:
    spec = RunSpec(name="any", metric="loss", direction=direction)
    span = span_of(values, spec)
    best = min(values) if direction == "minimize" else max(values)
    assert span.low < span.high
    assert span.low <= best <= span.high
    text = learning_curves(spec, [job(0, values)], None)
    assert "nan" not in text
    assert "inf" not in text
    ET.fromstring(text)


# -- small things ------------------------------------------------------------------------------------------------------
@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_ticks_are_few_inside_and_distinct(low: float, width: float) -> None:
    at = axes.ticks(low, low + width)
    slack = 1e-6 * max(abs(low), width)
    assert 2 <= len(at) <= 7
    assert all(low - slack <= value <= low + width + slack for value in at)


def test_labels_have_the_digits_they_need() -> None:
    assert axes.as_numbers([0.05, 0.1, 0.15]) == ["0.05", "0.10", "0.15"]
    assert axes.as_dollars([0.0, 0.5, 1.0]) == ["$0", "$0.50", "$1.00"]
    assert axes.as_dollars([0.0, 0.005]) == ["$0", "$0.005"]
    assert axes.as_dollars([0.0, 1000.0]) == ["$0", "$1,000"]
    assert axes.as_times(axes.time_ticks(3 * 3600.0)) == ["0", "30m", "1h", "1h30", "2h", "2h30", "3h"]
    assert axes.log_ticks(0.01, 100.0) == pytest.approx([0.01, 0.1, 1, 10, 100])
    assert len(axes.log_ticks(1.1, 1.9)) >= 2


@given(st.lists(st.floats(0, 100), max_size=300))
def test_thinning_keeps_spikes_and_ends(heights: list[float]) -> None:
    points = [(i / 10, height) for i, height in enumerate(heights)]
    kept = thin(points, 5.0)
    assert len(kept) <= 4 * (len(points) // 50 + 1)
    assert kept == sorted(kept, key=lambda point: point[0])
    if points:
        assert (kept[0], kept[-1]) == (points[0], points[-1])
        assert {max(heights), min(heights)} <= {y for _, y in kept}
