"""A short form of `python -m tests.on_slurm.spot_bag`."""

import pytest

from benchmarks.datasets import data_folder
from tests.on_slurm import accounts, small_cluster
from tests.on_slurm.spot_bag import play

pytestmark = pytest.mark.heavy


def test_a_bag_on_spot_nodes_is_right_and_billed_as_slurm_accounts_for_it(tmp_path):
    if not (data_folder() / "google_preemptible_2019.csv.gz").exists():
        pytest.skip(f"no recorded lifetimes in {data_folder()}; set SHOESTRING_DATA to the folder that has them")
    small_cluster.install()
    small_cluster.install(accounts.PROGRAMS, accounts.PACKAGES)
    lines = play(tmp_path, jobs=24, kills=2, seed=3)
    assert sum(" nodes killed" in line and not line.startswith("0 ") for line in lines) >= 1, lines
