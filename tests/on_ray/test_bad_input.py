"""Errors of `--on ray`, one sentence each."""

import json
import subprocess
import sys
import textwrap
from importlib.util import find_spec

import pytest

import shoestring as ss
from shoestring.errors import MissingExtra, PermanentError, SpecError
from shoestring.worker.ranks import free_port

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra `ray`")


def tune(on, tmp_path):
    return ss.tune(train, space={"x": ss.uniform(0, 1)}, minimize="loss", trials=1, on=on, store=tmp_path)


def train(trial):
    trial.report(loss=trial["x"])


@pytest.mark.parametrize("place", ["ray:", "ray:10.0.0.1", "ray://10.0.0.1:10001", "ray:here:there"])
def test_an_invalid_address_is_refused(place, tmp_path):
    with pytest.raises(SpecError, match="names no Ray cluster") as caught:
        tune(place, tmp_path)
    assert "ray:10.0.0.1:6379" in caught.value.hint


def test_a_misspelt_place_is_refused(tmp_path):
    with pytest.raises(SpecError, match="on='rya' is unknown") as caught:
        tune("rya", tmp_path)
    assert "ray" in caught.value.hint


def test_ray_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match="'ray', which is not installed") as caught:
        tune("ray", tmp_path)
    assert caught.value.hint == "pip install 'shoestring[ray]'"


@needs_ray
def test_no_cluster_answers(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(PermanentError, match=f"no Ray cluster answers at {address} \\(Connection refused\\)") as caught:
        tune(f"ray:{address}", tmp_path)
    assert "address of its head" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


OTHER_VERSIONS = """
    import json, sys
    from ray._raylet import GcsClient
    from ray._common.usage import usage_constants
    from ray._private import ray_constants

    client = GcsClient(address=sys.argv[1])
    key, space = usage_constants.CLUSTER_METADATA_KEY, ray_constants.KV_NAMESPACE_CLUSTER
    known = json.loads(client.internal_kv_get(key, space))
    client.internal_kv_put(key, json.dumps({**known, **json.loads(sys.argv[2])}).encode(), True, space)
"""


@needs_ray
@pytest.mark.heavy
def test_a_cluster_with_other_versions_is_refused(tmp_path, tmp_path_factory):
    from tests.on_ray.at_work import SmallCluster

    cluster = SmallCluster(tmp_path_factory.mktemp("cluster"), nodes=0)
    try:
        with pytest.raises(PermanentError, match="has no node with a CPU or a GPU"):
            tune(f"ray:{cluster.address}", tmp_path)
        older = json.dumps({"ray_version": "2.9.3", "python_version": "3.9.1"})
        subprocess.run([sys.executable, "-c", textwrap.dedent(OTHER_VERSIONS), cluster.address, older], check=True)
        with pytest.raises(PermanentError, match="and here differ") as caught:
            tune(f"ray:{cluster.address}", tmp_path)
        assert "Ray: 2.9.3 Python: 3.9.1" in str(caught.value)
        assert "same versions" in caught.value.hint
    finally:
        cluster.end()
    assert list(tmp_path.iterdir()) == []
