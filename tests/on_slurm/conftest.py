"""One Slurm of our own for all tests that need one, in SLURM_CONF; and MPI, for those that need that."""

import os
from pathlib import Path

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


@pytest.fixture(scope="session")
def mpi(tmp_path_factory):
    """The environment of MPI programs: Debian's MPICH, under the name by which mpi4py from PyPI looks for it."""
    from tests.on_slurm.small_cluster import install

    pytest.importorskip("mpi4py")
    install(("mpirun.mpich",), ("mpich", "libpmi2-0"), "MPICH")
    folder = tmp_path_factory.mktemp("mpi")
    library = next(Path("/usr/lib").glob("*/libmpich.so.12"))
    (folder / "libmpi.so.12").symlink_to(library)
    return {"LD_LIBRARY_PATH": str(folder)}
