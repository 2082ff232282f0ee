"""The one way to a RunSpec, for the arguments of a Python call and for the fields of a file alike.

Both arrive as a mapping of the user's fields (`budget="$20"`, `deadline="6h"`, `minimize="loss"`), which is validated
once. `shoestring.specs.read_file` reads the files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import PurePath
from typing import Any, Literal

import msgspec

from shoestring.errors import SpecError
from shoestring.kernel.spec import Code, RunSpec
from shoestring.kernel.types import Config, Direction, Listing, Offer
from shoestring.policies.placement.renting.least_time import LEAST_CHARGED_S
from shoestring.space.constraints import Constraint, parse_all
from shoestring.space.space import Space, check_names, from_plain
from shoestring.specs.read_file import load_spec_file, split_sections
from shoestring.units import parse_duration_s, parse_usd, show_usd
from shoestring.values import as_fractions, as_value, as_values, as_whole, did_you_mean
from shoestring.worker.placeholders import PATHS, PROVIDED, read_command, written_placeholders

__all__ = ["check_affordable", "default_trials", "kind_of", "load_spec_file", "make_spec", "split_sections"]

DEFAULT_TRIALS = 64
MOST_JOBS = 1_000_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
"""Runs are folders on disk, so their names are plain."""


def make_spec(fields: Mapping[str, object], *, source: str = "tune()", needs_code: bool = True) -> RunSpec:
    """The spec of these fields. Errors start with `source`, the call or the file they come from.

    A field that is None counts as not given. A simulation does not need code: its jobs' behaviour is modelled.
    """
    present = {field: value for field, value in fields.items() if value is not None}
    try:
        _refuse_unknown(present)
        return _spec(present, needs_code)
    except SpecError as error:
        raise SpecError(f"{source}: {error}", hint=error.hint) from None


def kind_of(fields: Mapping[str, object]) -> str:
    """Study or bag, where `kind` is not given: fields that list jobs and have no search space are a bag."""
    return "bag" if "over" in fields or ("table" in fields and "space" not in fields) else "study"


def check_affordable(spec: RunSpec, cheapest: tuple[Offer, float] | None) -> None:
    """Can the budget pay for anything? `cheapest` is the offer with the lowest price now, in dollars an hour."""
    if cheapest is None or cheapest[1] <= 0:
        return
    offer, usd_per_hour = cheapest
    least_usd = usd_per_hour * LEAST_CHARGED_S / 3600
    price = f"{offer}, {show_usd(usd_per_hour)}/h"
    if spec.budget_usd == 0:
        raise SpecError(
            f"the machines allowed cost money (the cheapest: {price}), and no budget is given",
            hint="give --budget, for example --budget 20, or run on this machine free of charge: --on local",
        )
    if spec.budget_usd < least_usd:
        raise SpecError(
            f"budget {show_usd(spec.budget_usd)} cannot pay the first minute of the cheapest machine allowed "
            f"({price}, at least {LEAST_CHARGED_S:.0f} s are charged: {show_usd(least_usd)})",
            hint="raise --budget, allow cheaper machines, or run on this machine free of charge: --on local",
        )


def _spec(fields: dict[str, Any], needs_code: bool) -> RunSpec:
    kind = _kind(fields)
    space, given = _bag_jobs(fields) if kind == "bag" else _study_jobs(fields)
    code = _code(fields, needs_code)
    if code.command:
        _check_placeholders(code.command, space, given)
    if kind == "study" and "job_takes" in fields:
        raise SpecError(
            f"job_takes={fields['job_takes']!r} is how long a job of a bag takes, and this is a study",
            hint="leave it out; to simulate a study, give the duration of a step: --seconds-per-step",
        )
    plain: dict[str, Any] = {
        target: read(fields[field], field) for field, (target, read) in _PLAIN_FIELDS.items() if field in fields
    }
    if kind == "bag" and "max_steps" not in fields:
        plain["open_ended"] = True
    spec = RunSpec(
        name=_name(fields, code, kind),
        kind=kind,
        code=code,
        space=space,
        given=given,
        trials=_trials(fields, kind, space, given),
        listings=_listings(fields),
        **_goal(fields, kind),
        **plain,
    )
    if "wind_down_s" not in fields:
        return msgspec.structs.replace(spec, wind_down_s=min(spec.wind_down_s, 0.05 * spec.deadline_s))
    if spec.wind_down_s >= spec.deadline_s:
        raise SpecError(
            f"wind_down_s={fields['wind_down_s']!r} leaves nothing of the deadline ({spec.deadline_s:g} s)",
            hint="leave it out: the default is at most 5 % of the deadline",
        )
    return spec


def _kind(fields: dict[str, Any]) -> Literal["study", "bag"]:
    match fields.get("kind", "study"):
        case "study":
            return "study"
        case "bag":
            return "bag"
        case other:
            raise SpecError(f"kind={other!r} is unknown", hint="it is study (a search) or bag (jobs given up front)")


def _study_jobs(fields: dict[str, Any]) -> tuple[Space, tuple[Config, ...]]:
    if "over" in fields:
        raise SpecError("over lists the jobs of a bag, and this is a study", hint="use space, or kind: bag")
    space = from_plain(fields.get("space", {}))
    if not space.params:
        raise SpecError("the space is empty", hint="give at least one parameter, e.g. space={'lr': log(1e-4, 1.0)}")
    given = _given(fields)
    for index, config in enumerate(given):
        try:
            space.check(config)
        except SpecError as error:
            raise SpecError(f"given[{index}]: {error}", hint=error.hint) from None
    return space, given


def _bag_jobs(fields: dict[str, Any]) -> tuple[Space, tuple[Config, ...]]:
    if "space" in fields:
        raise SpecError("a bag has no space to search", hint="list the values in over, or use kind: study")
    if ("over" in fields) == ("given" in fields):
        raise SpecError(
            "a bag needs its jobs, in over, given or table (one of them)",
            hint="over={'seed': range(100)} makes all combinations, given=[{'seed': 1}, {'seed': 7}] just these, "
            "table='jobs.csv' those of a file",
        )
    given = _given(fields) if "given" in fields else _combinations(fields["over"])
    if not given:
        raise SpecError("given=[] is a bag without jobs", hint="give at least one configuration")
    return Space(), given


def _given(fields: dict[str, Any]) -> tuple[Config, ...]:
    plain = fields.get("given", ())
    if isinstance(plain, str | Mapping) or not isinstance(plain, Sequence):
        raise SpecError(f"given={plain!r} is not a list of configurations", hint="write it as given=[{'lr': 0.1}]")
    return tuple(_config(config, f"given[{index}]") for index, config in enumerate(plain))


def _config(plain: object, field: str) -> Config:
    if not isinstance(plain, Mapping):
        raise SpecError(f"{field}={plain!r} is not a configuration", hint="write it as {'lr': 0.1, 'width': 64}")
    check_names(plain)
    return {name: as_value(value, f"{field}.{name}") for name, value in plain.items()}


def _combinations(over: object) -> tuple[Config, ...]:
    if not isinstance(over, Mapping) or not over:
        raise SpecError(
            f"over={over!r} names no values", hint="write it as over={'temp': [280, 300], 'seed': range(9)}"
        )
    check_names(over)
    values = {name: as_values(plain, f"over.{name}") for name, plain in over.items()}
    for name, listed in values.items():
        if not listed:
            raise SpecError(f"over.{name} lists no values, so there are no jobs", hint="give at least one value")
    if math.prod(map(len, values.values())) > MOST_JOBS:
        raise SpecError(f"over makes more than {MOST_JOBS:,} jobs", hint="split it into several bags")
    return tuple(dict(zip(values, combination, strict=True)) for combination in product(*values.values()))


def default_trials(space: Space, given: Sequence[Config], fractions: Sequence[float]) -> int:
    """The default number of trials: all configurations of the space, if there are few."""
    sizes = max(1, len(fractions))  # a configuration on each fraction is a trial
    return max(len(given), int(min(DEFAULT_TRIALS, space.size * sizes)))


def _trials(fields: dict[str, Any], kind: str, space: Space, given: tuple[Config, ...]) -> int:
    if kind == "bag":
        if "trials" in fields and fields["trials"] != len(given):
            raise SpecError(f"trials={fields['trials']!r}, but the bag has {len(given)} jobs", hint="leave trials out")
        return len(given)
    if "trials" not in fields:
        return default_trials(space, given, as_fractions(fields.get("fractions", ())))
    trials = _at_least_one(fields["trials"], "trials")
    if trials < len(given):
        raise SpecError(
            f"trials={trials} is fewer than the {len(given)} configurations given", hint="raise trials or give fewer"
        )
    return trials


def _goal(fields: dict[str, Any], kind: str) -> dict[str, Any]:
    directions: list[Direction] = [field for field in ("minimize", "maximize") if field in fields]
    if len(directions) == 2:
        raise SpecError(
            "both minimize and maximize are given",
            hint="a study optimizes one metric; constrain the other, or just report it",
        )
    if not directions and kind == "study":
        raise SpecError("no metric is given", hint="give the metric to minimize or maximize, e.g. minimize='loss'")
    return {"metric": _text(fields[directions[0]], directions[0]), "direction": directions[0]} if directions else {}


def _code(fields: dict[str, Any], needed: bool) -> Code:
    if "command" in fields and "function" in fields:
        raise SpecError("both command and function are given", hint="a job runs one of them: leave the other out")
    launch = _launch(fields)
    if "command" in fields:
        return Code(command=read_command(fields["command"]), launch=launch)
    if "function" not in fields:
        if needed:
            raise SpecError(
                "there is nothing to run",
                hint="give a command ('python train.py --lr {lr}') or a function ('train.py:train')",
            )
        return Code()
    function = fields["function"]
    place, _, name = function.rpartition(":") if isinstance(function, str) else ("", "", "")
    if not place or not all(part.isidentifier() for part in name.split(".")):
        raise SpecError(
            f"function={function!r} names no function", hint="write it as train.py:train or package.module:train"
        )
    return Code(function=function)


def _launch(fields: dict[str, Any]) -> Literal["once"] | msgspec.UnsetType:
    match fields.get("launch", "each"):
        case "each":
            return msgspec.UNSET
        case "once" if "function" in fields:
            raise SpecError(
                "launch='once' is for commands that start their own processes, such as mpirun, and this is a function",
                hint="give a command, or leave launch out: the function then runs in every worker of a gang",
            )
        case "once":
            return "once"
        case other:
            raise SpecError(
                f"launch={other!r} is unknown",
                hint="it is each (a gang starts the command for every worker) or once (it starts its processes itself)",
            )


def _check_placeholders(command: tuple[str, ...], space: Space, given: tuple[Config, ...]) -> None:
    known = list(space.params) or list(dict.fromkeys(name for config in given for name in config))
    for name in PATHS:
        if name in known:
            raise SpecError(f"a command's {{{name}}} is a path, so no parameter can have this name", hint="rename it")
    for name in written_placeholders(command):
        if name in PROVIDED and name not in known:
            continue
        if name not in known:
            raise SpecError(
                f"command: {{{name}}} is not a parameter",
                hint=f"{did_you_mean(name, [*known, *PROVIDED])}; for the braces themselves write {{{{{name}}}}}",
            )
        if not space.params:
            lacking = next((index for index, config in enumerate(given) if name not in config), None)
            if lacking is not None:
                raise SpecError(f"given[{lacking}] has no {name}, which the command needs", hint="give every job one")


def _name(fields: dict[str, Any], code: Code, kind: str) -> str:
    """The name given, or one after the function or the script."""
    if "name" in fields:
        name = fields["name"]
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SpecError(
                f"name={name!r} cannot name a run",
                hint="it names a folder: up to 100 letters, digits, blanks, '.', '_' and '-', a letter or digit first",
            )
        return name
    if code.function:
        candidates = [code.function.rpartition(":")[2]]
    else:
        command = code.command or ()
        candidates = [PurePath(part).stem for part in command if PurePath(part).suffix in _SCRIPTS] + [
            PurePath(part).stem for part in command[:1]
        ]
    return next((name for name in candidates if _NAME.fullmatch(name)), kind)


def _listings(fields: dict[str, Any]) -> tuple[Listing, ...]:
    if "machines" in fields and "listings" in fields:
        raise SpecError("both machines and listings are given", hint="they mean the same: leave one out")
    field = "machines" if "machines" in fields else "listings"
    plain = fields.get(field, ())
    if isinstance(plain, str | Mapping) or not isinstance(plain, Sequence):
        raise SpecError(f"{field}={plain!r} is not a list of machines", hint="see `ss.machines(...)`")
    listings = tuple(_listing(item, f"{field}[{index}]") for index, item in enumerate(plain))
    offers: set[Offer] = set()
    for listing in listings:
        if listing.offer in offers:
            raise SpecError(f"{field}: {listing.offer} is there twice", hint="leave one of them out")
        offers.add(listing.offer)
    return listings


def _listing(plain: object, field: str) -> Listing:
    try:
        listing = plain if isinstance(plain, Listing) else msgspec.convert(plain, Listing)
    except msgspec.ValidationError as error:
        raise SpecError(f"{field}={plain!r} describes no machine: {error}", hint="see `ss.machines(...)`") from None
    if not (listing.on_demand_usd_per_hour >= 0 and math.isfinite(listing.on_demand_usd_per_hour)):
        raise SpecError(
            f"{field}: {listing.on_demand_usd_per_hour!r} dollars an hour is not a price", hint="0 is free of charge"
        )
    if listing.slots < 1:
        raise SpecError(f"{field}: a machine with {listing.slots} slots can run nothing", hint="give it 1 or more")
    return listing


def _at_least_one(plain: object, field: str) -> int:
    number = as_whole(plain, field)
    if number < 1:
        raise SpecError(f"{field}={plain!r} is too few", hint=f"{field} must be 1 or more")
    return number


def _none_or_more(plain: object, field: str) -> int:
    number = as_whole(plain, field)
    if number < 0:
        raise SpecError(f"{field}={plain!r} is negative", hint=f"{field} must be 0 or more")
    return number


def _seed(plain: object, field: str) -> int:
    number = as_whole(plain, field)
    as_value(number, field)  # what JSON carries: 64 bits
    return number


def _some_time(plain: object, field: str) -> float:
    seconds = parse_duration_s(plain, field)
    if seconds == 0:
        raise SpecError(f"{field}={plain!r} leaves no time at all", hint=f"for example {field}='6h'")
    return seconds


def _text(plain: object, field: str) -> str:
    text = as_value(plain, field) if isinstance(plain, str) else None
    if not isinstance(text, str) or not text.strip():
        raise SpecError(f"{field}={plain!r} must be one name", hint=f"for example {field}={_EXAMPLES[field]!r}")
    return text


def _constraints(plain: object, field: str) -> tuple[Constraint, ...]:
    if isinstance(plain, Mapping) or not isinstance(plain, str | Constraint | Iterable):
        raise SpecError(
            f"{field}={plain!r} is not a list of constraints", hint=f"write it as {field}=['cost <= $0.10']"
        )
    return parse_all(plain)


def _options(plain: object, field: str) -> dict[str, Any]:
    if not isinstance(plain, Mapping):
        raise SpecError(f"{field}={plain!r} names no options", hint="write it as options={'reduction': 3}")
    return {str(name): as_value(value, f"{field}.{name}") for name, value in plain.items()}


_EXAMPLES = {"minimize": "loss", "maximize": "accuracy", "recipe": "asha"}
_SCRIPTS = frozenset({".py", ".sh", ".R", ".jl", ".js", ".pl", ".rb", ".lua", ".m"})

_PLAIN_FIELDS: dict[str, tuple[str, Callable[[object, str], object]]] = {
    "max_steps": ("max_steps", _at_least_one),
    "fractions": ("fractions", as_fractions),
    "constraints": ("constraints", _constraints),
    "slots": ("slots", _at_least_one),
    "budget": ("budget_usd", parse_usd),
    "deadline": ("deadline_s", _some_time),
    "recipe": ("recipe", _text),
    "options": ("options", _options),
    "seed": ("seed", _seed),
    "max_machines": ("max_machines", _at_least_one),
    "max_failures": ("max_failures", _none_or_more),
    "time_limit": ("time_limit_s", _some_time),
    "job_takes": ("job_takes_s", _some_time),
    "slice_s": ("slice_s", _some_time),
    "wind_down_s": ("wind_down_s", parse_duration_s),
    "keep_checkpoints": ("keep_checkpoints", _at_least_one),
}
"""Fields read one by one: the user's name, the spec's name, and how to read the value."""

_CODE_FIELDS = ("command", "function", "launch")
_JOB_FIELDS = ("name", "kind", *_CODE_FIELDS, "space", "given", "over", "minimize", "maximize", "trials")
FIELDS = (*_JOB_FIELDS, *_PLAIN_FIELDS, "machines", "listings")


def _refuse_unknown(fields: Mapping[str, object]) -> None:
    unknown = [field for field in fields if field not in FIELDS]
    if unknown:
        names = ", ".join(map(str, unknown))
        raise SpecError(
            f"{names} {'is' if len(unknown) == 1 else 'are'} unknown",
            hint="; ".join(f"{field}: {did_you_mean(field, FIELDS)}" for field in unknown),
        )
