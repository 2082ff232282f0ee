"""Property tests draw the same examples every time, so that a run that fails fails again, here and elsewhere.

To look for new ones: pytest --hypothesis-profile=wild
"""

from __future__ import annotations

import gc
import os
import sys

import pytest

# Before numpy is loaded, here and in the processes that tests start. Matrices are small: a second thread would only
# wait for the first, on a core that another test needs.
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# Tests start hundreds of Python processes. Without bytecode on disk each of them would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from hypothesis import settings  # noqa: E402 - what is loaded from here on leaves bytecode

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("wild", deadline=None)
settings.load_profile("steady")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules and tests stay to the end. Out of the collector's sight they are not looked through again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # what tests leave is small; Hypothesis is called at every collection
