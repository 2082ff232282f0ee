"""Reading a spec file: YAML or TOML in, plain fields out. `specs.build` interprets the fields."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoestring.errors import SpecError, need

SECTIONS = ("simulate", "market")
"""Sections of a file that describe the environment of a run, not the run."""

_CORE_SCHEMA = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
    ("merge", r"<<", ["<"]),
)
"""What unquoted YAML means, by version 1.2 of its standard: the same as in TOML and Python. Version 1.1, which PyYAML
follows, takes 1e-4 for text, `no` and `off` for False, 1:30:00 for 5400 and 2024-01-01 for a date."""


def split_sections(fields: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The fields of the spec, and the sections of the market and the simulator."""
    spec = {field: value for field, value in fields.items() if field not in SECTIONS}
    return spec, {section: fields[section] for section in SECTIONS if section in fields}


def load_spec_file(path: str | os.PathLike[str]) -> dict[str, object]:
    """The fields of a .yaml, .yml or .toml file."""
    file = Path(path)
    read = {".yaml": _read_yaml, ".yml": _read_yaml, ".toml": _read_toml}.get(file.suffix.lower())
    if read is None:
        raise SpecError(f"{file} is not a spec file", hint="its name must end in .yaml, .yml or .toml")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"there is no file {file}", hint=f"looked in {Path.cwd()}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{file} is not text: byte {error.start} is not UTF-8", hint="save it as UTF-8") from None
    except OSError as error:
        raise SpecError(f"{file} cannot be read: {error.strerror}", hint="check its permissions") from None
    try:
        fields = read(text, file)
    except RecursionError:
        raise SpecError(f"{file} is nested too deeply", hint="a spec has two or three levels") from None
    if not isinstance(fields, dict) or not all(isinstance(field, str) for field in fields):
        found = "is empty" if fields is None else f"holds {type(fields).__name__} {str(fields)[:40]!r}"
        raise SpecError(f"{file} {found}, not named fields", hint="start with a line such as: minimize: loss")
    return fields


def _read_toml(text: str, file: Path) -> object:
    try:
        import tomllib

        return tomllib.loads(text)
    except ValueError as error:  # the message says the line
        raise SpecError(f"{file} is not TOML: {error}", hint="text needs quotes in TOML: deadline = '6h'") from None


def _read_yaml(text: str, file: Path) -> object:
    yaml: Any = need("yaml", extra="yaml")

    class SpecLoader(yaml.SafeLoader):  # type: ignore[misc]  # found at run time
        """Plain data only, unquoted text by the core schema, and no duplicate fields."""

        yaml_implicit_resolvers: dict[str, Any] = {}

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                if isinstance(key.value, str) and key.value != "<<":
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"the field {key.value!r} is given twice", key.start_mark
                        )
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

    for tag, pattern, starts in _CORE_SCHEMA:
        SpecLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"), starts)
    try:
        return yaml.load(text, SpecLoader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise SpecError(f"{file}{line} is not YAML: {error.problem}", hint="check quotes, colons and indents") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError) as error:  # raised for unknown tags and odd characters
        reason = " ".join(str(error).split())
        raise SpecError(f"{file} is not YAML: {reason}", hint="check quotes, colons and indents") from None
