"""SciSpot: a bag of jobs on machines that live for a while, by what is known of their lives."""

from __future__ import annotations

from collections.abc import Sequence

from shoestring.checkpointing.retention import Retention
from shoestring.housekeeping.closing import Closing
from shoestring.housekeeping.renewal import Renewal
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.placement.scispot import SciSpot
from shoestring.recipes.lifetimes import known_lives
from shoestring.recipes.options import Options
from shoestring.recipes.saving import saving
from shoestring.search.given import Given
from shoestring.search.random import RandomSearch


def scispot(spec: RunSpec) -> Sequence[Policy]:
    """A bag of jobs: machines chosen, used again, kept and left by how long they live; saves likewise (lifetimes)."""
    options = Options(spec)
    lives = known_lives(options)
    saves = saving(options, "programme", lives)
    options.finish()
    search: Policy = Given() if spec.given else RandomSearch()
    return (search, SciSpot(lives), *saves, Renewal(), Closing(), Retention())
