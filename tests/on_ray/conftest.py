"""One existing cluster for all tests that need one: it starts slowly."""

import pytest


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    from tests.on_ray.at_work import SmallCluster

    cluster = SmallCluster(tmp_path_factory.mktemp("cluster"), nodes=2)
    yield cluster
    cluster.end()
