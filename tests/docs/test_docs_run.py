"""The documentation does what it says: programs run, commands end and print as shown, links lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import DOCUMENTS, ROOT, anchors, blocks, links
from tests.docs.running import matches, run
from tests.docs.warm import Warm


def runnable(document: Path) -> bool:
    return any(block.language in ("python", "console") for block in blocks(document))


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    processes = Warm()
    yield processes
    processes.close()


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if runnable(path)], ids=name)
def test_what_is_shown_is_what_happens(document: Path, tmp_path: Path, warm: Warm) -> None:
    cold = document == ROOT / "README.md"  # what people type first is started as they start it
    for done in run(document, tmp_path, None if cold else warm):
        what = f"{name(document)}, line {done.block.at}: {'the block' if done.command is None else done.command.line}"
        printed = "\n".join(done.printed)
        assert done.exit_code == done.expected_code, f"{what} ended with {done.exit_code}:\n{printed}"
        if done.command is not None and not done.block.varies:
            assert matches(done.command.output, done.printed), (
                f"{what} printed something else (python -m tests.docs.refresh writes it down):\n{printed}"
            )


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for link in links(document):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        place, _, anchor = link.partition("#")
        target = (document.parent / place).resolve() if place else document
        assert target.exists(), f"{name(document)} links to {link}, which is not there"
        if anchor:
            assert anchor in anchors(target), f"{name(document)} links to {link}: no such heading"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_documents_are_reachable_from_the_readme(document: Path) -> None:
    found, ahead = set(), [ROOT / "README.md"]
    while ahead:
        here = ahead.pop()
        if here in found or here.suffix != ".md" or not here.exists():
            continue
        found.add(here)
        ahead += [(here.parent / link.partition("#")[0]).resolve() for link in links(here) if "://" not in link]
    assert document in found
