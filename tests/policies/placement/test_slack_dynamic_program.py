"""The slack programme: more slack never costs more, and its choices follow from prices and risks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoestring.policies.placement.slack.choice import choose
from shoestring.policies.placement.slack.dynamic_program import SlackMarket, SlackTable, slack_grid_s, solve
from shoestring.policies.placement.slack.guarantee import (
    ON_DEMAND,
    WAIT,
    MachineChoice,
    Situation,
    SlackChoice,
    Switching,
)
from shoestring.policies.placement.slack.zones import Quote, best_quote, horizon_h, moving_pays, usd_per_useful_hour

HOUR = 3600.0
SWITCHING = Switching(setup_s=300.0, restore_s=90.0, save_s=5.0, look_s=120.0)
TERMS = SlackMarket(
    spot_usd_per_hour=1.0,
    on_demand_usd_per_hour=3.0,
    young_losses_per_h=0.5,
    old_losses_per_h=0.1,
    elsewhere=0.5,
    returns_per_h=0.5,
    redo_s=120.0,
)
QUOTE = Quote(zone=0, usd_per_hour=1.0, stay_h=5.0, spell_age_s=2 * HOUR)


def solved(terms: SlackMarket = TERMS) -> SlackTable:
    return solve(terms, SWITCHING, 12 * HOUR, 6 * HOUR)


terms = st.builds(
    SlackMarket,
    spot_usd_per_hour=st.floats(0.1, 2.9),
    on_demand_usd_per_hour=st.just(3.0),
    young_losses_per_h=st.floats(0.01, 3.0),
    old_losses_per_h=st.floats(0.01, 1.0),
    elsewhere=st.floats(0.0, 1.0),
    returns_per_h=st.floats(0.05, 4.0),
    redo_s=st.floats(0.0, 600.0),
)


@settings(max_examples=25, deadline=None)
@given(terms)
def test_more_work_costs_more_and_waiting_is_never_forced(market: SlackMarket) -> None:
    programme = solve(market, SWITCHING, 4 * HOUR, 3 * HOUR)
    for table in (programme.nothing, programme.young, programme.old, programme.on_demand):
        assert np.isfinite(table).all()
        assert (np.diff(table, axis=0) >= -1e-9).all()
    assert (programme.nothing <= programme.wait + 1e-9).all()
    most = 3.0 * 4.5 + 3.0 * SWITCHING.setup_s / 3600
    assert (programme.nothing <= most + 1e-9).all(), "on-demand alone is always possible"


def test_slack_is_worth_money_and_less_of_it_the_more_there_is() -> None:
    programme = solved()
    usd = [programme.at(programme.nothing, 12 * HOUR, slack) for slack in (0.5 * HOUR, 1 * HOUR, 3 * HOUR, 6 * HOUR)]
    assert usd == sorted(usd, reverse=True)
    assert usd[0] - usd[1] > (usd[2] - usd[3]) / 6


def test_a_machine_that_never_goes_costs_its_price() -> None:
    calm = replace(TERMS, young_losses_per_h=0.0, old_losses_per_h=0.0)
    programme = solved(calm)
    assert programme.at(programme.old, 12 * HOUR, 6 * HOUR) == pytest.approx(12.0, rel=1e-6)


def test_the_grid_is_neither_too_fine_nor_too_coarse() -> None:
    assert [slack_grid_s(hours * HOUR) for hours in (0.5, 4.0, 40.0)] == [120.0, 360.0, 600.0]


@pytest.mark.parametrize(("slack_h", "choice"), [(5.0, WAIT), (0.3, ON_DEMAND)])
def test_with_no_zone_it_waits_while_there_is_slack(slack_h: float, choice: SlackChoice) -> None:
    now = Situation(time_left_s=(10 + slack_h) * HOUR, work_left_s=10 * HOUR)
    assert choose(now, SWITCHING, solved(), []) == choice


def test_spot_that_costs_as_much_as_on_demand_is_not_worth_the_risk() -> None:
    expensive = replace(QUOTE, usd_per_hour=3.0)
    now = Situation(time_left_s=12 * HOUR, work_left_s=10 * HOUR)
    assert choose(now, SWITCHING, solved(replace(TERMS, spot_usd_per_hour=3.0)), [expensive]) == ON_DEMAND
    assert choose(now, SWITCHING, solved(), [QUOTE]) == SlackChoice(MachineChoice.SPOT, 0)


def test_from_on_demand_it_goes_back_to_spot_where_slack_allows() -> None:
    roomy = Situation(time_left_s=12 * HOUR, work_left_s=10 * HOUR, here=MachineChoice.ON_DEMAND, zone=-1)
    tight = Situation(time_left_s=10.1 * HOUR, work_left_s=10 * HOUR, here=MachineChoice.ON_DEMAND, zone=-1)
    assert choose(roomy, SWITCHING, solved(), [QUOTE]) == SlackChoice(MachineChoice.SPOT, 0)
    assert choose(tight, SWITCHING, solved(), [QUOTE]) == ON_DEMAND


@pytest.mark.parametrize(("usd", "zone"), [(0.4, 1), (0.97, 0)])
def test_it_moves_only_to_a_zone_that_saves_twice_what_the_move_costs(usd: float, zone: int) -> None:
    now = Situation(time_left_s=14 * HOUR, work_left_s=10 * HOUR, here=MachineChoice.SPOT)
    there = Quote(zone=1, usd_per_hour=usd, stay_h=5.0, spell_age_s=2 * HOUR)
    assert choose(now, SWITCHING, solved(), [QUOTE, there]) == SlackChoice(MachineChoice.SPOT, zone)


def test_neither_survival_nor_price_alone_decides() -> None:
    lasting = Quote(zone=0, usd_per_hour=8.74, stay_h=11.0, spell_age_s=HOUR)
    cheap = Quote(zone=1, usd_per_hour=1.86, stay_h=6.0, spell_age_s=HOUR)
    fleeting = Quote(zone=2, usd_per_hour=1.5, stay_h=0.1, spell_age_s=HOUR)
    assert best_quote([lasting, cheap, fleeting], SWITCHING) == cheap
    assert usd_per_useful_hour(cheap, SWITCHING) == pytest.approx(1.86 * (6 + 1 / 12) / 6)


def test_carrying_the_checkpoint_counts() -> None:
    there = Quote(zone=1, usd_per_hour=0.5, stay_h=4.0, spell_age_s=HOUR)
    assert moving_pays(1.0, there, SWITCHING, slack_usd=0.0)
    assert not moving_pays(1.0, replace(there, egress_usd=1.0), SWITCHING, slack_usd=0.0)


def test_how_far_ahead_it_looks() -> None:
    assert [horizon_h(hours * HOUR) for hours in (0.1, 3.0, 48.0)] == [0.25, 3.0, 12.0]


@pytest.mark.parametrize("save_s", [5.0, 20 * 24 * HOUR])
def test_a_table_for_months_is_no_larger_than_for_weeks_and_knows_what_slack_is_for(save_s: float) -> None:
    month = 30 * 24 * HOUR
    switching = replace(SWITCHING, save_s=save_s)
    table = solve(TERMS, switching, 3 * month, 5 * month)
    assert table.young.size < 520 * 1020
    on_spot, too_late = (table.at(table.young, 2 * month, slack_s) for slack_s in (5 * month, 0.0))
    assert on_spot < 0.6 * too_late, "with months of slack, work is done on spot machines"
