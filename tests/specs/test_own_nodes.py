"""Node types of the user's own: what is read, what the catalogue and the cluster add, and what is refused."""

import pytest

from shoestring.backends.registry import Nodes, find_place
from shoestring.errors import SpecError
from shoestring.specs.market import make_market
from shoestring.specs.own_nodes import on_cluster, read_nodes

SPOT = {"label": "spot-c2", "machine": "c2-standard-8", "spot": True, "usd_per_hour": 0.08}
CLUSTER = Nodes(6, 4, {"spot-c2": Nodes(4, 8), "steady": Nodes(2, 4)})


def read(**fields):
    (node,) = read_nodes([fields])
    return node


def test_the_catalogue_knows_a_machine_by_its_name():
    node = read(**SPOT)
    assert (node.provider, node.memory_gb, node.billing) == ("gcp", 32.0, "gcp_preemptible")
    assert node.list_usd_per_hour > node.usd_per_hour == 0.08


def test_a_machine_of_ones_own_needs_a_label_and_a_price():
    node = read(label="rack", usd_per_hour="$0.40", vcpus=24)
    assert (node.machine, node.provider, node.zone, node.spot) == ("rack", "own", "cluster", False)
    assert node.listing.on_demand_usd_per_hour == 0.40
    assert node.billing == "per_second"


def test_a_price_of_zero_is_free_of_charge():
    assert read(label="rack", usd_per_hour=0).billing == "free"


def test_on_demand_nodes_of_the_catalogue_cost_their_list_price():
    node = read(label="m6i.large")
    assert node.usd_per_hour == node.list_usd_per_hour > 0


def test_age_limit_notice_and_billing_are_given():
    node = read(**SPOT, max_life="24h", notice="30s", billing="per_hour", zone="us-central1-a")
    assert (node.max_life_s, node.notice_s, node.billing) == (86400.0, 30.0, "per_hour")
    assert str(node.offer) == "c2-standard-8 spot in us-central1-a"


def test_the_cluster_says_how_many_nodes_there_are_and_how_large():
    (node,) = on_cluster([read(**SPOT)], find_place("slurm"), CLUSTER)
    assert (node.count, node.slots, node.vcpus) == (4, 8, 8.0)


def test_fewer_nodes_and_slots_than_there_are_can_be_given():
    (node,) = on_cluster([read(**SPOT, count=2, slots=1)], find_place("slurm"), CLUSTER)
    assert (node.count, node.slots) == (2, 1)


@pytest.mark.parametrize(
    ("fields", "said", "way_out"),
    [
        ({"machine": "c2-standard-8", "spot": True}, "spot nodes need a price", "price_command"),
        ({"label": "rack"}, "nothing says what these nodes cost", "usd_per_hour"),
        ({"usd_per_hour": 1}, "no label", "label"),
        ({**SPOT, "prices": "p.csv"}, "which is the price", "one of them"),
        ({**SPOT, "usd_per_hour": 99}, "more than the list price", "list_usd_per_hour"),
        ({**SPOT, "usd_per_hour": -1}, "negative", "dollars"),
        ({**SPOT, "spot": "yes"}, "neither true nor false", "preempted"),
        ({**SPOT, "provider": "aws"}, "not in the catalogue of aws", ""),
        ({**SPOT, "billing": "hourly"}, "billing='hourly'", "per_hour"),
        ({**SPOT, "lable": "x"}, "lable is unknown", "label"),
        ({**SPOT, "count": 0}, "too few", "1 or more"),
        ({"label": "rack", "price_command": "true"}, "does not change", "usd_per_hour"),
        ({"label": "rack", "spot": True, "price_command": "true"}, "nothing says", "list_usd_per_hour"),
        ({"label": "rack", "spot": True, "prices": "none.csv", "list_usd_per_hour": 1}, "no price file", "path"),
        (
            {"label": "r", "spot": True, "price_command": "", "list_usd_per_hour": 1},
            "is not a command",
            "price_command",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_way_out(fields, said, way_out):
    with pytest.raises(SpecError, match=said) as caught:
        read(**fields)
    assert way_out in caught.value.hint


def test_two_types_that_the_run_could_not_tell_apart_are_refused():
    with pytest.raises(SpecError, match="are the same to the run"):
        read_nodes([SPOT, {**SPOT, "label": "other"}])


def test_a_label_that_the_cluster_does_not_have_is_refused():
    with pytest.raises(SpecError, match="no nodes with the label 'spot-c3'") as caught:
        on_cluster([read(**{**SPOT, "label": "spot-c3"})], find_place("slurm"), CLUSTER)
    assert "spot-c2" in caught.value.hint


def test_more_nodes_than_there_are_are_refused():
    with pytest.raises(SpecError, match="there are 4 nodes 'spot-c2', not 9"):
        on_cluster([read(**SPOT, count=9)], find_place("slurm"), CLUSTER)


def test_this_computer_is_one_machine():
    with pytest.raises(SpecError, match="cannot be told apart"):
        on_cluster(read_nodes([SPOT, {"label": "rack", "usd_per_hour": 1}]), find_place("local"), None)


# -- the market --------------------------------------------------------------------------------------------------------
def test_a_file_describes_the_nodes(tmp_path):
    (tmp_path / "prices.csv").write_text("time,machine,zone,price\n2026-01-01T00:00:00Z,rack,cluster,0.02\n")
    file = tmp_path / "nodes.toml"
    file.write_text('[[nodes]]\nlabel = "rack"\nspot = true\nprices = "prices.csv"\nlist_usd_per_hour = 0.1\n')
    market = make_market(str(file))
    assert market.kind == "own"
    assert market.nodes[0].price_file == str(tmp_path / "prices.csv"), "relative to the file"
    assert market.open_live().feed.usd_per_hour(market.nodes[0].offer, 0.0) == 0.02


def test_options_of_simulated_markets_have_no_meaning_for_ones_own():
    with pytest.raises(SpecError, match="denial_share has no meaning"):
        make_market({"nodes": [SPOT], "denial_share": 0.5})
    with pytest.raises(SpecError, match="machines has no meaning"):
        make_market({"nodes": [SPOT], "machines": ["c2-standard-8"]})


@pytest.mark.parametrize("market", ["own", {"kind": "own"}, {"kind": "own", "nodes": []}, {"nodes": "rack"}])
def test_a_market_of_ones_own_without_nodes_is_refused(market):
    with pytest.raises(SpecError, match="node"):
        make_market(market)


def test_a_simulation_draws_how_long_spot_nodes_last():
    market = make_market({"nodes": [SPOT, {"label": "steady", "machine": "c2-standard-4"}]})
    provider = market.open(86400.0)
    spot, steady = provider.listings
    assert provider.revocation("l0", spot.offer, 0.0, None) is not None
    assert provider.revocation("l0", steady.offer, 0.0, None) is None
