"""Lifetimes from CSV files and from journals; errors of a file name the line."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from shoestring.errors import DataError
from shoestring.kernel.decisions import Decision, RequestLease
from shoestring.kernel.events import Event, LeaseEnded, LeaseGranted, UserAsked
from shoestring.kernel.history import Entry
from shoestring.kernel.types import EndCause, LeaseId, Offer
from shoestring.models.lifetimes.from_journal import lifetimes_of_run
from shoestring.models.lifetimes.model import HOUR_S
from shoestring.models.lifetimes.records import LifetimeRecord, LifetimeRecords, read_lifetimes

H = HOUR_S
SPOT = Offer(provider="aws", zone="us-east-1a", machine="m5.large", spot=True)


def written(folder: Path, text: str, name: str = "lives.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def test_a_file_of_the_users_own_machines(tmp_path: Path) -> None:
    text = """machine,zone,launched_at,lifetime_s,taken,limit_s
big,here,2026-01-02T03:04:05,3600,true,86400
small,there,2026-01-02T03:04:05+02:00,90000.5,yes,86400

small,there,,7200,0,86400
"""
    seen = read_lifetimes(written(tmp_path, text))
    assert seen.seconds.tolist() == [3600.0, 90000.5, 7200.0]
    assert seen.revoked.tolist() == [True, True, False]
    assert seen.at_limit.tolist() == [False, True, False]
    assert seen.by_chance.tolist() == [True, False, False]
    assert seen.machine == ("big", "small", "small")
    assert seen.launched_at[0] - seen.launched_at[1] == 2 * H
    assert math.isnan(seen.launched_at[2])
    assert seen.limit_s == 86400.0
    assert read_lifetimes(written(tmp_path, text), machines=["small"]).zone == ("there", "there")
    assert read_lifetimes(written(tmp_path, text), limit_s=12 * H).limit_s == 12 * H


def test_the_published_lifetimes_of_googles_machines_are_known_by_their_columns(tmp_path: Path) -> None:
    text = """vm_id,vm_type,zone,launch_requested_utc,end_utc,lifetime_s,preempted,end_event,workload
a,n1-highcpu-2,us-east1-b,2019-02-18 16:57:37.265,2019-02-18 18:15:05.966,4648.7,True,preempted,idle
b,n1-highcpu-2,us-east1-b,2019-02-18 16:57:37.265,2019-02-18 18:15:05.966,4648.7,False,user_stop,idle
"""
    seen = read_lifetimes(written(tmp_path, text, "google.csv.gz"))
    assert seen.revoked.tolist() == [True, False]
    assert seen.limit_s == 24 * H


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lifetime_s\n5\n", "no column 'taken' or 'preempted'"),
        ("", "no column 'lifetime_s'"),
        ("lifetime_s,taken\n", "no machine matches"),
        ("lifetime_s,taken\n5,true\nlong,true\n", "line 3: 'long' is not a lifetime"),
        ("lifetime_s,taken\n-5,true\n", "line 2: '-5' is not a lifetime"),
        ("lifetime_s,taken\nnan,true\n", "'nan' is not a lifetime"),
        ("lifetime_s,taken\n5\n", "line 2: '' does not say whether"),
        ("lifetime_s,taken\n5,perhaps\n", "'perhaps' does not say whether"),
        ("lifetime_s,taken,launched_at\n5,1,noon\n", "'noon' is not a time"),
        ("lifetime_s,taken,limit_s\n5,1,0\n", "a limit of 0"),
        ("lifetime_s,taken,limit_s\n5,1,3600\n6,1,\n", r"different limits \(1h, none\)"),
    ],
)
def test_errors_of_a_file_name_the_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_lifetimes(written(tmp_path, text))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_lifetimes(tmp_path / "nowhere.csv")
    (tmp_path / "broken.csv.gz").write_bytes(b"not gzip at all")
    with pytest.raises(DataError, match=r"broken.csv.gz cannot be read"):
        read_lifetimes(tmp_path / "broken.csv.gz")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"binary.csv cannot be read"):
        read_lifetimes(tmp_path / "binary.csv")


def test_a_lifetime_of_zero_counts_as_a_second() -> None:
    assert LifetimeRecords.of([LifetimeRecord(0.0, True)]).seconds.tolist() == [1.0]


# -- journals ----------------------------------------------------------------------------------------------------------
def journal(*turns: tuple[Event, tuple[Decision, ...]]) -> list[Entry]:
    return [Entry(seq=seq, event=event, decisions=decisions) for seq, (event, decisions) in enumerate(turns)]


def asked(lease: str, at: float, offer: Offer = SPOT) -> tuple[Event, tuple[Decision, ...]]:
    return UserAsked(at=at, wish="resume"), (RequestLease(lease=LeaseId(lease), offer=offer, end_by=1e6, why="work"),)


def granted(lease: str, at: float) -> tuple[Event, tuple[Decision, ...]]:
    return LeaseGranted(at=at, lease=LeaseId(lease)), ()


def ended(lease: str, at: float, cause: EndCause) -> tuple[Event, tuple[Decision, ...]]:
    return LeaseEnded(at=at, lease=LeaseId(lease), cause=cause, charged_usd=0.0), ()


def test_machines_of_a_run_count_from_their_grant_to_their_end() -> None:
    seen = list(
        lifetimes_of_run(
            journal(
                *(asked(lease, 0.0) for lease in ("l0", "l1", "l2", "l3", "l4")),
                *(granted(lease, 60.0) for lease in ("l0", "l1", "l2", "l3")),
                ended("l0", 660.0, "revoked"),
                ended("l1", 760.0, "released"),
                ended("l2", 860.0, "lost"),
                ended("l2", 960.0, "released"),
                ended("l4", 990.0, "released"),
            )
        )
    )
    assert [(one.seconds, one.revoked) for one in seen] == [
        (600.0, True),
        (700.0, False),
        (800.0, True),
        (930.0, False),
    ]
    assert {(one.machine, one.zone, one.launched_at) for one in seen} == {("m5.large", "us-east-1a", 60.0)}


def test_machines_that_cannot_be_preempted_are_left_out() -> None:
    sure = Offer(provider="aws", zone="us-east-1a", machine="m5.large", spot=False)
    ours = Offer(provider="local", zone="here", machine="this-machine", spot=True)
    turns = (asked("l0", 0.0, sure), granted("l0", 1.0), asked("l1", 2.0, ours), granted("l1", 3.0))
    assert list(lifetimes_of_run(journal(*turns))) == []
