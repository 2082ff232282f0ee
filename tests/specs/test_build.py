"""From the user's fields, in Python or in a file, to the spec."""

from __future__ import annotations

import sys

import msgspec
import pytest

from shoestring.errors import MissingExtra, SpecError
from shoestring.kernel.spec import Code, RunSpec
from shoestring.kernel.types import Listing, Offer
from shoestring.space.space import choice, constant, from_plain, integer, log, uniform
from shoestring.specs.build import FIELDS, check_affordable, load_spec_file, make_spec, split_sections

STUDY = {"command": "python train.py --lr {lr}", "space": {"lr": log(1e-4, 1.0)}, "minimize": "loss"}
BAG = {"kind": "bag", "command": "./simulate {temp}", "over": {"temp": [280, 300]}}
SPOT = Listing(
    offer=Offer(provider="aws", zone="us-east-1a", machine="t3.micro", spot=True),
    vcpus=2,
    memory_gb=1,
    on_demand_usd_per_hour=0.0104,
)

YAML = """
name: digits
command: python train.py --lr {lr} --out {save_to}
space:
  lr: {log: [1e-4, 1]}
  optimizer: [sgd, adam, off]
  momentum: {float: [0.5, 0.99], when: {optimizer: sgd}}
  layers: {int: [1, 1024], log: true}
  scale: {choice: [1e-3, 2, "3"]}
  seed: 7
given:
  - {lr: 1e-2, optimizer: adam, layers: 4, scale: 2, seed: 7}
maximize: accuracy
trials: 32
max_steps: 1e2
budget: $20
deadline: 1:30:00
recipe: hyperband
options: {reduction: 3}
time_limit: 10m
"""

TOML = """
name = "digits"
command = ["python", "train.py", "--lr", "{lr}", "--out", "{save_to}"]
maximize = "accuracy"
trials = 32
max_steps = 100
budget = 20
deadline = "1h30"
recipe = "hyperband"
options = {reduction = 3}
time_limit = 600

[space]
lr = {log = [1e-4, 1]}
optimizer = ["sgd", "adam", "off"]
momentum = {float = [0.5, 0.99], when = {optimizer = ["sgd"]}}
layers = {int = [1, 1024], log = true}
scale = {choice = [1e-3, 2, "3"]}
seed = 7

[[given]]
lr = 0.01
optimizer = "adam"
layers = 4
scale = 2
seed = 7
"""

PYTHON = {
    "name": "digits",
    "command": "python train.py --lr {lr} --out {save_to}",
    "space": {
        "lr": log(1e-4, 1),
        "optimizer": choice("sgd", "adam", "off"),
        "momentum": uniform(0.5, 0.99, when={"optimizer": "sgd"}),
        "layers": integer(1, 1024, log=True),
        "scale": choice(1e-3, 2, "3"),
        "seed": constant(7),
    },
    "given": [{"lr": 0.01, "optimizer": "adam", "layers": 4, "scale": 2, "seed": 7}],
    "maximize": "accuracy",
    "trials": 32,
    "max_steps": 100,
    "budget": "$20",
    "deadline": 5400,
    "recipe": "hyperband",
    "options": {"reduction": 3},
    "time_limit": "10m",
}


def from_text(tmp_path, text, name="study.yaml"):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return load_spec_file(file)


def refused(fields, **kwargs):
    with pytest.raises(SpecError) as caught:
        make_spec(fields, **kwargs)
    return caught.value


def test_yaml_toml_and_python_give_the_same_spec(tmp_path):
    spec = make_spec(PYTHON)
    assert make_spec(from_text(tmp_path, YAML)) == spec
    assert make_spec(from_text(tmp_path, TOML, "study.toml")) == spec
    assert (spec.budget_usd, spec.deadline_s, spec.time_limit_s, spec.max_steps) == (20.0, 5400.0, 600.0, 100)
    assert (spec.metric, spec.direction, spec.options) == ("accuracy", "maximize", {"reduction": 3})
    assert spec.code.command == ("python", "train.py", "--lr", "{lr}", "--out", "{save_to}")


def test_a_spec_survives_a_json_round_trip():
    spec = make_spec({**PYTHON, "listings": [SPOT]})
    assert msgspec.json.decode(msgspec.json.encode(spec), type=RunSpec) == spec


def test_a_bag_is_all_combinations_or_just_the_jobs_given():
    spec = make_spec({**BAG, "command": "./simulate {temp} {seed}", "over": {"temp": [280, 300], "seed": range(3)}})
    assert (spec.kind, spec.trials, spec.max_steps) == ("bag", 6, 1)
    assert spec.given[:2] == ({"temp": 280, "seed": 0}, {"temp": 280, "seed": 1})
    same = make_spec({"kind": "bag", "command": "./simulate {temp} {seed}", "given": list(spec.given)})
    assert same == spec
    assert make_spec({**BAG, "over": {"temp": 280}}).given == ({"temp": 280},)
    assert make_spec({**BAG, "maximize": "energy"}).direction == "maximize"


def test_missing_fields_are_derived():
    spec = make_spec(STUDY)
    assert (spec.name, spec.trials, spec.wind_down_s) == ("train", 64, 120.0)
    assert make_spec({**STUDY, "deadline": "10m"}).wind_down_s == 30.0
    assert make_spec({**STUDY, "deadline": "10m", "wind_down_s": "1m"}).wind_down_s == 60.0
    assert make_spec({**STUDY, "space": {"lr": [1, 2, 3]}}).trials == 3
    assert make_spec({**STUDY, "command": None, "function": "pkg.mod:Net.fit"}).name == "Net.fit"
    assert make_spec({**STUDY, "command": None, "function": "a b/train.py:fit"}).name == "fit"
    assert make_spec(BAG).name == "simulate"
    assert make_spec({**STUDY, "budget": None}) == spec


def test_a_simulation_needs_no_code():
    plain = {"space": STUDY["space"], "minimize": "loss"}
    assert make_spec(plain, needs_code=False).code.command is None
    assert "there is nothing to run" in str(refused(plain))


def test_misspelt_fields_get_a_suggestion():
    error = refused({**STUDY, "budgt": 3, "minimise": "loss"}, source="study.yaml")
    assert str(error) == "study.yaml: budgt, minimise are unknown"
    assert error.hint.startswith("budgt: did you mean budget?; minimise: did you mean minimize")
    assert all(field in refused({**STUDY, "zzz": 1}).hint for field in FIELDS)


@pytest.mark.parametrize(
    ("change", "complaint", "hint"),
    [
        ({"budget": "lots"}, "budget='lots' is not an amount of dollars", "$20"),
        ({"budget": -1}, "budget=-1 is negative", "$20"),
        ({"deadline": "soon"}, "deadline='soon' is not a length of time", "90m"),
        ({"deadline": -5}, "deadline=-5 is negative", "90m"),
        ({"deadline": "0h"}, "deadline='0h' leaves no time", "6h"),
        ({"time_limit": 0}, "time_limit=0 leaves no time", "6h"),
        ({"slice_s": "x"}, "slice_s='x'", "90m"),
        ({"deadline": "1h", "wind_down_s": "1h"}, "wind_down_s='1h' leaves nothing", "leave it out"),
        ({"trials": 0}, "trials=0 is too few", "1 or more"),
        ({"trials": 2.5}, "trials: 2.5 is not a whole number", "fraction"),
        ({"trials": True}, "trials: True is not a number", ""),
        ({"trials": "many"}, "trials: 'many' is not a number", ""),
        ({"trials": 1, "given": [{"lr": 0.1}, {"lr": 0.2}]}, "trials=1 is fewer than the 2", "raise trials"),
        ({"max_steps": 0}, "max_steps=0 is too few", "1 or more"),
        ({"max_failures": -1}, "max_failures=-1", "0 or more"),
        ({"keep_checkpoints": 1}, "keep_checkpoints=1 is too few", "2 is the least"),
        ({"seed": 2**70}, "seed: ", "64-bit"),
        ({"seed": float("inf")}, "seed: inf is not a whole number", ""),
        ({"minimize": None}, "no metric is given", "minimize='loss'"),
        ({"maximize": "accuracy"}, "both minimize and maximize", "one metric"),
        ({"minimize": ["a", "b"]}, "minimize=['a', 'b'] must be one name", "minimize='loss'"),
        ({"minimize": " "}, "minimize=' ' must be one name", "minimize='loss'"),
        ({"recipe": 3}, "recipe=3 must be one name", "asha"),
        ({"options": [3]}, "options=[3] names no options", "options={"),
        ({"options": {"eta": [3]}}, "options.eta: [3] cannot be", "text"),
        ({"kind": "pile"}, "kind='pile' is unknown", "study"),
        ({"space": {}}, "the space is empty", "give at least one parameter"),
        ({"space": None}, "the space is empty", "give at least one parameter"),
        ({"space": {"lr": log(1, 0)}}, "space.lr: log(1.0, 0.0) is empty", "lower bound first"),
        ({"given": {"lr": 0.1}}, "is not a list of configurations", "given=["),
        ({"given": [3]}, "given[0]=3 is not a configuration", "{'lr': 0.1"),
        ({"given": [{"lr": 0.1}, {"rl": 0.1}]}, "given[1]: 'rl' is not a parameter", "known: lr"),
        ({"given": [{"lr": 5.0}]}, "given[0]: lr=5.0 is not in the space", "log(0.0001, 1.0)"),
        ({"over": {"lr": [1]}}, "over lists the jobs of a bag", "use space"),
        ({"name": "../up"}, "name='../up' cannot name a run", "folder"),
        ({"name": 5}, "name=5 cannot name a run", "folder"),
        ({"function": "train.py:train"}, "both command and function", "leave the other out"),
        ({"command": ""}, "command='' names no program", "python train.py"),
        ({"command": 5}, "command=5 is not a command line", "python train.py"),
        ({"command": "python 'train.py"}, "No closing quotation", "close the quotes"),
        ({"command": "cat x | python train.py"}, "has '|' in it", "bash -c"),
        ({"command": "python train.py --lr {lrr}"}, "command: {lrr} is not a parameter", "did you mean lr?"),
        ({"command": "train", "space": {"params": [1, 2]}}, "{params} is a path", "rename"),
        ({"command": None, "function": "train"}, "function='train' names no function", "train.py:train"),
        ({"command": None, "function": "train.py:a-b"}, "names no function", "train.py:train"),
        ({"command": None, "function": print}, "names no function", "train.py:train"),
        ({"machines": "m6i"}, "machines='m6i' is not a list of machines", "machines"),
        ({"machines": ["m6i"]}, "machines[0]='m6i' describes no machine", "machines"),
        ({"machines": [SPOT], "listings": [SPOT]}, "both machines and listings", "leave one out"),
        ({"listings": [SPOT, SPOT]}, "t3.micro spot in us-east-1a is there twice", "leave one"),
        ({"listings": [msgspec.structs.replace(SPOT, on_demand_usd_per_hour=-1)]}, "-1 dollars an hour", "free"),
        ({"listings": [msgspec.structs.replace(SPOT, slots=0)]}, "0 slots", "1 or more"),
    ],
)
def test_an_impossible_study_is_refused_with_field_and_value(change, complaint, hint):
    error = refused({**STUDY, **change})
    assert str(error).startswith("tune(): ")
    assert complaint in str(error)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("change", "complaint", "hint"),
    [
        ({"over": None}, "a bag needs its jobs", "range(100)"),
        ({"given": [{"temp": 1}]}, "in over, given or table (one of them)", "combinations"),
        ({"over": {}}, "over={} names no values", "over={"),
        ({"over": {"temp": []}}, "over.temp lists no values", "at least one"),
        ({"over": {"temp": {1, 2}}}, "over.temp: {1, 2} cannot be", "text"),
        ({"over": {"te mp": [1]}}, "'te mp' cannot name a parameter", "letters"),
        ({"over": {"temp": range(2000), "n": range(2000)}}, "more than 1,000,000 jobs", "several bags"),
        ({"over": None, "given": []}, "a bag without jobs", "at least one"),
        ({"over": None, "given": [{"temp": 1}, {}]}, "given[1] has no temp", "every job"),
        ({"space": {"temp": [1, 2]}}, "a bag has no space", "over"),
        ({"trials": 5}, "trials=5, but the bag has 2 jobs", "leave trials out"),
        ({"command": "./simulate {tmp}"}, "{tmp} is not a parameter", "did you mean temp?"),
    ],
)
def test_an_impossible_bag_is_refused(change, complaint, hint):
    error = refused({**BAG, **change}, source="run_bag()")
    assert str(error).startswith("run_bag(): ")
    assert complaint in str(error)
    assert hint in error.hint


def test_braces_that_name_nothing_are_left_alone():
    command = """python train.py --json '{"lr": 1}' --awk {{lr2}} --at {checkpoint} {params} {lr}"""
    assert make_spec({**STUDY, "command": command}).code.command[3] == '{"lr": 1}'


def test_machines_may_be_plain_mappings():
    plain = msgspec.to_builtins(SPOT)
    assert make_spec({**STUDY, "machines": [plain]}) == make_spec({**STUDY, "listings": (SPOT,)})


def test_market_and_simulation_sections_are_split_off():
    spec, sections = split_sections({**STUDY, "simulate": {"runs": 3}, "market": {"seed": 1}})
    assert spec == STUDY
    assert sections == {"simulate": {"runs": 3}, "market": {"seed": 1}}
    assert split_sections(STUDY) == (STUDY, {})


def test_unquoted_yaml_follows_the_core_schema(tmp_path):
    text = (
        "[1e-4, 1E5, -2.5e+3, .5, 1., 7, -7, 0, 010, no, off, yes, true, null, ~, 1:30, 2024-01-01, 1_000, 0x1F, .inf]"
    )
    assert from_text(tmp_path, f"a: {text}\nb:\nc: ''")["a"] == [
        *(1e-4, 1e5, -2500.0, 0.5, 1.0, 7, -7, 0),
        *("010", "no", "off", "yes", True, None, None, "1:30", "2024-01-01", "1_000", "0x1F", float("inf")),
    ]


def test_yaml_anchors_may_be_shared(tmp_path):
    text = "base: &b {lr: 1}\nother: {<<: *b, width: 2}"
    assert from_text(tmp_path, text)["other"] == {"lr": 1, "width": 2}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.yaml", "a: 1\nb: [1, 2\n", "a.yaml, line 3 is not YAML"),
        ("a.yaml", "a: 1\na: 2\n", "line 2 is not YAML: the field 'a' is given twice"),
        ("a.yaml", "a: {b: 1, b: 2}\n", "the field 'b' is given twice"),
        (
            "a.yaml",
            "a: !!python/object/apply:os.system ['true']",
            "line 1 is not YAML: could not determine a constructor",
        ),
        ("a.yaml", "a: !!int x", "is not YAML"),
        ("a.yaml", "a: !!bool x", "is not YAML"),
        ("a.yaml", "a: \x01", "is not YAML"),
        ("a.yaml", "a: " + "[" * 5000, "nested too deeply"),
        ("a.yaml", "- 1\n- 2\n", "holds list '[1, 2]', not named fields"),
        ("a.yml", "", "is empty, not named fields"),
        ("a.yaml", "1: 2", "not named fields"),
        ("a.toml", "a = 1\nb = soon\n", "a.toml is not TOML: Invalid value (at line 2, column 5)"),
        ("a.toml", "a = 1\na = 2\n", "is not TOML: Cannot overwrite a value"),
        ("a.json", "{}", "is not a spec file"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(tmp_path, name, text, complaint):
    with pytest.raises(SpecError) as caught:
        from_text(tmp_path, text, name)
    assert complaint in str(caught.value)
    assert caught.value.hint


def test_a_missing_or_binary_file_is_named(tmp_path):
    with pytest.raises(SpecError, match="there is no file"):
        load_spec_file(tmp_path / "no.yaml")
    (tmp_path / "bytes.toml").write_bytes(b"a = \xff")
    with pytest.raises(SpecError, match="byte 4 is not UTF-8"):
        load_spec_file(tmp_path / "bytes.toml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(SpecError, match="cannot be read: Is a directory"):
        load_spec_file(tmp_path / "folder.yaml")


def test_yaml_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra) as caught:
        from_text(tmp_path, "a: 1")
    assert caught.value.hint == "pip install 'shoestring[yaml]'"


def test_a_byte_order_mark_is_ignored(tmp_path):
    assert from_text(tmp_path, "\ufeffa: 1") == {"a": 1}


def test_a_date_in_toml_is_refused(tmp_path):
    fields = from_text(tmp_path, "space = {when_ = [2024-01-01]}", "a.toml")
    with pytest.raises(SpecError, match=r"space.when_: .*cannot be the value"):
        from_plain(fields["space"])


def test_a_budget_that_pays_nothing_is_refused_with_the_price():
    cheapest = (SPOT.offer, 0.0031)
    with pytest.raises(SpecError) as caught:
        check_affordable(make_spec({**STUDY, "budget": 0.00001}), cheapest)
    assert str(caught.value) == (
        "budget $0.00001 cannot pay the first minute of the cheapest machine allowed "
        "(t3.micro spot in us-east-1a, $0.0031/h, at least 60 s are charged: $0.000052)"
    )
    assert caught.value.hint == (
        "raise --budget, allow cheaper machines, or run on this machine free of charge: --on local"
    )
    check_affordable(make_spec({**STUDY, "budget": 0.0001}), cheapest)


def test_machines_that_cost_money_require_a_budget():
    with pytest.raises(SpecError, match="no budget is given"):
        check_affordable(make_spec(STUDY), (SPOT.offer, 0.0031))
    check_affordable(make_spec(STUDY), (SPOT.offer, 0.0))
    check_affordable(make_spec(STUDY), None)


@pytest.mark.parametrize("space", [{"lr": log(1e-4, 1.0)}, {"fraction": uniform(0, 1)}], ids=["ours", "a parameter"])
def test_a_command_may_use_the_data_fraction_and_a_parameter_may_have_its_name(space: dict) -> None:
    spec = make_spec({**STUDY, "command": "python train.py {fraction}", "space": space})
    assert spec.code.command == ("python", "train.py", "{fraction}")


def test_a_command_may_be_launched_once_for_all_workers_of_a_gang():
    assert make_spec({**BAG, "command": "mpirun ./x {temp}", "launch": "once"}).code.launch == "once"
    assert make_spec({**BAG, "command": "./x {temp}", "launch": "each"}).code == Code(command=("./x", "{temp}"))
    assert "launch" not in msgspec.json.decode(msgspec.json.encode(Code(command=("./x",))))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"command": "./x", "launch": "twice"}, "launch='twice' is unknown"),
        ({"function": "a.py:f", "launch": "once"}, "launch='once' is for commands"),
    ],
)
def test_a_launch_that_makes_no_sense_is_refused(fields, words):
    with pytest.raises(SpecError, match=words):
        make_spec({"kind": "bag", "over": {"temp": [280]}, **fields})
