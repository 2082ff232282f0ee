"""The reference pages leave nothing out: every command and option, every field, every environment variable."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import shoestring
from shoestring import recipes
from shoestring.cli.main import COMMANDS, HELP, cli
from shoestring.specs import build as specfile
from shoestring.specs import market as markets
from tests.docs.markdown import DOCUMENTS, ROOT, blocks


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_described(name: str) -> None:
    text = page("cli.md")
    assert f"\n## {name}\n" in text
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    shown = [param for param in command.params if not getattr(param, "hidden", False)]  # hidden: former names
    options = {flag for param in shown for flag in param.opts if flag.startswith("--")}
    missing = {flag for flag in options if f"`{flag}" not in text and f" {flag} " not in text and flag != "--output"}
    assert not missing, f"docs/cli.md says nothing of {', '.join(sorted(missing))}"


def test_exit_codes_are_those_the_program_tells() -> None:
    told = re.findall(r"^ +(\d+)  ", HELP, flags=re.MULTILINE)
    assert re.findall(r"^\| (\d+) \|", page("cli.md"), flags=re.MULTILINE) == told


def test_every_field_of_a_spec_is_described() -> None:
    missing = [field for field in specfile.FIELDS if f"`{field}`" not in page("spec.md") and field != "listings"]
    assert not missing


def test_what_counts_against_max_machines_is_described() -> None:
    (row,) = [line for line in page("spec.md").splitlines() if line.startswith("| `max_machines` |")]
    assert "preemption notice" in row
    assert "no longer counts" in row


def test_every_recipe_is_described() -> None:
    assert not [recipe.name for recipe in recipes.describe() if f"`{recipe.name}`" not in page("spec.md")]


def test_every_option_of_a_market_is_described() -> None:
    options = {*markets._OPTIONS, *(knob for knobs in markets._KNOBS.values() for knob in knobs)}
    assert not [name for name in options if f"`{name}`" not in page("market.md")]


def test_every_environment_variable_is_described() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(shoestring.__file__).parent.rglob("*.py"))
    names = {name.rstrip("_") for name in re.findall(r"\bSHOESTRING_[A-Z_]+", source)}
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    assert not [name for name in names if name not in text]


def test_every_module_is_in_the_tree() -> None:
    package = Path(shoestring.__file__).parent
    names = {path.name for path in package.glob("*.py")} | {f"{path.parent.name}/" for path in package.glob("*/*.py")}
    tree = next(block.text for block in blocks(ROOT / "docs" / "architecture.md") if "src/shoestring/" in block.text)
    assert names - {"__init__.py"} == set(re.findall(r"(?<![\w/])\w+(?:\.py|/)(?=\s)", tree)) - {"shoestring/"}


def test_every_public_name_appears() -> None:
    text = "".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    exempt = {"Bag", "Study", "Receipt"}  # what calls return; nobody writes these names
    assert not [name for name in shoestring.__all__ if f"ss.{name}" not in text and name not in exempt]
