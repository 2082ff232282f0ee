"""The catalogue: properties, selection, and hints for wrong names."""

import csv

import pytest

from shoestring.errors import SpecError
from shoestring.kernel.types import RAY_NODE
from shoestring.market.catalog import catalog

SPOTTUNE = ("r4.large", "r3.xlarge", "r4.xlarge", "m4.2xlarge", "r4.2xlarge", "m4.4xlarge")


def test_spottunes_machines_are_there():
    assert [m.on_demand_usd_per_hour for m in catalog.machines("aws", names=SPOTTUNE)] == [
        0.133, 0.266, 0.333, 0.4, 0.532, 0.8,
    ]  # fmt: skip


def test_machines_are_chosen_by_size_and_gpus_cheapest_first():
    small = catalog.machines("aws", max_vcpus=4, min_vcpus=4, gpus=0)
    assert all(m.vcpus == 4 and m.gpus == 0 for m in small)
    assert [m.on_demand_usd_per_hour for m in small] == sorted(m.on_demand_usd_per_hour for m in small)
    assert catalog.machines("gcp", gpus=1)[0].name == "g2-standard-4"


def test_a_misspelt_machine_gets_a_did_you_mean_hint():
    with pytest.raises(SpecError, match="machine='m6i-xlrge'") as error:
        catalog.machine("aws", "m6i-xlrge")
    assert "m6i.xlarge" in error.value.hint


def test_an_unknown_provider_or_zone_and_an_empty_choice_are_refused():
    with pytest.raises(SpecError, match="provider='ibm'"):
        catalog.machine("ibm", "m6i.xlarge")
    with pytest.raises(SpecError, match="zone='eu-west-9z'"):
        catalog.listing(catalog.machine("aws", "m6i.xlarge"), "eu-west-9z", spot=True)
    with pytest.raises(SpecError, match="no machine of aws"):
        catalog.machines("aws", max_vcpus=0)


def test_a_listing_carries_its_providers_rules():
    aws = catalog.listing(catalog.machine("aws", "g4dn.12xlarge"), "us-east-1b", spot=True)
    assert (aws.billing, aws.notice_s, aws.max_life_s, aws.slots) == ("aws_spot", 120.0, None, 4)
    gcp = catalog.machine("gcp", "n1-highcpu-16")
    today = catalog.listing(gcp, "us-central1-c", spot=True)
    assert (today.billing, today.notice_s, today.max_life_s) == ("gcp_preemptible", 30.0, None)
    assert catalog.listing(gcp, "us-central1-c", spot=True, legacy_preemptible=True).max_life_s == 86400.0
    assert catalog.listing(gcp, "us-central1-c", spot=False, slots=16).billing == "per_second"
    with pytest.raises(SpecError, match="legacy_preemptible"):
        catalog.listing(gcp, "us-central1-c", spot=False, legacy_preemptible=True)


def test_this_machine_is_free():
    here = catalog.free_listing(4)
    assert (here.slots, here.on_demand_usd_per_hour, here.billing, here.offer.spot) == (4, 0.0, "free", False)


def test_local_machines_have_their_own_name():
    assert str(catalog.free_listing(4).offer) == "this machine"
    assert str(catalog.free_listing(4, RAY_NODE).offer) == "a Ray node"


def test_names_are_unique_and_facts_are_sane():
    for provider in ("aws", "gcp"):
        every = catalog.machines(provider)
        assert len({m.name for m in every}) == len(every) > 50
        assert all(m.vcpus > 0 and m.memory_gb > 0 and m.on_demand_usd_per_hour > 0 for m in every)
        assert all(bool(m.gpus) == bool(m.gpu) for m in every)


def test_amazons_facts_agree_with_a_published_catalogue(real_data):
    with real_data("aws_instance_catalog.csv").open() as file:
        for row in csv.DictReader(file):
            ours = catalog.machine("aws", row["instance_type"])
            price = row["ondemand_usd_hr_2025"] or row["ondemand_usd_hr_2017"]
            assert ours.on_demand_usd_per_hour == pytest.approx(float(price), abs=1e-5), ours.name
            if row["vcpus"]:
                assert (ours.vcpus, ours.gpus) == (float(row["vcpus"]), int(float(row["accelerator_count"] or 0)))
                assert ours.memory_gb == pytest.approx(float(row["memory_gib"]), rel=0.03), ours.name


def test_googles_facts_agree_with_a_published_catalogue(real_data):
    with real_data("gcp_instance_catalog.csv").open() as file:
        for row in csv.DictReader(file):
            ours = catalog.machine("gcp", row["vm_type"])
            assert ours.vcpus == float(row["vcpus"])
            assert ours.memory_gb == pytest.approx(float(row["memory_gib"]), rel=0.03)
            if row["zone"] in ours.zones:
                assert ours.on_demand_usd_per_hour == pytest.approx(float(row["ondemand_usd_hr_2025"]), abs=2e-5)
