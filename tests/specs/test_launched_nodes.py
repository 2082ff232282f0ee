"""Node types that are launched: what a user must say of them, and where they can be launched."""

import sys

import pytest

from shoestring.backends.registry import Nodes, find_place
from shoestring.errors import SpecError
from shoestring.specs.own_nodes import on_cluster, read_nodes

LAUNCHED = {
    "label": "spot-c2",
    "machine": "c2-standard-8",
    "spot": True,
    "usd_per_hour": 0.1,
    "count": 3,
    "launch": "sh launch.sh",
    "end": "sh end.sh",
}
RAY = find_place("ray:10.0.0.1:6379")


def one(**changes):
    fields = {name: value for name, value in (LAUNCHED | changes).items() if value is not None}
    return read_nodes([fields])[0]


def test_a_type_of_the_catalogue_has_its_size_before_any_node_is_there():
    node = one()
    assert (node.slots, node.vcpus, node.count) == (8, 8.0, 3)
    assert node.launch[1:] == ("launch.sh",)
    assert on_cluster([node], RAY, Nodes(0, 1, can_launch=True)) == (node,)
    assert (one(slots=2).slots, one(slots=2).vcpus) == (2, 8.0)


def test_the_path_of_a_launcher_begins_where_the_file_is(tmp_path):
    script = tmp_path / "node.sh"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(SpecError, match=f"launch: there is no program {script}") as caught:
        read_nodes([LAUNCHED | {"launch": "./node.sh up"}], tmp_path)
    assert "chmod +x" in caught.value.hint
    script.chmod(0o755)
    [node] = read_nodes([LAUNCHED | {"launch": "./node.sh up", "end": [sys.executable, "end.py"]}], tmp_path)
    assert (node.launch, node.end) == ((str(script), "up"), (sys.executable, "end.py"))


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"end": None}, "has launch and no end", "give both"),
        ({"launch": None}, "has end and no launch", "give both"),
        ({"count": None}, "nothing says how many nodes may be launched", "count: the most at a time"),
        ({"machine": "home-made"}, "nothing says how large a node is, and 'home-made' is not", "give slots"),
        ({"launch": "no-such-program --up"}, "launch: there is no program no-such-program", "executable"),
        ({"launch": ""}, "launch='' is not a command", "for example launch: ./launch.sh"),
        ({"launch": 7}, "launch: there is no program 7", "executable"),
        ({"launch": '"un closed'}, "launch='\"un closed' is not a command", "for example launch: ./launch.sh"),
    ],
)
def test_what_is_missing_is_named_with_the_way_out(changes, message, hint):
    with pytest.raises(SpecError) as caught:
        one(**changes)
    assert message in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize("place", ["local", "slurm", "ray"])
def test_nodes_are_launched_for_an_existing_ray_cluster_only(place):
    cluster = Nodes(4, 2, {"spot-c2": Nodes(4, 2)}) if place == "slurm" else None
    with pytest.raises(SpecError, match=f"no nodes can be added to {place}") as caught:
        on_cluster([one()], find_place(place), cluster)
    assert "ray:ADDRESS" in caught.value.hint


def test_types_that_are_not_launched_need_nodes_with_their_label():
    steady = one(label="steady", zone="b", launch=None, end=None, count=None)
    with pytest.raises(SpecError, match="no nodes with the label 'steady'") as caught:
        on_cluster([steady, one()], RAY, Nodes(0, 1, can_launch=True))
    assert "ray start --resources" in caught.value.hint
    found = on_cluster([steady, one()], RAY, Nodes(5, 2, {"steady": Nodes(4, 2)}, can_launch=True))
    assert [(node.count, node.slots) for node in found] == [(4, 2), (3, 8)]


def test_the_nodes_of_a_cluster_without_labels_are_all_of_the_one_type():
    node = one(launch=None, end=None, count=None)
    [found] = on_cluster([node], RAY, Nodes(5, 2, can_launch=True))
    assert (found.count, found.is_any) == (5, True)
    with pytest.raises(SpecError, match="cannot be told apart") as caught:
        on_cluster([node, one(label="other", zone="b", launch=None, end=None)], RAY, Nodes(5, 2, can_launch=True))
    assert "ray start --resources" in caught.value.hint
