"""Recipes are found by name and imported on first use, ours and those of installed packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from shoestring import recipes
from shoestring.errors import SpecError
from shoestring.optimizer.optimizer import Optimizer
from shoestring.policies.search.run_to_completion import RandomSearch
from shoestring.testing.story import SPEC
from tests.cli.prompt import Prompt
from tests.imports import loaded_after

REFERENCES = {"trimtuner_gp_as_printed", "trimtuner_dt_as_printed", "seer_as_printed", "spottune_as_printed"}


def recipe_modules(loaded: set[str]) -> set[str]:
    found = {name.removeprefix("shoestring.recipes.") for name in loaded if name.startswith("shoestring.recipes.")}
    return {name for name in found if "." not in name} - {"lazy_table", "options"}


def test_importing_recipes_imports_no_recipe() -> None:
    loaded = loaded_after("import shoestring.recipes")
    assert recipe_modules(loaded) == set()
    assert not {name for name in loaded if name.startswith("shoestring.policies.")}


def test_building_one_imports_its_module_its_placement_and_no_other() -> None:
    code = """
from shoestring import recipes
from shoestring.testing.story import SPEC
from msgspec.structs import replace
recipes.build(replace(SPEC, recipe="asha", options={"placement": "cheapest"}))
"""
    loaded = loaded_after(code)
    assert recipe_modules(loaded) == {"classic"}
    placements = "shoestring.policies.placement."
    assert f"{placements}cheapest" in loaded
    for other in ("slack.policy", "cheapest_step", "spottune.as_printed"):
        assert f"{placements}{other}" not in loaded
    assert "shoestring.policies.checkpointing.young_daly" not in loaded
    assert "shoestring.policies.search.samplers.model_based" not in loaded
    assert not loaded & {"numpy", "scipy", "importlib.metadata"}


# -- another package, installed ----------------------------------------------------------------------------------------
TOSSING = '''
from shoestring.policies.search.run_to_completion import RandomSearch


def toss(spec):
    """Tosses a coin."""
    return [RandomSearch()]
'''


@pytest.fixture
def tossing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a recipe, as pip leaves it on the path."""
    (tmp_path / "tossing.py").write_text(TOSSING)
    about = tmp_path / "tossing-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tossing\nVersion: 1.0\n")
    names = ("toss", "asha", "toss_as_printed")
    lines = [f"[{recipes.GROUP}]", *(f"{name} = tossing:toss" for name in names)]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("tossing")
def test_an_installed_package_adds_recipes_that_never_hide_ours() -> None:
    assert recipes.build(replace(SPEC, recipe="toss")) == [RandomSearch()]
    assert len(recipes.build(replace(SPEC, recipe="asha"))) > 1
    described = [recipe for recipe in recipes.describe() if recipe.name in ("asha", "toss", "toss_as_printed")]
    assert [(recipe.name, recipe.reference) for recipe in described] == [
        ("asha", False),
        ("toss", False),
        ("toss_as_printed", True),
    ]
    with pytest.raises(SpecError) as caught:
        recipes.build(replace(SPEC, recipe="tos"))
    assert caught.value.hint == "did you mean toss?"


# -- reference implementations -----------------------------------------------------------------------------------------
def test_reference_implementations_are_marked_and_can_be_built() -> None:
    assert {recipe.name for recipe in recipes.describe() if recipe.reference} == REFERENCES
    assert recipes.build(replace(SPEC, recipe="seer_as_printed"))


@pytest.mark.parametrize("name", ["seer_as_print", "as_printed", "magic", "spottune_as_printd"])
def test_no_hint_for_a_recipe_suggests_one(name: str) -> None:
    with pytest.raises(SpecError) as caught:
        recipes.build(replace(SPEC, recipe=name))
    assert "printed" not in caught.value.hint


def test_no_hint_for_a_placement_or_a_method_suggests_one() -> None:
    unused: dict[str, str] = {"placement": "slack", "revocations": "frequency"}
    for options in ({"placement": "spottune_as"}, {"placement": "?"}, unused):
        with pytest.raises(SpecError) as caught:
            recipes.build(replace(SPEC, recipe="asha", options=options))
        assert caught.value.hint
        assert "printed" not in caught.value.hint
    with pytest.raises(SpecError) as caught:
        Optimizer([{"x": 1}], minimize="loss", method="trimtuner_gp_as")
    assert "trimtuner_gp" in caught.value.hint
    assert "printed" not in caught.value.hint


def test_the_command_lists_them_apart(tmp_path: Path) -> None:
    lines = Prompt(tmp_path)("recipes").output.splitlines()
    title = lines.index("reference implementations of papers, for comparison")
    listed = [line.split(maxsplit=1)[0] if line else "" for line in lines]
    assert {"asha", "seer", "spottune"} <= set(listed[: title - 1])
    assert set(listed[title + 1 :]) == REFERENCES
