"""Nothing that a segment starts outlives it, whichever of its processes is killed, and however it was started."""

import contextlib
import os
import signal
import time

import pytest

from shoestring.host.process import WorkerProcess
from shoestring.testing.slowness import PATIENCE_S
from shoestring.worker.cgroup import make_cgroup, remove_cgroup
from shoestring.worker.process_identity import birth, family

PROGRAM = """
note() { sh -c 'echo $PPID' > $1.new; mv $1.new $1; }
cd pids
note program
(note child; exec sleep 600) &
setsid sh -c 'echo $$ > daemon.new; mv daemon.new daemon; exec sleep 600' &
env -i setsid sh -c 'echo $$ > bare.new; mv bare.new bare; exec sleep 600' &
env -i setsid sh -c 'echo $$ > hidden.new; mv hidden.new hidden; exec sleep 600 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-' &
until [ -e child ] && [ -e daemon ] && [ -e bare ] && [ -e hidden ]; do sleep 0.01; done
$1
"""
"""A program with a child, and daemons: one like any other, one without its environment, one without its files too."""
NAMES = ("program", "child", "daemon", "bare", "hidden")


@pytest.fixture
def started(worker):
    """Start the program in a worker; the processes of all that takes part."""
    pids = worker.user_folder / "pids"
    pids.mkdir()
    worker.write("program.sh", PROGRAM)

    def start(then="wait"):
        worker.start(command=("sh", "program.sh", then), metric=None, until_step=1)
        until = time.monotonic() + PATIENCE_S
        while not all((pids / name).exists() for name in NAMES):
            assert time.monotonic() < until, worker.log()
            time.sleep(0.005)
        found = {name: int((pids / name).read_text()) for name in NAMES}
        found["supervisor"] = worker.process.pid
        found["player"] = family(found["supervisor"])[1]
        return found

    yield start
    WorkerProcess(worker.folder).kill()
    for name in NAMES:
        if (pids / name).exists() and birth(pid := int((pids / name).read_text())):
            os.kill(pid, signal.SIGKILL)


def gone(*pids):
    until = time.monotonic() + PATIENCE_S
    while any(birth(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def test_daemons_do_not_outlive_a_program_that_has_ended(worker, started):
    found = started(then="exit 0")
    assert worker.wait_ended().cause == "completed"
    assert not any(birth(found[name]) for name in NAMES), "before its end is reported, all of it is dead"


@pytest.mark.parametrize(
    "victims", [("player",), ("program",), ("supervisor",), ("player", "program"), ("supervisor", "program")]
)
def test_nothing_outlives_a_segment_whose_processes_are_killed(started, victims):
    found = started()
    for name in victims:
        with contextlib.suppress(ProcessLookupError):  # the kernel may have killed it with its parent
            os.kill(found[name], signal.SIGKILL)
    assert gone(*found.values())


def test_nothing_outlives_a_supervisor_and_a_player_that_are_killed_together(worker, started):
    """The rest is killed when a controller finds out, before it starts the trial again."""
    found = started()
    for pid in (found["supervisor"], found["player"]):
        os.kill(pid, signal.SIGKILL)
    assert gone(found["program"]), "the kernel kills it with its parent"
    WorkerProcess(worker.folder).kill()
    assert gone(found["child"], found["daemon"])
    assert gone(found["bare"]), "it holds the lock of its segment"


def test_not_even_a_process_that_hides_outlives_its_segment_where_cgroups_may_be_used(worker, started):
    """No environment, no open files, no parent of ours, a session of its own."""
    if (cgroup := make_cgroup()) is None:
        pytest.skip("this user may make no cgroup here")
    remove_cgroup(cgroup)
    found = started()
    for pid in (found["supervisor"], found["player"]):
        os.kill(pid, signal.SIGKILL)
    assert birth(found["hidden"])
    WorkerProcess(worker.folder).kill()
    assert gone(found["hidden"])


def test_the_empty_cgroup_of_a_killed_supervisor_is_removed_by_the_next(started):
    if (cgroup := make_cgroup()) is None:
        pytest.skip("this user may make no cgroup here")
    ended = os.fork()
    if not ended:
        os._exit(0)
    os.waitpid(ended, 0)
    abandoned = cgroup.with_name(f"shoestring-{ended}-0")
    abandoned.mkdir()
    started()
    assert not abandoned.exists()
    assert cgroup.exists(), "its supervisor is alive"
    remove_cgroup(cgroup)
