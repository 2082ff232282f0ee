"""Which file systems may be shared with other computers, by the list of mounts."""

from pathlib import Path

import pytest

from shoestring.storage import file_system
from shoestring.storage.file_system import FileSystem, file_system_of
from tests.mounts import mount_list


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "9p",
        "virtiofs",
        "gfs2",
        "fuse",
        "fuse.sshfs",
        "fuse.glusterfs",
        "never-heard-of",
    ],
)
def test_network_cluster_and_unknown_file_systems_count_as_shared(kind):
    assert FileSystem(kind).is_shared


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "vfat"])
def test_disks_memory_and_layers_over_them_are_local(kind):
    assert not FileSystem(kind).is_shared


def test_the_nearest_mount_counts_also_for_what_does_not_exist_yet(tmp_path, monkeypatch):
    mount_list(monkeypatch, tmp_path, "/home nfs4 rw", "/home/me/scratch xfs rw", "/home/me/scratch/deep ceph rw")
    assert file_system_of(Path("/home/me/runs/a")).kind == "nfs4"
    assert file_system_of(Path("/home/me/scratch/runs")).kind == "xfs"
    assert file_system_of(Path("/home/me/scratch/deep")).kind == "ceph"
    assert file_system_of(Path("/home/me/scratchy")).kind == "nfs4"
    assert file_system_of(Path("/homes")).kind == "ext4"


def test_a_later_mount_hides_an_earlier_one_at_the_same_point(tmp_path, monkeypatch):
    mount_list(monkeypatch, tmp_path, "/data autofs rw", "/data nfs rw")
    assert file_system_of(Path("/data/run")).kind == "nfs"


def test_blanks_in_the_names_of_mounts(tmp_path, monkeypatch):
    mount_list(monkeypatch, tmp_path, r"/my\040data cifs rw")
    assert file_system_of(Path("/my data/run")).kind == "cifs"


def test_links_are_followed(tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to("/net/far")
    mount_list(monkeypatch, tmp_path, "/net nfs4 rw")
    assert file_system_of(tmp_path / "link" / "run").kind == "nfs4"


@pytest.mark.parametrize(
    ("options", "local"),
    [
        ("rw,vers=4.2,local_lock=none", ""),
        ("rw,flock", ""),
        ("rw,vers=3,local_lock=all", "local_lock=all"),
        ("rw,nolock,vers=3", "nolock"),
        ("rw,localflock", "localflock"),
        ("rw,nobrl", "nobrl"),
    ],
)
def test_mount_options_that_keep_locks_on_this_computer(tmp_path, monkeypatch, options, local):
    mount_list(monkeypatch, tmp_path, f"/data nfs {options}")
    assert file_system_of(Path("/data/run")).local_locks == local


def test_without_a_list_of_mounts_a_folder_counts_as_local(tmp_path, monkeypatch):
    monkeypatch.setattr(file_system, "MOUNTS", tmp_path / "none")
    assert not file_system_of(tmp_path).is_shared


@pytest.mark.skipif(not file_system.MOUNTS.exists(), reason="this system has no list of mounts")
def test_the_list_of_this_computer():
    assert file_system_of(Path("/proc/self")).kind == "proc"
