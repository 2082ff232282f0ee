"""A training function in a worker process: loaded, run, reported, resumed."""

import os
import signal
import time
from pathlib import Path

import shoestring.testing.user_code as user_code
from shoestring.testing.slowness import PATIENCE_S
from shoestring.worker.hosts import KEEP
from shoestring.worker.outbox import Ended, Reported, Saved, Unsaved

TRAIN = f"{user_code.__file__}:train"


def test_a_function_in_a_file_beside_its_imports_runs_to_its_target_step(worker):
    worker.write("helper.py", "def loss(step):\n    return 1 / step\n")
    worker.write(
        "study.py",
        "import helper\n"
        "def train(trial):\n"
        "    for step in trial.steps():\n"
        "        print('step', step, 'of trial', trial.number)\n"
        "        trial.report(loss=helper.loss(step) * trial['scale'])\n",
    )
    ended = worker.run(function="study.py:train", config={"scale": 2.0})
    assert (ended.cause, ended.step, ended.detail) == ("reached", 3, "")
    assert [line.metrics["loss"] for line in worker.lines(Reported)] == [2.0, 1.0, 2 / 3]
    assert "step 3 of trial 7" in worker.log()


def test_a_module_can_be_named_instead_of_a_file(worker):
    package = worker.user_folder / "mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "study.py").write_text("def train(trial):\n    trial.report(loss=0.5)\n")
    assert worker.run(function="mine.study:train", until_step=1).cause == "reached"


def test_a_file_that_starts_its_own_study_is_imported_without_starting_it_again(worker):
    worker.write(
        "study.py",
        "from shoestring.worker.loading import stop_if_importing\n"
        "def train(trial):\n"
        "    trial.report(loss=0.5)\n"
        "stop_if_importing()  # what tune() does first\n"
        "raise SystemExit('a second study was started')\n",
    )
    ended = worker.run(function="study.py:train", until_step=1)
    assert (ended.cause, ended.detail) == ("reached", "")


def test_a_missing_file_is_reported(worker):
    ended = worker.run(function="gone.py:train")
    assert ended.cause == "failed"
    assert ended.detail.startswith(f"there is no file {worker.user_folder / 'gone.py'}")


def test_a_broken_import_is_reported_with_its_line(worker):
    worker.write("study.py", "import this_does_not_exist\n")
    ended = worker.run(function="study.py:train")
    assert ended.detail == "ModuleNotFoundError: No module named 'this_does_not_exist' (study.py:1)"


def test_a_metric_that_is_not_a_number_fails_the_trial_with_a_sentence(worker):
    worker.write("study.py", "def train(trial):\n    for _ in trial.steps():\n        trial.report(loss='low')\n")
    ended = worker.run(function="study.py:train")
    assert ended.cause == "failed"
    assert ended.detail == "metric 'loss' is 'low' (str), not a number (report numbers only, e.g. float(value))"


def test_nan_and_infinity_are_reported(worker):
    worker.write(
        "study.py",
        "def train(trial):\n    for _ in trial.steps():\n        trial.report(loss=float('nan'), worst=float('inf'))\n",
    )
    worker.run(function="study.py:train", until_step=1)
    metrics = worker.lines(Reported)[0].numbers()
    assert metrics["loss"] != metrics["loss"]
    assert metrics["worst"] == float("inf")


def test_code_without_steps_is_completed_when_it_returns(worker):
    ended = worker.run(function=f"{user_code.__file__}:plain", metric=None)
    assert (ended.cause, ended.step) == ("completed", 0)


def test_code_that_stops_early_by_itself_is_completed(worker):
    worker.write(
        "study.py",
        "def train(trial):\n"
        "    for step in trial.steps():\n"
        "        trial.report(loss=1.0)\n"
        "        if step == 2: break\n",
    )
    ended = worker.run(function="study.py:train", until_step=10)
    assert (ended.cause, ended.step) == ("completed", 2)


def test_a_call_of_exit_with_an_error_is_a_failure(worker):
    worker.write("study.py", "import sys\ndef train(trial):\n    trial.report(loss=1.0)\n    sys.exit('no data')\n")
    ended = worker.run(function="study.py:train", until_step=1)
    assert (ended.cause, ended.detail) == ("failed", "called exit('no data')")


def test_user_code_killed_with_sigkill_is_reported_as_out_of_memory(worker):
    worker.write("study.py", "import os\ndef train(trial):\n    trial.report(loss=1.0)\n    os.kill(os.getpid(), 9)\n")
    ended = worker.run(function="study.py:train")
    assert (ended.cause, ended.step) == ("failed", 1)
    assert ended.detail == "user code was killed by SIGKILL (out of memory?)"


def test_an_error_inside_a_library_is_located_in_the_users_own_code(worker):
    worker.write(
        "study.py",
        "import json\n\n\ndef train(trial):\n    json.loads('{')\n",
    )
    detail = worker.run(function="study.py:train").detail
    assert detail.startswith("json.decoder.JSONDecodeError: Expecting property name")
    assert detail.endswith("(study.py:5)")


def test_of_a_long_message_the_first_line_is_reported(worker):
    worker.write(
        "study.py",
        "def train(trial):\n    error = ValueError('\\nshapes differ\\nsee the manual')\n"
        "    error.add_note('a note')\n    raise error\n",
    )
    assert worker.run(function="study.py:train").detail == "ValueError: shapes differ (study.py:4)"


def test_a_syntax_error_is_reported_with_its_line(worker):
    worker.write("study.py", "def train(trial):\n    loss = = 1\n")
    assert worker.run(function="study.py:train").detail == "SyntaxError: invalid syntax (study.py:2)"


def test_a_function_that_never_reports_the_metric_gets_the_call_that_does(worker):
    worker.write("study.py", "def train(trial):\n    print('loss: 0.3')\n")
    detail = worker.run(function="study.py:train").detail
    assert detail == "never reported 'loss'; reported: nothing (call trial.report(loss=...) after each step)"


def test_a_process_that_exits_is_reported_with_its_exit_code(worker):
    worker.write("study.py", "import os\ndef train(trial):\n    os._exit(3)\n")
    assert "exit code 3" in worker.run(function="study.py:train").detail


def test_the_trial_saves_and_stops_on_sigterm(worker):
    worker.start(function=TRAIN, config={"step_s": 0.01}, until_step=10_000)
    worker.wait_for(Reported)
    os.kill(worker.process.pid, signal.SIGTERM)
    ended = worker.wait_for(Ended)
    assert ended.cause == "halted"
    assert worker.saves() == [ended.step]


def test_a_trial_that_never_saves_stops_too(worker):
    worker.start(function=f"{user_code.__file__}:forgetful", config={"step_s": 0.01}, until_step=10_000)
    worker.wait_for(Reported)
    worker.update_control(halt_by=time.time() + PATIENCE_S)
    assert worker.wait_for(Ended).cause == "halted"
    assert worker.saves() == []


def test_a_save_that_fails_leaves_no_checkpoint(worker):
    worker.write(
        "study.py",
        "def train(trial):\n"
        "    for _ in trial.steps():\n"
        "        trial.report(loss=1.0)\n"
        "        with trial.save() as folder:\n"
        "            if folder:\n"
        "                (folder / 'half').write_text('half')\n"
        "                raise RuntimeError('cable pulled')\n",
    )
    ended = worker.run(function="study.py:train")
    assert (ended.cause, ended.detail) == ("failed", "RuntimeError: cable pulled (study.py:7)")
    assert worker.saves() == []
    assert worker.store.list() == []
    assert not (worker.folder / "saving").exists()


def test_only_the_newest_checkpoints_and_the_one_it_resumed_from_are_kept(worker, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "trained").write_text("2")
    first = worker.store.put("j7", 2, source, segment="earlier")
    worker.control = type(worker.control)(end_by=time.time() + PATIENCE_S, save_every_s=0.0)
    worker.run(function=TRAIN, until_step=9, resume_from=first)
    assert worker.saves() == [3, 4, 5, 6, 7, 8, 9]
    assert [ref.step for ref in worker.store.list()] == [2, 7, 8, 9]
    assert KEEP == 3


def test_a_missing_checkpoint_is_reported_and_the_segment_is_lost(worker, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "trained").write_text("2")
    ref = worker.store.put("j7", 2, source, segment="earlier")
    worker.store.drop(ref)
    ended = worker.run(function=TRAIN, resume_from=ref)
    assert ended.cause == "lost"
    assert worker.lines(Unsaved)[0].ref == ref


def test_the_log_does_not_fill_the_disk(worker):
    worker.write(
        "study.py",
        "import time\n"
        "def train(trial):\n"
        "    for _ in trial.steps():\n"
        "        for _ in range(6): print('x' * 1_000_000); time.sleep(0.15)\n"
        "        trial.report(loss=1.0)\n",
    )
    worker.run(function="study.py:train", until_step=1)
    sizes = [path.stat().st_size for path in Path(worker.folder).glob("log*.txt")]
    assert len(sizes) == 2
    assert sum(sizes) < 6_000_000


def test_a_segment_runs_once_however_often_it_is_started(worker):
    worker.start(function=TRAIN, config={"step_s": 0.02}, until_step=5)
    others = [worker.spawn() for _ in range(3)]
    worker.process.wait(20)
    late = worker.spawn()
    for other in [*others, late]:
        other.wait(20)
    assert worker.steps() == [1, 2, 3, 4, 5]
    assert len(worker.lines(Saved)) == len(worker.lines(Ended)) == 1


def test_a_file_that_reads_its_arguments_gets_those_of_the_study(worker):
    worker.write(
        "study.py", "import sys\nSCALE = float(sys.argv[1])\ndef train(trial):\n    trial.report(loss=SCALE)\n"
    )
    assert worker.run(function="study.py:train", until_step=1, argv=("study.py", "0.5")).cause == "reached"
    assert worker.lines(Reported)[0].metrics == {"loss": 0.5}
