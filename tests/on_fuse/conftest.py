"""One folder seen through two mounts, in both kinds; unmounted at the end of each test."""

import pytest


@pytest.fixture(scope="session")
def _bindfs():
    from tests.on_fuse.two_mounts import install

    install()


@pytest.fixture(params=["uncached, with locks", "cached, without locks"])
def mounts(request, tmp_path, _bindfs):
    from tests.on_fuse.two_mounts import CACHED, UNCACHED, TwoMounts

    mounts = TwoMounts(tmp_path, UNCACHED if request.param == "uncached, with locks" else CACHED)
    mounts.locks_are_seen = request.param == "uncached, with locks"
    yield mounts
    mounts.end()
