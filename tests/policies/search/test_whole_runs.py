"""Given, random and grid: every trial to its end, and never more on the books than can soon run."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from shoestring.kernel import decisions as d
from shoestring.kernel import events as e
from shoestring.policies.search.run_to_completion import Given, Grid, RandomSearch
from shoestring.space.space import Choice, Float, Space
from shoestring.testing.story import SPEC, Story
from tests.policies.search.studies import finish, play_out, statuses, study

BAG = tuple({"x": number / 100} for number in range(100))
SMALL = Space(params={"kind": Choice(options=("a", "b")), "x": Float(low=0.0, high=1.0)})


def test_a_bag_is_run_in_its_order_and_whole() -> None:
    run = study(Given(), given=BAG)
    play_out(run, lambda _job, _step: 1.0, random.Random(1))
    assert statuses(run) == {"finished": 100}
    assert [job.config for job in run.state.jobs.values()] == list(BAG)


def test_a_large_bag_is_not_written_down_in_one_turn() -> None:
    run = study(Given(), given=BAG, places=4)
    assert len(run.state.jobs) == 8  # two for each place
    decided = finish(run, "j0", 1.0)
    assert [type(x) for x in decided] == [d.AddJob, d.RunJob] * 4  # for the four that went to work


def test_more_trials_are_added_when_a_bill_frees_a_slot() -> None:
    run = study(Given(), given=BAG, places=1, max_failures=0)
    run.order(d.DropJob(job="j1", why="the story"))
    decided = run.tell(e.LeaseEnded(at=2.0, lease="l0", cause="revoked", charged_usd=0.0))
    assert [x.job for x in decided if isinstance(x, d.AddJob)] == ["j2"]  # j0 waits again: one more is enough


def test_random_trials_are_seeded_by_job_and_start_with_the_given_ones() -> None:
    run = study(RandomSearch(), given=BAG[:2], trials=9)
    play_out(run, lambda _job, _step: 1.0, random.Random(1))
    configs = [job.config for job in run.state.jobs.values()]
    assert statuses(run) == {"finished": 9}
    assert configs[:2] == list(BAG[:2])
    assert len({config["x"] for config in configs}) == 9
    again = study(RandomSearch(), given=BAG[:2], trials=9)
    assert [job.config for job in again.state.jobs.values()] == configs[: len(again.state.jobs)]
    other = study(RandomSearch(), given=BAG[:2], trials=9, seed=7)
    assert other.state.jobs["j2"].config != configs[2]


def test_given_trials_are_run_even_if_there_are_more_than_trials() -> None:
    run = study(RandomSearch(), given=BAG[:5], trials=3)
    play_out(run, lambda _job, _step: 1.0, random.Random(1))
    assert statuses(run) == {"finished": 5}


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_grid_is_walked_once_and_whole(forgetful: bool) -> None:
    run = study(Grid(points=3), space=SMALL, places=1)
    while run.state.segments:
        if forgetful:
            run.state.memos.clear()
        finish(run, next(iter(run.state.segments.values())).job, 1.0)
    assert [job.config for job in run.state.jobs.values()] == list(SMALL.grid(3))
    assert statuses(run) == {"finished": 6}


def test_a_grid_follows_what_was_given() -> None:
    run = study(Grid(points=2), space=SMALL, given=({"kind": "a", "x": 0.123},), places=8)
    assert [job.config for job in run.state.jobs.values()] == [{"kind": "a", "x": 0.123}, *SMALL.grid(2)]


@pytest.mark.parametrize("search", [Given(), RandomSearch(), Grid()])
def test_no_trial_is_added_while_the_run_is_paused_and_all_resume_after(search) -> None:
    run = study(search, given=BAG[:20], trials=20, places=1)
    run.happened(e.UserAsked(at=5.0, wish="pause"))
    assert finish(run, "j0", 1.0) == []
    decided = run.tell(e.UserAsked(at=9.0, wish="resume"))
    assert [type(x) for x in decided[:2]] == [d.AddJob, d.RunJob]


def test_failed_jobs_do_not_stop_a_bag() -> None:
    run = study(Given(), given=BAG[:20], max_failures=0)
    play_out(run, lambda _job, _step: 1.0, random.Random(3), fails=0.4)
    assert set(statuses(run)) == {"finished", "failed"}
    assert sum(statuses(run).values()) == 20


def test_concurrency_counts_slots_not_machines() -> None:
    wide = replace(SPEC, trials=50, slots=2, max_machines=3, listings=(replace(SPEC.listings[0], slots=5),))
    run = Story(RandomSearch(), spec=wide)
    run.begin()
    assert len(run.state.waiting) == 2 * 6  # two jobs of two slots on each of three machines, and as many behind them
