"""Every equation of a paper has one home in the code, and docs/papers.md tells where, and which test holds it."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.architecture.source import dotted, modules, tree

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "papers.md"

_TAG = re.compile(r"\bPaper: (?P<paper>[A-Z]\w+) (?P<rule>[^\n]+?)\.?(?=\n|$|  )")
_ROW = re.compile(r"\| (?P<paper>\w+) \| (?P<rule>[^|]+) \| `(?P<home>[\w.]+)` \| (?P<tests>[^|]+) \|")
_TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<name>[\w:]+)`")

Rule = tuple[str, str]
"""Paper, and the equation, algorithm line or section in it."""


def rules_in(source: ast.Module, module: str) -> list[tuple[Rule, str]]:
    """Each rule that a docstring of this source says it holds, with the dotted name of what holds it."""
    found: list[tuple[Rule, str]] = []

    def walk(node: ast.AST, name: str) -> None:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for tag in _TAG.finditer(ast.get_docstring(node) or ""):
                found.append(((tag["paper"], tag["rule"].strip()), name))
        for child in ast.iter_child_nodes(node):
            walk(child, f"{name}.{child.name}" if hasattr(child, "name") else name)

    walk(source, module)
    return found


@cache
def homes() -> dict[Rule, list[str]]:
    """Where the docstrings of the package say that each rule lives."""
    found: dict[Rule, list[str]] = defaultdict(list)
    for path in modules():
        for rule, home in rules_in(tree(path), dotted(path).removesuffix(".__init__")):
            found[rule].append(home)
    return dict(found)


def rows() -> list[re.Match[str]]:
    return list(_ROW.finditer(TABLE.read_text(encoding="utf-8")))


def test_docstrings_are_read_at_every_level() -> None:
    source = '''"""A module.  Paper: SpotTune section III."""
class A:
    def f(self):
        """Chance.  Paper: SciSpot Eq. 1.

        Differs from the paper: clipped.
        """
'''
    assert rules_in(ast.parse(source), "m") == [(("SpotTune", "section III"), "m"), (("SciSpot", "Eq. 1"), "m.A.f")]


def test_every_rule_has_one_home() -> None:
    found = homes()
    assert found, "no docstring has a line `Paper: ...` any more"
    for rule, places in found.items():
        assert len(places) == 1, f"{' '.join(rule)} has {len(places)} homes: {', '.join(places)}"


def test_the_table_is_the_one_in_the_docstrings() -> None:
    told = {(row["paper"], row["rule"].strip()): row["home"] for row in rows()}
    assert len(told) == len(rows()), f"{TABLE.name} tells of a rule twice"
    assert told == {rule: places[0] for rule, places in homes().items()}, f"{TABLE} is stale"


@cache
def names_in(path: Path) -> frozenset[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef))


def test_every_rule_names_tests_that_exist() -> None:
    for row in rows():
        named = list(_TEST.finditer(row["tests"]))
        assert named, f"{row['paper']} {row['rule']} names no test: write `path/test_x.py::test_name`"
        for test in named:
            path = ROOT / test["file"]
            assert path.is_file(), f"{row['paper']} {row['rule']} names {test['file']}, which is not there"
            for part in test["name"].split("::"):
                assert part in names_in(path), f"{test['file']} has no {part}, which {TABLE.name} names"
