"""The outbox: long lines are read to their end, absurd reports are refused with a sentence."""

import pytest

from shoestring.trial import ReportError, Trial
from shoestring.worker.outbox import Ended, Outbox, Reported, Tail

MANY = {f"metric_{number}": 0.5 for number in range(40_000)}


def test_lines_longer_than_what_is_read_at_once_are_read(tmp_path):
    outbox = Outbox(tmp_path / "out.jsonl")
    outbox.report(1, {"loss": 1.0})
    outbox.report(2, {**MANY, **{f"{name}_too": 0.5 for name in MANY}})
    outbox.write(Ended(wall=1.0, step=2, cause="reached"))
    assert (tmp_path / "out.jsonl").stat().st_size > 1 << 20
    lines = list(Tail(tmp_path / "out.jsonl").read())
    assert [type(line) for line in lines] == [Reported, Reported, Ended]


def test_a_long_line_that_is_not_finished_is_read_when_it_is(tmp_path):
    outbox, tail = Outbox(tmp_path / "out.jsonl"), Tail(tmp_path / "out.jsonl")
    outbox.report(1, {**MANY, **{f"{name}_too": 0.5 for name in MANY}})
    whole = (tmp_path / "out.jsonl").read_bytes()
    (tmp_path / "out.jsonl").write_bytes(whole[:-100])
    assert list(tail.read()) == []
    (tmp_path / "out.jsonl").write_bytes(whole)
    assert [line.step for line in tail.read()] == [1]


def test_a_report_of_too_many_metrics_is_refused_with_a_sentence():
    trial = Trial(job="j0", config={}, until_step=3, host=None)
    with pytest.raises(ReportError, match=r"a report of 40,000 metrics takes 1\.5 MB, more than 1 MB") as error:
        trial.report(**MANY)
    assert error.value.hint == "report a few numbers of each step, and save the others in a file"


def test_a_trial_whose_error_is_as_long_as_a_data_set_ends_with_its_beginning(worker):
    worker.write("study.py", "def train(trial):\n    raise ValueError('x' * 3_000_000)\n")
    ended = worker.run(function="study.py:train")
    assert ended.cause == "failed"
    assert ended.detail.startswith("ValueError: xxx")
    assert len(ended.detail) < 2100
