"""A training function in a worker process: found, run, told about, resumed."""

import os
import signal
import time
from pathlib import Path

import shoestring.testing.user_code as user_code
from shoestring.worker.hosts import KEEP
from shoestring.worker.outbox import Ended, Reported, Saved, Unsaved

TRAIN = f"{user_code.__file__}:train"


def test_a_function_in_a_file_beside_what_it_imports_runs_to_its_goal(hand):
    hand.write("helper.py", "def loss(step):\n    return 1 / step\n")
    hand.write(
        "study.py",
        "import helper\n"
        "def train(trial):\n"
        "    for step in trial.steps():\n"
        "        print('step', step, 'of trial', trial.number)\n"
        "        trial.report(loss=helper.loss(step) * trial['scale'])\n",
    )
    ended = hand.run(function="study.py:train", config={"scale": 2.0})
    assert (ended.cause, ended.step, ended.detail) == ("reached", 3, "")
    assert [line.metrics["loss"] for line in hand.lines(Reported)] == [2.0, 1.0, 2 / 3]
    assert "step 3 of trial 7" in hand.log()


def test_a_module_can_be_named_instead_of_a_file(hand):
    package = hand.user_folder / "mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "study.py").write_text("def train(trial):\n    trial.report(loss=0.5)\n")
    assert hand.run(function="mine.study:train", until_step=1).cause == "reached"


def test_a_file_that_starts_its_own_study_is_imported_without_starting_it_again(hand):
    hand.write(
        "study.py",
        "from shoestring.worker.loading import stop_if_importing\n"
        "def train(trial):\n"
        "    trial.report(loss=0.5)\n"
        "stop_if_importing()  # what tune() does first\n"
        "raise SystemExit('a second study was started')\n",
    )
    ended = hand.run(function="study.py:train", until_step=1)
    assert (ended.cause, ended.detail) == ("reached", "")


def test_code_that_cannot_be_found_says_so(hand):
    ended = hand.run(function="gone.py:train")
    assert ended.cause == "failed"
    assert ended.detail.startswith(f"there is no file {hand.user_folder / 'gone.py'}")


def test_a_broken_import_is_told_with_its_line(hand):
    hand.write("study.py", "import this_does_not_exist\n")
    ended = hand.run(function="study.py:train")
    assert ended.detail == "ModuleNotFoundError: No module named 'this_does_not_exist' (study.py:1)"


def test_a_metric_that_is_not_a_number_fails_the_trial_with_a_sentence(hand):
    hand.write("study.py", "def train(trial):\n    for _ in trial.steps():\n        trial.report(loss='low')\n")
    ended = hand.run(function="study.py:train")
    assert ended.cause == "failed"
    assert ended.detail == "metric 'loss' is 'low' (str), not a number (report numbers only, e.g. float(value))"


def test_nan_and_infinity_arrive_as_what_they_are(hand):
    hand.write(
        "study.py",
        "def train(trial):\n    for _ in trial.steps():\n        trial.report(loss=float('nan'), worst=float('inf'))\n",
    )
    hand.run(function="study.py:train", until_step=1)
    metrics = hand.lines(Reported)[0].numbers()
    assert metrics["loss"] != metrics["loss"]
    assert metrics["worst"] == float("inf")


def test_code_that_knows_nothing_of_steps_is_completed_when_it_returns(hand):
    ended = hand.run(function=f"{user_code.__file__}:plain", metric=None)
    assert (ended.cause, ended.step) == ("completed", 0)


def test_leaving_early_on_its_own_is_completed(hand):
    hand.write(
        "study.py",
        "def train(trial):\n"
        "    for step in trial.steps():\n"
        "        trial.report(loss=1.0)\n"
        "        if step == 2: break\n",
    )
    ended = hand.run(function="study.py:train", until_step=10)
    assert (ended.cause, ended.step) == ("completed", 2)


def test_a_call_of_exit_is_a_failure_unless_it_says_all_is_well(hand):
    hand.write("study.py", "import sys\ndef train(trial):\n    trial.report(loss=1.0)\n    sys.exit('no data')\n")
    ended = hand.run(function="study.py:train", until_step=1)
    assert (ended.cause, ended.detail) == ("failed", "called exit('no data')")


def test_a_worker_killed_for_its_memory_is_told_as_such(hand):
    hand.write("study.py", "import os\ndef train(trial):\n    trial.report(loss=1.0)\n    os.kill(os.getpid(), 9)\n")
    ended = hand.run(function="study.py:train")
    assert (ended.cause, ended.step) == ("failed", 1)
    assert ended.detail == "user code was killed by SIGKILL (out of memory?)"


def test_a_process_that_vanishes_is_told_with_its_exit_code(hand):
    hand.write("study.py", "import os\ndef train(trial):\n    os._exit(3)\n")
    assert "exit code 3" in hand.run(function="study.py:train").detail


def test_sigterm_is_a_notice_and_the_trial_saves_and_leaves(hand):
    hand.start(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    hand.wait_for(Reported)
    os.kill(hand.process.pid, signal.SIGTERM)
    ended = hand.wait_for(Ended)
    assert ended.cause == "halted"
    assert hand.saves() == [ended.step]


def test_a_trial_that_never_saves_leaves_too(hand):
    hand.start(function=f"{user_code.__file__}:forgetful", config={"step_s": 0.01}, until_step=10_000)
    hand.wait_for(Reported)
    hand.tell(halt_by=time.time() + 30)
    assert hand.wait_for(Ended).cause == "halted"
    assert hand.saves() == []


def test_a_save_that_fails_in_the_middle_leaves_no_checkpoint(hand):
    hand.write(
        "study.py",
        "def train(trial):\n"
        "    for _ in trial.steps():\n"
        "        trial.report(loss=1.0)\n"
        "        with trial.save() as folder:\n"
        "            if folder:\n"
        "                (folder / 'half').write_text('half')\n"
        "                raise RuntimeError('cable pulled')\n",
    )
    ended = hand.run(function="study.py:train")
    assert (ended.cause, ended.detail) == ("failed", "RuntimeError: cable pulled (study.py:7)")
    assert hand.saves() == []
    assert hand.store.list() == []
    assert not (hand.folder / "saving").exists()


def test_only_the_newest_few_checkpoints_are_kept_and_never_the_one_it_came_from_dropped(hand, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "trained").write_text("2")
    first = hand.store.put("j7", 2, source, segment="earlier")
    hand.control = type(hand.control)(end_by=time.time() + 60, save_every_s=0.0)
    hand.run(function=TRAIN, until_step=9, resume_from=first)
    assert hand.saves() == [3, 4, 5, 6, 7, 8, 9]
    assert [ref.step for ref in hand.store.list()] == [2, 7, 8, 9]
    assert KEEP == 3


def test_a_checkpoint_that_is_gone_is_told_and_the_segment_is_lost(hand, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "trained").write_text("2")
    ref = hand.store.put("j7", 2, source, segment="earlier")
    hand.store.drop(ref)
    ended = hand.run(function=TRAIN, resume_from=ref)
    assert ended.cause == "lost"
    assert hand.lines(Unsaved)[0].ref == ref


def test_the_log_does_not_fill_the_disk(hand):
    hand.write(
        "study.py",
        "import time\n"
        "def train(trial):\n"
        "    for _ in trial.steps():\n"
        "        for _ in range(6): print('x' * 1_000_000); time.sleep(0.15)\n"
        "        trial.report(loss=1.0)\n",
    )
    hand.run(function="study.py:train", until_step=1)
    sizes = [path.stat().st_size for path in Path(hand.folder).glob("log*.txt")]
    assert len(sizes) == 2
    assert sum(sizes) < 6_000_000


def test_a_segment_runs_once_however_often_it_is_started(hand):
    hand.start(function=TRAIN, config={"step_s": 0.02}, until_step=5)
    others = [hand.spawn() for _ in range(3)]
    hand.process.wait(20)
    late = hand.spawn()
    for other in [*others, late]:
        other.wait(20)
    assert hand.steps() == [1, 2, 3, 4, 5]
    assert len(hand.lines(Saved)) == len(hand.lines(Ended)) == 1


def test_a_file_that_reads_its_arguments_finds_those_the_study_was_started_with(hand):
    hand.write("study.py", "import sys\nSCALE = float(sys.argv[1])\ndef train(trial):\n    trial.report(loss=SCALE)\n")
    assert hand.run(function="study.py:train", until_step=1, argv=("study.py", "0.5")).cause == "reached"
    assert hand.lines(Reported)[0].metrics == {"loss": 0.5}
