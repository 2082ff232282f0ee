"""Timers fire once, move, and end with their machine; a background task takes its modelled time and is recorded."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from shoestring.errors import PolicyError, ShoestringError
from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.kernel.background import background_task, task_name
from shoestring.policies.housekeeping.closing import Closing
from tests.world.runs import events_of, simulate, simulated_world
from tests.world.scenes import Scene, gone, without_bill


def wake(scene: Scene, at: float, name="tea", about=None) -> None:
    scene.order(d.WakeAt(name=name, at=at, about=about, why="a test"))


def test_a_timer_fires_at_its_time_and_once():
    scene = Scene()
    wake(scene, 100.0)
    assert scene.next() == e.TimerFired(at=100.0, name="tea")
    with pytest.raises(ShoestringError, match="no events left"):
        scene.next()


@pytest.mark.parametrize("moved_to", [50.0, 100.0, 200.0])
def test_setting_a_timer_again_moves_it(moved_to):
    scene = Scene()
    wake(scene, 100.0)
    wake(scene, moved_to)
    assert scene.next() == e.TimerFired(at=moved_to, name="tea")
    with pytest.raises(ShoestringError, match="no events left"):
        scene.next()


def test_a_timer_set_in_the_past_fires_now():
    scene = Scene()
    wake(scene, 100.0)
    scene.next()
    wake(scene, 30.0)
    assert scene.next() == e.TimerFired(at=100.0, name="tea")


def test_a_timer_about_a_machine_fires_while_the_machine_is_up():
    scene = Scene()
    scene.rent()
    wake(scene, 100.0, about="l0")
    assert scene.first(e.TimerFired) == e.TimerFired(at=100.0, name="tea")


def test_a_timer_about_a_machine_is_cancelled_when_the_machine_ends():
    scene = Scene()
    scene.rent(end_by=90.0)
    wake(scene, 100.0, about="l0")
    wake(scene, 110.0, name="supper")
    events = scene.until(e.TimerFired)
    assert without_bill(events[-2]) == gone(90.0, "expired")
    assert events[-1] == e.TimerFired(at=110.0, name="supper")


# -- background tasks -------------------------------------------------------------------------------------------------
@background_task()
def total(given):
    return {"sum": sum(given)}


def unregistered(given):
    return given


@dataclass(frozen=True)
class RunsInBackground:
    """Starts one background task, and decides again when its result is there."""

    modelled_s: float
    wants: ClassVar = frozenset({e.RunStarted, e.ThoughtReady})

    def decide(self, state, event) -> Iterator[d.Decision]:  # noqa: ARG002
        if isinstance(event, e.RunStarted):
            yield d.Think(
                name="how much", question=task_name(total), given=[1, 2, 4], modelled_s=self.modelled_s, why="slow"
            )
        else:
            yield d.AddJob(job="j0", config={"x": event.answer["sum"]}, why="the result")


@pytest.mark.parametrize("modelled_s", [0.0, 250.0])
def test_a_background_result_comes_after_its_modelled_time(modelled_s):
    state, entries = simulate(simulated_world(), [RunsInBackground(modelled_s), Closing()])
    assert events_of(entries, e.ThoughtReady) == [e.ThoughtReady(at=modelled_s, name="how much", answer={"sum": 7})]
    assert state.jobs["j0"].config == {"x": 7}
    assert not state.background_tasks


def test_a_run_is_not_over_during_a_background_task():
    state, entries = simulate(simulated_world(), [RunsInBackground(250.0), Closing()])
    assert state.concluded
    assert entries[-1].event.at == 250.0


def test_only_registered_functions_can_be_background_tasks():
    with pytest.raises(PolicyError, match="not registered"):
        task_name(unregistered)
    with pytest.raises(PolicyError, match="not a registered background task"):
        Scene().order(d.Think(name="x", question=f"{__name__}:unregistered", given=1, why="a test"))
