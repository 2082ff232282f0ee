"""torch.distributed in the examples: what a trial learns does not depend on its number of workers."""

from pathlib import Path

import pytest

from shoestring.worker.outbox import Reported, Saved

pytestmark = pytest.mark.heavy
EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_gang.py"


def losses(run):
    return [line.metrics["loss"] for line in run.lines(Reported)]


def test_a_trial_that_changes_its_workers_on_the_way_learns_as_one_that_does_not(worker):
    pytest.importorskip("torch")
    example = {"function": f"{EXAMPLE}:train", "config": {"lr": 0.01}}
    assert worker.run(**example, until_step=6).cause == "reached"
    alone = losses(worker)
    moved, saved = [], None
    for until_step, workers in ((2, 1), (4, 3), (6, 2)):
        worker.next_segment()
        gang = {"slots": workers, "workers": workers, "world_size": workers}
        ended = worker.run(**example, **gang, until_step=until_step, resume_from=saved)
        assert ended.cause == "reached", ended.detail
        moved += losses(worker)
        saved = worker.lines(Saved)[-1].ref
    assert moved == pytest.approx(alone, rel=1e-3)
    assert alone[5] < alone[0]
