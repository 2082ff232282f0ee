"""Any program as a trial: what it gets, how its output is read, how its end is reported."""

import json
import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from shoestring.errors import SpecError
from shoestring.testing.slowness import PATIENCE_S
from shoestring.worker.arguments import ProgramFiles, fill
from shoestring.worker.command import CommandRun
from shoestring.worker.outbox import Ended, Reported
from shoestring.worker.report import report_from_shell


class RecordingHost:
    """A host that records everything."""

    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        self.reports = []
        self.snapshots = []
        self.saves = {}
        self.leave_after = None

    def leaving(self):
        return self.leave_after is not None and len(self.reports) >= self.leave_after

    def save_due(self, _step):
        raise AssertionError("a program decides itself when to save")

    def reported(self, step, metrics):
        self.reports.append((step, metrics))

    def snapshot(self, step, fraction, metrics):
        self.snapshots.append((step, fraction, metrics))

    def folder(self):
        path = self.tmp_path / "saving"
        path.mkdir()
        return path

    def saved(self, step, folder, _began):
        self.saves[step] = {item.name: item.read_text() for item in folder.rglob("*") if item.is_file()}


@pytest.fixture
def run(tmp_path):
    """Run a Python script as if it were any program."""

    def run(
        script,
        *arguments,
        until_step=3,
        metric="loss",
        leave_after=None,
        checkpoint=None,
        fraction=1.0,
        fractions=(),
        **config,
    ):
        (tmp_path / "program.py").write_text(textwrap.dedent(script))
        run.host = host = RecordingHost(tmp_path)
        host.leave_after = leave_after
        run.log = tmp_path / "log.txt"
        files = ProgramFiles(tmp_path / "files")
        with run.log.open("ab") as log:
            command = CommandRun(
                host=host,
                files=files,
                config=config,
                until_step=until_step,
                first_step=0,
                metric=metric,
                fraction=fraction,
                fractions=fractions,
                log=log,
                own_group=True,
            )
            environment = files.environment(
                config, checkpoint=checkpoint, until_step=until_step, fraction=fraction, fractions=fractions
            )
            return command.run((sys.executable, "program.py", *arguments), tmp_path, environment)

    return run


REPORTING = """
    import json
    for step in (1, 2, 3):
        print(json.dumps({"step": step, "loss": 1 / step}), flush=True)
"""


def test_json_lines_are_reports_and_other_output_is_ignored(run):
    outcome = run(
        """
        print("epoch 1, all well")
        print('{"step": 1, "loss": 0.5, "phase": "warm up"}')
        print('{"level": "info", "message": "a log line of some other library"}')
        print('{broken json')
        print('[1, 2]')
        print('{"step": 2, "loss": "NaN"}')
        print('{"loss": 0.25}')
        """
    )
    assert outcome == ("reached", 3, "")
    assert [step for step, _ in run.host.reports] == [1, 2, 3]
    assert run.host.reports[0][1] == {"loss": 0.5}
    assert run.host.reports[1][1]["loss"] != run.host.reports[1][1]["loss"]
    assert "all well" in run.log.read_text()


def test_a_malformed_report_is_a_warning_not_a_failure(run):
    outcome = run("""print('{"step": "two", "loss": 1}\\n{"step": 3, "loss": [1]}\\n{"step": 3, "loss": 0.1}')""")
    assert outcome.cause == "reached"
    assert outcome.detail == "2 reports not understood, the first: step='two' is not a whole number from 0 up"


def test_a_report_line_that_is_too_long_is_said_to_be_and_those_after_it_are_read(run):
    outcome = run(
        """
        print('{"step": 1, "loss": 0.5, "text": "' + "x" * 5_000_000 + '"}')
        print('{"step": 3, "loss": 0.25}')
        """
    )
    assert outcome.cause == "reached"
    assert run.host.reports == [(3, {"loss": 0.25})]
    assert outcome.detail == (
        "1 report not understood, the first: a line of more than 2 MB is too long for a report: "
        """{"step": 1, "loss": 0.5, "text": "xxxxxx..."""
    )


def test_a_report_file_whose_line_does_not_end_is_read_on(run):
    outcome = run(
        """
        import os, time
        with open(os.environ["SHOESTRING_REPORTS"], "a") as reports:
            reports.write("{" + "x" * 3_000_000)
            reports.flush()
            time.sleep(0.3)
            print('\\n{"step": 3, "loss": 0.25}', file=reports)
        """
    )
    assert (outcome.cause, run.host.reports) == ("reached", [(3, {"loss": 0.25})])


def test_parameters_are_passed_as_arguments_environment_and_file(run):
    outcome = run(
        """
        import json, os, sys
        assert sys.argv[1:] == ["--lr=0.1", "two words", "true", "{braces}"], sys.argv
        assert os.environ["SHOESTRING_PARAM_LR"] == "0.1"
        assert json.load(open(os.environ["SHOESTRING_PARAMS"])) == {"lr": 0.1, "name": "two words", "nesterov": True}
        assert os.environ["SHOESTRING_CHECKPOINT"] == ""
        assert os.environ["SHOESTRING_UNTIL_STEP"] == "3"
        print('{"step": 3, "loss": 1}')
        """,
        "--lr={lr}",
        "{name}",
        "{nesterov}",
        "{{braces}}",
        lr=0.1,
        name="two words",
        nesterov=True,
    )
    assert outcome == ("reached", 3, "")


def test_placeholders_of_files_and_of_inactive_parameters_are_filled():
    files = ProgramFiles(Path("files"))
    words = ["{params}", "{checkpoint}", "--to={save_to}", "{fraction}", "--momentum={momentum}", "{lr}", "{{lr}}"]
    environment = files.environment({}, checkpoint=Path("saved"), until_step=1, fraction=0.25)
    assert fill(words, {"lr": 0.1}, files.provided(environment)) == [
        "files/params.json",
        "saved",
        "--to=files/save_to",
        "0.25",
        "--momentum=",
        "0.1",
        "{lr}",
    ]


def test_a_parameter_called_fraction_overrides_the_data_fraction():
    files = ProgramFiles(Path("files"))
    environment = files.environment({"fraction": 0.5}, checkpoint=None, until_step=1, fraction=0.25)
    assert fill(["{fraction}"], {"fraction": 0.5}, files.provided(environment)) == ["0.5"]


def test_a_program_gets_its_data_fraction_and_reports_snapshots(run):
    outcome = run(
        """
        import json, os
        assert os.environ["SHOESTRING_FRACTION"] == "0.5"
        for fraction in map(float, os.environ["SHOESTRING_FRACTIONS"].split()):
            print(json.dumps({"loss": 1 - fraction, "fraction": round(fraction, 4)}))
        print('{"loss": 0.6, "fraction": 0.3}')
        print('{"step": 3, "loss": 0.5, "fraction": 0.5}')
        """,
        fraction=0.5,
        fractions=(1 / 16, 0.25),
    )
    assert outcome == ("reached", 3, "")
    assert run.host.snapshots == [(1, 1 / 16, {"loss": 15 / 16}), (1, 0.25, {"loss": 0.75})]
    assert run.host.reports == [(3, {"loss": 0.5})]


def test_an_invalid_data_fraction_is_a_warning(run):
    outcome = run("""print('{"loss": 1, "fraction": 2}\\n{"step": 3, "loss": 0.1}')""")
    assert outcome == ("reached", 3, "1 report not understood, the first: fraction=2.0 is not a data fraction")


def test_saved_files_and_folders_become_checkpoints(run):
    outcome = run(
        """
        import os, pathlib
        home = pathlib.Path(os.environ["SHOESTRING_SAVE_TO"])
        (home / "net.bin").write_text("one")
        print('{"step": 1, "loss": 1}\\n{"saved": "net.bin", "step": 1}', flush=True)
        (home / "second").mkdir()
        (home / "second" / "net.bin").write_text("two")
        print('{"step": 2, "loss": 1}\\n{"saved": "second", "step": 2}')
        print('{"saved": "../outside", "step": 2}')
        """
    )
    assert run.host.saves == {1: {"net.bin": "one"}, 2: {"net.bin": "two"}}
    assert outcome.cause == "completed"
    assert "'../outside' was announced as saved, but is not in SHOESTRING_SAVE_TO" in outcome.detail


def test_a_checkpoint_is_found_in_the_environment(run, tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "step").write_text("2")
    run(
        """
        import os
        print('{"step": 3, "loss": %s}' % open(os.environ["SHOESTRING_CHECKPOINT"] + "/step").read())
        """,
        checkpoint=tmp_path / "checkpoint",
    )
    assert run.host.reports == [(3, {"loss": 2.0})]


def test_a_program_gets_sigterm_when_it_has_to_stop_and_may_save(run):
    outcome = run(
        """
        import os, pathlib, signal, sys, time
        def leave(*_):
            (pathlib.Path(os.environ["SHOESTRING_SAVE_TO"]) / "net").write_text("late")
            print('{"saved": "net", "step": 1}', flush=True)
            sys.exit(0)
        signal.signal(signal.SIGTERM, leave)
        print('{"step": 1, "loss": 1}', flush=True)
        time.sleep(6000)
        """,
        leave_after=1,
    )
    assert outcome == ("halted", 1, "")
    assert run.host.saves == {1: {"net": "late"}}


def test_a_program_without_a_signal_handler_is_halted_too(run):
    outcome = run("""import time; print('{"step": 1, "loss": 1}', flush=True); time.sleep(6000)""", leave_after=1)
    assert outcome == ("halted", 1, "")


def test_a_program_that_trains_past_its_target_step_is_stopped(run):
    outcome = run(
        """
        import time
        for step in range(1, 1000):
            print('{"step": %d, "loss": 1}' % step, flush=True)
            time.sleep(0.02)
        """
    )
    assert outcome == ("reached", 3, "")
    assert [step for step, _ in run.host.reports] == [1, 2, 3]


def test_a_failure_is_reported_with_the_last_line_of_the_error(run):
    outcome = run("""print('{"step": 1, "loss": 1}'); raise ValueError("no such file: data.csv")""")
    assert outcome == ("failed", 1, "ValueError: no such file: data.csv")


def test_a_failure_without_output_is_reported_with_its_exit_code(run):
    assert run("import os; os._exit(7)").detail == "exit code 7"
    assert run("import os; os.kill(os.getpid(), 9)").detail == "killed by SIGKILL (out of memory?)"


def test_a_program_killed_for_its_memory_is_not_described_by_what_it_said_before(run):
    program = "import os, sys; print('loading weights', file=sys.stderr, flush=True)"
    detail = run(f"{program}; os.kill(os.getpid(), 9)").detail
    assert detail == "killed by SIGKILL (out of memory?); its last line of errors: loading weights"
    by_a_shell = run(f"{program}; os._exit(137)").detail
    assert by_a_shell.startswith("exit code 137: what it ran was killed by SIGKILL (out of memory?)")


def test_a_program_that_never_reports_the_metric_fails_a_study_but_not_a_bag(run):
    assert run("print('done')").detail.startswith("never reported 'loss'; reported: nothing (print a line of JSON")
    assert run("print('done')", metric=None) == ("completed", 0, "")


@pytest.mark.parametrize(
    "line", ["loss: 0.3", "epoch 1 - loss=3e-1 - acc: 0.9", "{'loss': 0.3}", "LOSS 0.3", "loss: nan"]
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_metric_printed_as_text_is_shown_with_the_line_of_json_that_reports_it(run, line, stream):
    detail = run(f"import sys; print('loading'); print({line!r}, file=sys.{stream})").detail
    assert f"it printed {line!r}, which is no report" in detail
    assert '{"step": 1, "loss": 0.3}' in detail


def test_lines_without_the_metric_and_a_number_are_no_hint(run):
    for line in ("val_loss: 0.3", "loss", "the loss is small", "glossy 3", "lossless 3"):
        assert "it printed" not in run(f"print({line!r})").detail


def test_processes_a_program_leaves_running_do_not_block_its_end(run):
    began = time.monotonic()
    outcome = run(
        """
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(6000)"])
        print('{"step": 3, "loss": 1}')
        """
    )
    assert outcome.cause == "reached"
    assert time.monotonic() - began < PATIENCE_S


def test_a_very_long_line_is_ignored(run):
    outcome = run("""print("x" * 3_000_000); print('{"step": 3, "loss": 1}')""")
    assert outcome == ("reached", 3, "")


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        (("./nowhere",), "command not found: './nowhere'"),
        (("./program.py",), "may not run './program.py'"),
    ],
)
def test_a_command_that_cannot_run_says_why(tmp_path, command, detail):
    (tmp_path / "program.py").touch()
    host, files = RecordingHost(tmp_path), ProgramFiles(tmp_path / "files")
    with (tmp_path / "log").open("wb") as log:
        run = CommandRun(
            host=host, files=files, config={}, until_step=1, first_step=0, metric=None, log=log, own_group=True
        )
        outcome = run.run(command, tmp_path, {})
    assert outcome.cause == "failed"
    assert outcome.detail.startswith(detail)


def test_reports_can_come_from_the_shell(run, monkeypatch):
    source = Path(__file__).parent.parent.parent / "src"
    outcome = run(
        f"""
        import sys; sys.path.insert(0, {str(source)!r})
        from shoestring.worker.report import report_from_shell
        report_from_shell(3, {{"loss": 0.125}})
        """
    )
    assert outcome.cause == "reached"
    assert run.host.reports == [(3, {"loss": 0.125})]
    monkeypatch.delenv("SHOESTRING_REPORTS", raising=False)
    with pytest.raises(SpecError, match="nothing here is listening"):
        report_from_shell(1, {"loss": 1.0})


def test_a_halt_reaches_a_shell_script_and_all_it_started(worker):
    worker.write("train.sh", 'echo \'{"step": 1, "loss": 1}\'\nsleep 6000\n')
    worker.start(command=("sh", "train.sh"))
    worker.wait_for(Reported)
    worker.update_control(halt_by=time.time() + PATIENCE_S)
    ended = worker.wait_for(Ended)
    assert (ended.cause, ended.step) == ("halted", 1)
    worker.process.wait(PATIENCE_S)


def test_a_command_in_a_worker_resumes_from_its_checkpoint(worker, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "step").write_text("2")
    ref = worker.store.put("j7", 2, source, segment="earlier")
    worker.write(
        "train.sh", 'S=$(cat "$SHOESTRING_CHECKPOINT/step"); echo "{\\"step\\": $((S + 1)), \\"loss\\": $1}"\n'
    )
    ended = worker.run(command=("sh", "train.sh", "{lr}"), config={"lr": 0.5}, resume_from=ref)
    assert (ended.cause, ended.step, worker.steps()) == ("reached", 3, [3])
    assert json.loads((worker.folder / "params.json").read_text()) == {"lr": 0.5}
    assert os.path.exists(worker.folder / "log.txt")


# -- jobs of a bag -----------------------------------------------------------------------------------------------------
def test_a_job_of_a_bag_is_done_when_it_exits_whatever_it_reports(run):
    outcome = run(REPORTING + "    open('done', 'w')", until_step=None, metric=None)
    assert outcome == ("completed", 3, "")
    assert run.host.reports == [(1, {"loss": 1.0}), (2, {"loss": 0.5}), (3, {"loss": 1 / 3})]
    assert (run.log.parent / "done").exists()


def test_only_exit_0_finishes_a_job_of_a_bag(run):
    outcome = run(REPORTING + "    import sys; sys.exit('out of grid points')", until_step=None, metric=None)
    assert outcome == ("failed", 3, "out of grid points")


def test_in_a_bag_an_object_of_numbers_is_a_report_and_one_with_texts_is_output(run):
    outcome = run(
        """
        print('{"energy": -3.2}')
        print('{"energy": -3.4, "pressure": 1}')
        print('{"ts": 1700000000.5, "level": "info"}')
        print('{"converged": true}')
        print('{}')
        print('{"step": 7, "energy": -3.5, "phase": "nvt"}')
        print('{"energy": -3.6}')
        """,
        until_step=None,
        metric=None,
    )
    assert outcome == ("completed", 8, "")
    assert run.host.reports == [
        (1, {"energy": -3.2}),
        (2, {"energy": -3.4, "pressure": 1.0}),
        (7, {"energy": -3.5}),
        (8, {"energy": -3.6}),
    ]
    assert (run.log.parent / "files" / "last_line.txt").read_text() == "{}"


def test_a_job_of_a_bag_that_was_told_to_leave_is_not_finished_even_if_it_exits_with_0(run):
    leaves = """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        print('{"step": 1, "energy": 0}', flush=True)
        time.sleep(600)
    """
    assert run(leaves, until_step=None, metric=None, leave_after=1) == ("halted", 1, "")


def test_a_program_learns_its_target_step_and_in_an_open_ended_bag_that_there_is_none(run):
    show = """import os; print('{"step": 3, "loss": 1}'); print(repr(os.environ["SHOESTRING_UNTIL_STEP"]))"""
    run(show)
    run(show, until_step=None)
    assert [line for line in run.log.read_text().splitlines() if "step" not in line] == ["'3'", "''"]
