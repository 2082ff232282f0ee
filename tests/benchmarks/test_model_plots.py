"""The pictures of the model benchmarks are drawn from what was measured, whatever part of it there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import earlycurve, earlycurve_plot, revpred, revpred_plot
from benchmarks import earlycurve_network as network
from benchmarks.earlycurve_groups import Group
from benchmarks.plotting import check_plot
from shoestring.models.revocation.scores import scores

pytest.importorskip("matplotlib")


def curves(source: str) -> Group:
    steps = np.arange(1, 31)
    return Group(source, "minimize", np.stack([level + 1 / steps for level in (0.3, 0.1, 0.2)]), ((),) * 3)


@pytest.mark.parametrize("sources", [(), ("made up",), ("one", "another")])
def test_curves_are_drawn_with_what_was_foretold(tmp_path: Path, sources: tuple[str, ...]) -> None:
    groups = [curves(source) for source in sources]
    found = earlycurve.predictions(groups, (0.5, 0.7)) if groups else {}
    falling = [network.Curve((0.8, 8, 24, 0.0), [1 / step for step in range(1, network.STEPS + 1)])]
    earlycurve_plot.draw(found, groups, falling, 0.7, tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text()
    assert drawn.startswith("<?xml")
    assert drawn.count('id="axes_') == 6


def test_predictors_are_drawn_without_networks_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    revoked = rng.random(200) < 0.2
    cells = [
        revpred.Cell("busy", window, manner, model, scores(rng.random(200), revoked), 1.0, 1.0)
        for window in (0, 1)
        for manner in ("absolute", "on_demand")
        for model in ("trees", "prior")
    ]
    revpred_plot.draw(cells, tmp_path / "predictors.svg")
    assert (tmp_path / "predictors.svg").read_text().startswith("<?xml")


def test_what_cannot_be_drawn_is_said_before_anything_is_measured() -> None:
    check_plot(None)
    check_plot(Path("fine.png"))
    with pytest.raises(SystemExit, match=r"ends in \.png, \.svg or \.pdf"):
        check_plot(Path("picture.doc"))
