"""Several workers under one supervisor: rank 0 reports for all, and no other outlives it."""

import os
import signal
import time
from pathlib import Path

import pytest

import shoestring.testing.user_code as user_code
from shoestring.testing.slowness import PATIENCE_S, slowness
from shoestring.worker.outbox import Ended, Reported, Started, Unsaved
from shoestring.worker.ranks import rank_variables
from shoestring.worker.task import Task

EXAMPLE = Path(__file__).parents[2] / "examples" / "gang.py"
TOGETHER = f"{user_code.__file__}:together"


def gang(size, **task):
    return {"slots": size, "workers": size, "world_size": size, **task}


def ended_and_gone(worker):
    ended = worker.wait_for(Ended)
    worker.process.wait(PATIENCE_S)
    assert worker.leaves_nothing()
    return ended


def test_the_ranks_of_a_gang_connect_and_only_rank_0_reports(worker):
    ended = worker.run(function=TOGETHER, until_step=4, **gang(3))
    assert (ended.cause, worker.steps(), worker.saves()) == ("reached", [1, 2, 3, 4], [4])
    assert len(worker.lines(Started)) == 1


def test_the_example_learns_the_same_alone_and_in_a_gang(worker):
    pytest.importorskip("numpy")
    example = {"function": f"{EXAMPLE}:train", "config": {"lr": 0.01, "frequency": 4.0}, "until_step": 4}
    assert worker.run(**example, **gang(3)).cause == "reached"
    together = [line.metrics["loss"] for line in worker.lines(Reported)]
    worker.next_segment()
    assert worker.run(**example).cause == "reached"
    alone = [line.metrics["loss"] for line in worker.lines(Reported)]
    assert together == pytest.approx(alone, rel=1e-9)
    assert alone[3] < alone[0]


def test_the_errors_of_all_failed_ranks_are_reported_together(worker):
    worker.write(
        "study.py",
        "from shoestring.testing.user_code import Workers\n"
        "def train(trial):\n"
        "    workers = Workers(trial)\n"
        "    for step in trial.steps():\n"
        "        if step == 2 and trial.rank == 1: raise ValueError('a bad batch')\n"
        "        workers.mean([1.0])\n"
        "        trial.report(loss=1.0)\n",
    )
    ended = worker.run(function="study.py:train", **gang(2))
    assert (ended.cause, ended.step) == ("failed", 1)
    assert "rank 1: ValueError: a bad batch (study.py:5)" in ended.detail
    assert "rank 0: json.decoder.JSONDecodeError" in ended.detail, "the error of its peer"


def test_reports_of_other_ranks_are_checked_and_not_recorded(worker):
    worker.write(
        "study.py",
        "def train(trial):\n"
        "    for step in trial.steps():\n"
        "        trial.report(loss=1.0 if trial.rank == 0 else 'low')\n"
        "        while True: pass\n",
    )
    ended = worker.run(function="study.py:train", **gang(2))
    assert ended.detail.startswith("rank 1: metric 'loss' is 'low' (str), not a number")


def test_only_rank_0_saves_and_needs_to_report(worker):
    worker.write(
        "study.py",
        "import time\n"
        "def train(trial):\n"
        "    for step in trial.steps():\n"
        "        if trial.rank == 0:\n"
        "            time.sleep(0.1)\n"
        "            trial.report(loss=1.0)\n"
        "        with trial.save() as folder:\n"
        "            if folder:\n"
        "                assert trial.rank == 0\n"
        "                (folder / 'net').write_text('trained')\n",
    )
    ended = worker.run(function="study.py:train", **gang(2))
    assert (ended.cause, worker.saves()) == ("reached", [3])


def test_failures_of_other_ranks_while_rank_0_stops_do_not_fail_it(worker):
    worker.write(
        "study.py",
        "import time\n"
        "from shoestring.testing.user_code import together\n"
        "def train(trial):\n"
        "    together(trial)\n"
        "    time.sleep(1.5 if trial.left else 0)\n",
    )
    worker.start(function="study.py:train", config={"step_s": 0.01}, until_step=10_000, **gang(2))
    worker.wait_for(Reported)
    worker.update_control(halt_by=time.time() + PATIENCE_S)
    ended = ended_and_gone(worker)
    assert (ended.cause, worker.saves()) == ("halted", [ended.step]), ended.detail


def test_a_gang_over_its_time_limit_is_killed_whole(worker):
    worker.write(
        "study.py",
        f"import time\ndef train(trial):\n    trial.report(loss=1.0)\n    time.sleep({10 * slowness()})\n",
    )
    worker.start(function="study.py:train", time_limit_s=1.0, **gang(2))
    assert ended_and_gone(worker).cause == "overran"


def test_all_ranks_start_from_the_same_checkpoint(worker, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "line").write_text("[1.5, -0.25]")
    ref = worker.store.put("j7", 2, source, segment="earlier")
    ended = worker.run(function=TOGETHER, resume_from=ref, **gang(2))
    assert (ended.cause, worker.steps()) == ("reached", [3])
    points = [(x / 4, 3 * x / 4 - 1) for x in range(12)]
    loss = sum((1.5 * x - 0.25 - y) ** 2 for x, y in points) / 12
    assert worker.lines(Reported)[0].metrics["loss"] == pytest.approx(loss)


def test_a_missing_checkpoint_loses_the_gang(worker, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "line").write_text("[0, 0]")
    ref = worker.store.put("j7", 2, source, segment="earlier")
    worker.store.drop(ref)
    ended = worker.run(function=TOGETHER, resume_from=ref, **gang(2))
    assert ended.cause == "lost"
    assert {line.ref for line in worker.lines(Unsaved)} == {ref}


PROGRAM = r"""
trap 'echo "{\"saved\": \"at-$RANK\", \"step\": 1}"; exit' TERM
mkdir "$SHOESTRING_SAVE_TO/at-$RANK"
echo "$RANK of $WORLD_SIZE" | tee "$SHOESTRING_SAVE_TO/at-$RANK/who"
echo "{\"step\": 1, \"loss\": $RANK}"
while true; do sleep 0.05; done
"""


def test_programs_form_gangs_too_and_only_rank_0_is_signalled(worker, tmp_path):
    worker.write("train.sh", PROGRAM)
    worker.start(command=("sh", "train.sh"), **gang(3))
    worker.wait_for(Reported)
    until = time.monotonic() + PATIENCE_S
    while not all(f"{rank} of 3" in worker.log() for rank in range(3)) and time.monotonic() < until:
        time.sleep(0.01)
    worker.update_control(halt_by=time.time() + PATIENCE_S)
    ended = ended_and_gone(worker)
    assert (ended.cause, ended.detail, worker.saves()) == ("halted", "", [1])
    assert [line.metrics for line in worker.lines(Reported)] == [{"loss": 0.0}]
    worker.store.get(worker.store.list()[0], tmp_path / "back")
    assert (tmp_path / "back" / "who").read_text() == "0 of 3\n"


def test_a_program_that_fails_on_another_rank_fails_the_gang(worker):
    worker.write("train.sh", 'if [ "$RANK" = 1 ]; then echo "no such GPU" >&2; exit 3; fi; sleep 6000\n')
    worker.start(command=("sh", "train.sh"), **gang(2))
    ended = ended_and_gone(worker)
    assert (ended.cause, ended.detail) == ("failed", "rank 1: no such GPU")


def test_the_part_of_a_gang_on_another_machine_reports_nothing_but_its_end(worker):
    worker.write(
        "study.py",
        "import os\n"
        "def train(trial):\n"
        "    names = ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')\n"
        "    os.write(1, (' '.join(os.environ[name] for name in names) + chr(10)).encode())  # in one piece\n"
        "    for step in trial.steps(): trial.report(loss=1.0)\n",
    )
    part = {"workers": 2, "first_rank": 1, "world_size": 3, "slots": 3, "master_addr": "10.1.2.3", "master_port": 4567}
    ended = worker.run(function="study.py:train", **part)
    assert (ended.cause, worker.steps(), worker.saves()) == ("completed", [], [])
    assert sorted(worker.log().splitlines()) == ["1 0 3 2 10.1.2.3 4567", "2 1 3 2 10.1.2.3 4567"]


def test_a_failure_in_that_part_is_reported_with_its_rank(worker):
    worker.write(
        "study.py", "def train(trial):\n    if trial.rank == 2: raise ValueError('no')\n    while True: pass\n"
    )
    ended = worker.run(function="study.py:train", workers=2, first_rank=1, world_size=3, slots=3)
    assert (ended.cause, ended.detail) == ("failed", "rank 2: ValueError: no (study.py:2)")


def test_a_gang_does_not_outlive_a_killed_supervisor(worker):
    worker.start(function=TOGETHER, config={"step_s": 0.01}, until_step=10_000, **gang(2))
    worker.wait_for(Reported)
    os.kill(worker.process.pid, signal.SIGKILL)
    worker.process.wait()
    assert worker.leaves_nothing()


def task(**more):
    return Task(
        segment="s0", job="j0", config={}, until_step=1, folder=".", store=".", heartbeat="", master_port=5, **more
    )


def test_a_lone_worker_gets_rank_0_of_1():
    assert rank_variables(task(), 0) == {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "5",
    }


def test_a_lone_worker_with_several_slots_gets_no_rank_variables():
    assert rank_variables(task(slots=2), 0) == {}


def test_ranks_count_from_0_on_each_machine():
    across = task(slots=8, workers=4, world_size=4, machines=(1, 2, 1))
    places = [rank_variables(across, rank) for rank in range(4)]
    assert [place["LOCAL_RANK"] for place in places] == ["0", "0", "1", "0"]
    assert [place["LOCAL_WORLD_SIZE"] for place in places] == ["1", "2", "2", "1"]
