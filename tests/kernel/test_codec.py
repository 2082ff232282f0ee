"""A turn survives the journal: every class, every value, and the bytes of old versions."""

import math
import types
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.kernel.codec import NewerFormat, decode_entry, decode_turn, encode_entry, encode_turn
from shoestring.kernel.decisions import AnyDecision, Think, WakeAt, WindDown
from shoestring.kernel.events import AnyEvent, JobReported, RunStarted, ThoughtReady, TimerFired
from shoestring.kernel.history import Entry
from shoestring.kernel.spec import Code, RunSpec
from shoestring.kernel.types import Listing
from shoestring.space.constraints import Constraint
from shoestring.space.space import choice, from_plain, log

EVENTS, DECISIONS = get_args(AnyEvent), get_args(AnyDecision)
FLOATS = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 1e-310])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def values_of(kind: Any) -> st.SearchStrategy:
    """Anything a field of this type may hold."""
    simple = {str: TEXTS, int: st.integers(), float: FLOATS, bool: st.booleans(), type(None): st.none(), Any: JSON}
    simple[msgspec.UnsetType] = st.just(msgspec.UNSET)
    if kind in simple:
        return simple[kind]
    if isinstance(kind, NewType):
        return values_of(kind.__supertype__)
    if kind is RunSpec:
        return SPECS
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(args)
    if origin is Union or isinstance(kind, types.UnionType):
        return st.one_of(*map(values_of, args))
    if origin is dict:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=3)
    if origin is tuple and args[1:] == (...,):
        return st.lists(values_of(args[0]), max_size=3).map(tuple)
    raise NotImplementedError(f"no strategy for {kind!r}")


def structs(cls: type[msgspec.Struct]) -> st.SearchStrategy:
    return st.builds(cls, **{name: values_of(kind) for name, kind in get_type_hints(cls).items() if name[0] != "_"})


POSITIVE = st.floats(min_value=0.5, max_value=1e9)
SPECS = st.builds(
    RunSpec,
    name=TEXTS,
    metric=st.just("loss"),
    code=values_of(Code),
    given=st.lists(st.dictionaries(TEXTS, values_of(str | int | float | bool | None), max_size=2), max_size=2).map(
        tuple
    ),
    fractions=st.sampled_from([(), (1.0,), (0.25, 1.0)]),
    constraints=st.lists(values_of(Constraint), max_size=2).map(tuple),
    trials=st.integers(1, 9),
    budget_usd=POSITIVE,
    deadline_s=POSITIVE,
    seed=st.integers(0, 2**64),
    listings=st.lists(values_of(Listing), max_size=2).map(tuple),
)
TURNS = st.tuples(
    st.one_of(*map(structs, EVENTS)), st.lists(st.one_of(*map(structs, DECISIONS)), max_size=3).map(tuple)
)


def plain(value: Any) -> Any:
    """Comparable to the last bit: NaN equals itself, 1 is not 1.0, and the order of keys counts."""
    if isinstance(value, msgspec.Struct):
        return type(value).__name__, [(name, plain(getattr(value, name))) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value)


@pytest.mark.parametrize("cls", [*EVENTS, *DECISIONS], ids=lambda cls: cls.__name__)
def test_every_class_is_decoded_as_it_was(cls):
    @settings(max_examples=25, deadline=None)
    @given(fact=structs(cls))
    def check(fact):
        turn = (fact, ()) if cls in EVENTS else (TimerFired(at=0.0, name="t"), (fact,))
        assert plain(decode_turn(encode_turn(*turn))) == plain(turn)

    check()


@settings(max_examples=60, deadline=None)
@given(turn=TURNS, seq=st.integers(1, 2**40), meta=st.dictionaries(TEXTS, st.floats(0, 10), max_size=2))
def test_entries_are_decoded_and_encode_to_the_same_bytes(turn, seq, meta):
    entry = Entry(seq=seq, event=turn[0], decisions=turn[1], meta=meta)
    again = decode_entry(encode_entry(entry))
    assert plain(again) == plain(entry)
    assert encode_entry(again) == encode_entry(entry)
    assert encode_turn(again.event, again.decisions) == encode_turn(*turn)


def test_keys_are_decoded_in_their_order():
    """A space is sampled and a grid walked in the order of its parameters: resumed runs must not see another."""
    space = from_plain({"width": choice(32, 64), "lr": log(1e-4, 1.0), "batch": choice(8, 16)})
    started = RunStarted(
        at=0.0, seed=1, spec=RunSpec(name="study", metric="loss", space=space, options={"z": 1, "a": math.inf})
    )
    event, _ = decode_turn(encode_turn(started, ()))
    assert list(event.spec.space.params) == ["width", "lr", "batch"]
    assert list(event.spec.options) == ["z", "a"]
    assert list(event.spec.space.grid(2)) == list(space.grid(2))


def test_measured_times_are_beside_the_turn_not_in_it():
    report = JobReported(at=1.0, segment="s", job="j", step=1, metrics={"a": 1.0})
    fast, slow = (Entry(seq=1, event=report, decisions=(), meta={"step_s": s}) for s in (0.1, 9.0))
    assert encode_entry(fast) != encode_entry(slow)
    assert encode_turn(report, ()) in encode_entry(fast)
    assert encode_turn(report, ()) in encode_entry(slow)


def test_what_is_not_finite_is_found_beside_real_nulls_and_in_plain_data():
    thought = ThoughtReady(at=0.0, name="t", answer=[None, {"deep": [math.inf, None]}, "nan", 2**70])
    think = Think(why="w", name="t", question="q", given={"worst": -math.inf, "none": None})
    event, (decision,) = decode_turn(encode_turn(thought, (think,)))
    assert event == thought
    assert decision == think


def test_the_bytes_are_json_that_people_can_read():
    report = JobReported(at=1.5, segment="s", job="j", step=1, metrics={"loss": math.nan})
    assert encode_turn(report, (WindDown(reason="completed", why="enough"),)) == (
        b'{"not_finite":[[["event","metrics","loss"],"nan"]],'
        b'"event":{"type":"JobReported/1","at":1.5,"segment":"s","job":"j","step":1,"metrics":{"loss":null}},'
        b'"decisions":[{"type":"WindDown/2","why":"enough","id":"","reason":"completed"}]}'
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is not JSON"),
        (b'{"event":', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"null", "is not a recorded turn"),
        (b'{"decisions":[]}', "is not a recorded turn.*event"),
        (b'{"event":{"type":"LeaseGranted/1","at":"noon","lease":"l"}}', r"is not a recorded turn.*\$\.event\.at"),
        (b'{"event":{"type":"AddJob/1","at":1}}', "is not a recorded turn"),
        (b'{"event":{"at":1}}', "is not a recorded turn"),
        (b'{"not_finite":[[["event","nowhere","x"],"nan"]],"event":{"type":"TimerFired/1"}}', "is not a recorded turn"),
        (b'{"not_finite":7,"event":{"type":"TimerFired/1","at":1,"name":"t"}}', "is not a recorded turn"),
    ],
)
def test_malformed_turns_raise_a_readable_error(body, message):
    with pytest.raises(ValueError, match=message):
        decode_turn(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"event":{"type":"TimerFired/2","at":1.0,"name":"t"}}',
        b'{"event":{"type":"TimerFired/1","at":1.0,"name":"t"},"decisions":[{"type":"Teleport/1","why":"w"}]}',
        b'{"event":{"type":"TimerFired/1","at":1.0,"name":"t"},"decisions":[{"type":"Refused/1","why":"w",'
        b'"wish":{"type":"RequestLease/9"}}]}',
    ],
)
def test_a_later_version_is_recognised_as_one(body):
    with pytest.raises(
        NewerFormat, match=r"written by a newer shoestring: it holds '(TimerFired/2|Teleport/1|Req.*/9)'"
    ):
        decode_turn(body)


def test_a_malformed_line_raises_a_readable_error():
    for line in (b"", b"{}", b'{"seq":"one","turn":{}}'):
        with pytest.raises(ValueError, match="is not"):
            decode_entry(line)


OLD_JOURNAL = """
{"event":{"type":"RunStarted/1","at":0.0,"spec":{"name":"digits","kind":"study","code":{"function":"train.py:train",\
"command":null},"space":{"params":{"optimizer":{"type":"choice","options":["sgd","adam"],"when":{}},\
"lr":{"type":"float","low":0.0001,"high":1.0,"log":true,"when":{}},"layers":{"type":"int","low":1,"high":4,\
"log":false,"when":{}},"batch":{"type":"constant","value":8,"when":{}},"momentum":{"type":"float","low":0.5,\
"high":0.99,"log":false,"when":{"optimizer":["sgd"]}}}},"given":[{"lr":0.1}],"metric":"loss","direction":"minimize",\
"trials":8,"max_steps":20,"slots":1,"budget_usd":5.0,"deadline_s":21600.0,"recipe":"asha","options":{"eta":3},\
"seed":7,"listings":[{"offer":{"provider":"aws","zone":"us-east-1a","machine":"m6i.large","spot":true},"vcpus":2,\
"memory_gb":8,"gpus":0,"slots":1,"on_demand_usd_per_hour":0.096,"billing":"aws_spot","notice_s":120.0,\
"max_life_s":86400.0}],"max_machines":4,"max_failures":2,"time_limit_s":null,"slice_s":900.0,"wind_down_s":120.0,\
"keep_checkpoints":2},"seed":7,"wall_at":1700000000.0},"decisions":[{"type":"AddJob/1","why":"drawn at random",\
"id":"1.0","job":"j1","config":{"lr":0.1,"optimizer":"sgd","batch":8,"n":null,"ok":true},"tags":{"rung":0}},\
{"type":"RunJob/1","why":"first rung","id":"1.1","job":"j1","until_step":9,"slots":1,"offer":{"provider":"aws",\
"zone":"us-east-1a","machine":"m6i.large","spot":true}}]}
{"event":{"type":"TimerFired/1","at":1.0,"name":"retry-placement"},"decisions":[{"type":"RequestLease/1","why":"cheapest","id":"2.1","lease":"l1",\
"offer":{"provider":"aws","zone":"us-east-1a","machine":"m6i.large","spot":true},"max_usd_per_hour":0.09,\
"end_by":900.0,"reserve_usd":0.024},{"type":"StartSegment/1","why":"its turn","id":"2.2","segment":"s1","job":"j1",\
"leases":["l1"],"config":{"lr":0.1,"optimizer":"sgd"},"until_step":9,"slots":1,"resume_from":{"job":"j1","step":3,\
"name":"j1/000003-s1","size_bytes":1024,"digest":"ab12"},"time_limit_s":600.0},{"type":"PlanSaves/1",\
"why":"every 5 minutes","id":"2.3","segment":"s1","every_s":300.0},{"type":"WakeAt/1","why":"renew","id":"2.4",\
"name":"renew:l1","at":450.0,"about":"l1"}]}
{"event":{"type":"LeaseGranted/1","at":2.0,"lease":"l1"}}
{"event":{"type":"LeaseDenied/1","at":3.0,"lease":"l2","reason":"no_capacity"},"decisions":[{"type":"Refused/1",\
"why":"over budget","id":"4.0","wish":{"type":"RequestLease/1","why":"cheapest","id":"2.1","lease":"l1",\
"offer":{"provider":"aws","zone":"us-east-1a","machine":"m6i.large","spot":true},"max_usd_per_hour":0.09,\
"end_by":900.0,"reserve_usd":0.024}}]}
{"event":{"type":"SegmentStarted/1","at":4.0,"segment":"s1"}}
{"not_finite":[[["event","metrics","loss"],"nan"]],"event":{"type":"JobReported/1","at":5.0,"segment":"s1",\
"job":"j1","step":1,"metrics":{"loss":null,"acc":0.25}},"decisions":[{"type":"TagJob/1","why":"diverged","id":"6.0",\
"job":"j1","tags":{"bad":true}}]}
{"event":{"type":"TimerFired/1","at":450.0,"name":"renew:l1"},"decisions":[{"type":"ExtendLease/1",\
"why":"renewed at half time","id":"7.0","lease":"l1","end_by":1800.0,"reserve_usd":0.048}]}
{"event":{"type":"RevocationNoticed/1","at":500.0,"lease":"l1","gone_at":620.0},\
"decisions":[{"type":"SaveCheckpoint/1","why":"notice","id":"8.0","segment":"s1"},{"type":"HaltSegment/1",\
"why":"notice","id":"8.1","segment":"s1","grace_s":60.0}]}
{"event":{"type":"CheckpointSaved/1","at":510.0,"segment":"s1","job":"j1","step":3,"ref":{"job":"j1","step":3,\
"name":"j1/000003-s1","size_bytes":1024,"digest":"ab12"},"took_s":1.5},"decisions":[{"type":"DropCheckpoint/1",\
"why":"two newer ones","id":"9.0","ref":{"job":"j1","step":3,"name":"j1/000003-s1","size_bytes":1024,\
"digest":"ab12"}}]}
{"event":{"type":"SegmentEnded/1","at":511.0,"segment":"s1","step":3,"cause":"halted","detail":"notice"},\
"decisions":[{"type":"PauseJob/1","why":"not promoted","id":"10.0","job":"j1"},{"type":"DropJob/1",\
"why":"worst of its rung","id":"10.1","job":"j1"},{"type":"ReleaseLease/1","why":"idle","id":"10.2","lease":"l1"}]}
{"event":{"type":"LeaseEnded/1","at":512.0,"lease":"l1","cause":"revoked","charged_usd":0.01,"refunded_usd":0.004}}
{"event":{"type":"CheckpointLost/1","at":513.0,"job":"j1","ref":{"job":"j1","step":3,"name":"j1/000003-s1",\
"size_bytes":1024,"digest":"ab12"},"detail":"its file 'net' is missing"},"decisions":[{"type":"Think/1",\
"why":"refit","id":"12.0","name":"fit","question":"shoestring.models:fit","given":[1,{"a":null}],"modelled_s":2.0}]}
{"event":{"type":"ThoughtReady/1","at":515.0,"name":"fit","answer":{"best":"j1"}}}
{"event":{"type":"UserAsked/1","at":516.0,"wish":"amend","budget_usd":6.0,"deadline_s":null}}
{"event":{"type":"PolicyBroke/1","at":517.0,"detail":"ZeroDivisionError"},"decisions":[{"type":"WindDown/1",\
"why":"parked","id":"15.0"},{"type":"Conclude/1","why":"nothing left","id":"15.1","best":"j1"}]}
{"event":{"type":"SegmentEnded/1","at":518.0,"segment":"s2","step":9,"cause":"reached","detail":""},\
"decisions":[{"type":"JudgeJob/1","why":"keeps cost <= $0.10","id":"16.0","job":"j1","seconds":52.5,"usd":0.07,\
"feasible":true}]}
{"event":{"type":"SnapshotReported/1","at":519.0,"segment":"s3","job":"j2","step":0,"fraction":0.0625,\
"metrics":{"loss":0.5}}}
{"event":{"type":"TimerFired/1","at":520.0,"name":"deadline"},"decisions":[{"type":"WindDown/2",\
"why":"the deadline is near","id":"18.0","reason":"deadline_reached"}]}
"""


def test_an_old_journal_still_loads():
    """A stored turn for every tag there has ever been. Lines are added, never changed."""
    seen = set()
    for line in OLD_JOURNAL.strip().splitlines():
        event, decisions = decode_turn(line.encode())
        raw = msgspec.json.decode(line)
        for fact, stored in zip((event, *decisions), (raw["event"], *raw.get("decisions", [])), strict=True):
            assert holds(msgspec.to_builtins(fact), stored), f"{stored['type']} lost something of {stored}"
            seen.add(stored["type"])
    assert seen >= {cls.__struct_config__.tag for cls in (*EVENTS, *DECISIONS)}, "add an example of the new tag"


def holds(now: Any, stored: Any) -> bool:
    """Is everything that was stored still there? Fields added since may have appeared with their defaults."""
    if isinstance(stored, dict):
        return all(key in now and holds(now[key], value) for key, value in stored.items())
    if isinstance(stored, list):
        return len(now) == len(stored) and all(map(holds, now, stored))
    return now == stored or (stored is None and isinstance(now, float))


def test_a_wake_up_without_an_end_survives():
    (decision,) = decode_turn(encode_turn(TimerFired(at=1.0, name="t"), (WakeAt(why="w", name="never", at=math.inf),)))[
        1
    ]
    assert decision.at == math.inf
