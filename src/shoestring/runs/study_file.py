"""Running a file that describes a study: a Python script that calls tune() or run_bag(), or a YAML or TOML spec."""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from shoestring.errors import ShoestringError, SpecError
from shoestring.report.study import Study
from shoestring.runs.cli_context import CliContext, cli_context
from shoestring.runs.launch import begin
from shoestring.specs.build import kind_of
from shoestring.specs.read_file import load_spec_file, split_sections
from shoestring.worker.loading import describe

SPEC_FILES = (".yaml", ".yml", ".toml")


def run_file(path: Path, context: CliContext) -> list[Study]:
    """Run the file with the overrides of the command line; returns its studies."""
    if not path.is_file():
        raise SpecError(f"there is no file {path}", hint=f"looked in {Path.cwd()}")
    with cli_context(replace(context, loading_since=time.monotonic())):
        if path.suffix == ".py":
            _run_script(path)
        elif path.suffix.lower() in SPEC_FILES:
            _run_spec(path)
        else:
            raise SpecError(
                f"{path} is not a study file", hint="give a .py file that calls tune(), or a .yaml or .toml spec"
            )
    if not context.studies:
        raise SpecError(f"{path} starts no study", hint="call shoestring.tune(...) or shoestring.run_bag(...) in it")
    return context.studies


def _run_script(path: Path) -> None:
    argv, sys.argv = sys.argv, [str(path)]
    sys.path.insert(0, str(path.parent.resolve()))  # as `python path` does: what lies beside it can be imported
    try:
        runpy.run_path(str(path), run_name="__main__")
    except ShoestringError:
        raise
    except SystemExit as exit_:
        if exit_.code:
            raise SpecError(f"{path} exited with {exit_.code!r}", hint=f"try it alone: python {path}") from exit_
    except Exception as error:
        raise SpecError(f"{path} failed: {describe(error)}", hint=f"python {path} shows the whole traceback") from error
    finally:
        sys.argv = argv
        sys.path.pop(0)


def _run_spec(path: Path) -> None:
    fields, sections = split_sections(load_spec_file(path))
    folder = path.parent.resolve()
    market = sections.get("market")
    if isinstance(market, Mapping) and isinstance(prices := market.get("prices"), str):
        sections["market"] = {**market, "prices": os.path.join(folder, prices)}
    kind = str(fields.pop("kind", kind_of(fields)))
    begin(None, {"name": path.stem, **fields, **sections}, kind=kind, source=str(path), folder=folder)
