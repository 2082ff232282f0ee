"""The Trial object of a training function."""

import pytest

from shoestring.trial import ReportError, Trial, as_number, as_step


class Host:
    """Leaves and saves when the test says so."""

    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        self.calls = []
        self.leave = False
        self.due = False

    def leaving(self):
        return self.leave

    def save_due(self, _step):
        return self.due or self.leave

    def reported(self, step, metrics):
        self.calls.append((step, metrics))

    def folder(self):
        path = self.tmp_path / "saving"
        path.mkdir()
        return path

    def saved(self, step, folder, _began):
        self.calls.append((step, sorted(item.name for item in folder.iterdir())))


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


@pytest.fixture
def make(host):
    def make(until_step=3, **more):
        return Trial(job="j12", config={"lr": 0.1, "width": 32}, until_step=until_step, host=host, **more)

    return make


def test_parameters_are_read_like_a_mapping(make):
    trial = make()
    assert (trial["lr"], trial.config["width"], dict(trial), len(trial)) == (0.1, 32, {"lr": 0.1, "width": 32}, 2)
    assert (trial.id, trial.number, trial.fraction, trial.checkpoint) == ("j12", 12, 1.0, None)
    with pytest.raises(KeyError, match="no parameter 'lrr'; this trial has: lr, width"):
        trial["lrr"]


def test_steps_resume_after_the_checkpoint(make):
    assert list(make(step=1).steps()) == [2, 3]
    assert list(make(step=3).steps()) == []


def test_reports_of_one_step_are_merged(make, host):
    trial = make(until_step=2)
    for step in trial.steps():
        trial.report(loss=1.0 / step)
        trial.report(accuracy=0.5)
    assert host.calls == [(1, {"loss": 1.0, "accuracy": 0.5}), (2, {"loss": 0.5, "accuracy": 0.5})]
    assert trial.step == 2


def test_the_report_of_a_step_comes_before_its_checkpoint(make, host):
    trial = make(until_step=1)
    host.due = True
    for _ in trial.steps():
        trial.report(loss=1.0)
        with trial.save() as folder:
            (folder / "net").touch()
    assert host.calls == [(1, {"loss": 1.0}), (1, ["net"])]


def test_a_custom_loop_counts_its_reports(make, host):
    trial = make()
    trial.report(loss=1.0)
    trial.report(loss=0.5)
    trial.report(step=7, loss=0.1)
    assert [step for step, _ in host.calls] == [1, 2, 7]


def test_a_report_after_the_loop_is_about_the_last_step(make, host):
    trial = make(until_step=2)
    for _ in trial.steps():
        pass
    trial.report(loss=0.5)
    assert host.calls == [(2, {"loss": 0.5})]


def test_an_order_to_leave_too_late_for_a_save_gets_one_more_step(make, host):
    trial = make(until_step=10)
    for step in trial.steps():
        with trial.save() as folder:
            if folder:
                (folder / "net").touch()
        if step == 2:
            host.leave = True
    assert (trial.step, trial.left, host.calls) == (3, True, [(3, ["net"])])


def test_code_that_does_not_save_stops_at_once(make, host):
    trial = make(until_step=10)
    for step in trial.steps():
        host.leave = step == 2
    assert (trial.step, trial.left) == (2, True)


def test_an_empty_folder_is_no_checkpoint(make, host, tmp_path):
    trial = make()
    host.due = True
    for _ in trial.steps():
        with trial.save():
            pass
    assert host.calls == []
    assert not (tmp_path / "saving").exists()


def test_all_number_types_and_nothing_else_are_metrics():
    numpy = pytest.importorskip("numpy")
    assert as_number("loss", 3) == as_number("loss", numpy.float32(3)) == as_number("loss", numpy.array(3)) == 3.0
    assert as_step(numpy.int64(4)) == 4
    for wrong in ("0.5", b"1", None, [1.0], {}, 1j, numpy.array([1.0, 2.0]), numpy.array([1.0]), 10**400):
        with pytest.raises(ReportError, match=r"metric .loss. is .* not a number"):
            as_number("loss", wrong)
    for wrong in (True, 1.5, "1", None, -1):
        with pytest.raises(ReportError, match="not a whole number"):
            as_step(wrong)


def test_a_report_without_metrics_is_an_error(make):
    with pytest.raises(ReportError, match="names no metric"):
        make().report()


def test_without_a_target_the_code_ends_its_steps_itself(make, host):
    trial = make(until_step=None)
    for step in trial.steps():
        trial.report(loss=1.0 / step)
        if step == 4:
            break
    trial.close()
    assert [step for step, _ in host.calls] == [1, 2, 3, 4]
    assert (trial.step, trial.left, repr(trial)) == (4, False, "Trial(j12: lr=0.1, width=32; step 4)")
