"""The live line: redrawn in place on a terminal, one line per minute in a log."""

from __future__ import annotations

import io

import pytest

from shoestring.kernel import events as e
from shoestring.runs import progress_line as progress
from shoestring.runs.progress_line import LiveLine
from shoestring.testing.story import story

EVENT = e.TimerFired(at=1.0, name="tick")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_line_is_redrawn_in_place_and_stays_at_the_end() -> None:
    stream, state = Terminal(), story(lease="l0", job="j0", running_since=0.0).state
    line = LiveLine(stream)
    line(state, EVENT)
    line.finish(state)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().count("\r") == 2
    assert "0/" in stream.getvalue()
    assert "0 preemptions, 0 steps lost" in stream.getvalue()


def test_in_a_log_a_short_run_has_no_line_and_a_long_one_a_line_per_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, state = io.StringIO(), story(lease="l0", job="j0", running_since=0.0).state
    line = LiveLine(stream)
    line(state, EVENT)
    line.finish(state)
    assert stream.getvalue() == ""
    monkeypatch.setattr(progress, "LOG_EVERY_S", 0.0)
    line = LiveLine(stream)
    line(state, EVENT)
    line(state, EVENT)
    line.finish(state)
    assert stream.getvalue().count("\n") == 2
    assert "\r" not in stream.getvalue()
