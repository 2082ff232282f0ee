"""One Slurm of our own for all tests that need one, in SLURM_CONF."""

import os

import pytest


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    from tests.on_slurm.small_cluster import SmallCluster, install

    install()
    cluster = SmallCluster(tmp_path_factory.mktemp("slurm"))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(cluster.conf)
    yield cluster
    if before is None:
        del os.environ["SLURM_CONF"]
    else:
        os.environ["SLURM_CONF"] = before
    cluster.end()
