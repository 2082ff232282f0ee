"""The contestants: the slack policy, and its baselines. All run under the guarantee and differ in cost alone.

They are those of the product (`policies/placement/slack/choice.py`, `baselines.py`): here are their inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.placement_traces import TICK_S, Market
from benchmarks.placement_world import Look
from shoestring.models.zone_survival import ZoneRecord, expected_stay_h, losses_per_h, returns_per_h
from shoestring.policies.placement.slack import baselines as slack_rules
from shoestring.policies.placement.slack.choice import choose
from shoestring.policies.placement.slack.dynamic_program import SlackMarket, SlackTable, solve
from shoestring.policies.placement.slack.guarantee import ON_DEMAND, MachineChoice, SlackChoice, guarded
from shoestring.policies.placement.slack.zones import Quote, best_quote, horizon_h

SOLVE_EVERY = int(2 * 3600 / TICK_S)
RECORDS_EVERY = int(3600 / TICK_S)


@dataclass(frozen=True)
class LossRates:
    """Losses per hour, in the first hour of a spell and after it."""

    young_per_h: float
    old_per_h: float


def loss_rates(record: ZoneRecord, young: ZoneRecord) -> LossRates:
    """`young`: from spells younger than an hour; the prior of each is the whole record."""
    overall = losses_per_h(record)
    old_losses, old_uptime_h = record.losses - young.losses, record.uptime_h - young.uptime_h
    return LossRates(
        young_per_h=(young.losses + 2.0 * overall) / (young.uptime_h + 2.0),
        old_per_h=(old_losses + 4.0 * overall) / (old_uptime_h + 4.0),
    )


class Slack:
    """The policy of one job: queries the dynamic program at every tick, and solves it again every two hours or at half
    the slack."""

    def __init__(self) -> None:
        self._programme: SlackTable | None = None
        self._solved_at = 0
        self._solved_for_s = 0.0
        self._records: dict[tuple[int, int], ZoneRecord] = {}

    def __call__(self, look: Look) -> SlackChoice:
        market, now, switching = look.task.market, look.now, look.task.switching
        zones = [int(zone) for zone in market.up[:, look.tick].nonzero()[0]]
        quotes = [self._quote(market, zone, look) for zone in zones]
        halved = switching.line_s < now.slack_s < self._solved_for_s / 2
        due = look.tick - self._solved_at >= SOLVE_EVERY or halved
        if self._programme is None or due:
            self._solved_at, self._solved_for_s = look.tick, now.slack_s
            self._programme = solve(
                self._terms(look, quotes), switching, now.work_left_s + now.unsaved_s, max(now.slack_s, 0.0)
            )
        if now.here is MachineChoice.SPOT and look.pending is not None and look.pending >= 0:  # a move goes on
            return guarded(SlackChoice(MachineChoice.SPOT, look.pending), now, switching)
        return choose(now, switching, self._programme, quotes)

    def _quote(self, market: Market, zone: int, look: Look) -> Quote:
        age_s = float(market.ages[zone, look.tick]) * TICK_S
        record = self._record(market, zone, look.tick)
        stay_h = expected_stay_h(horizon_h(look.now.work_left_s), age_s / 3600, record)
        return Quote(zone, float(market.usd_per_hour[zone, look.tick]), stay_h, spell_age_s=age_s)

    def _record(self, market: Market, zone: int, tick: int) -> ZoneRecord:
        known = (zone, tick // RECORDS_EVERY)
        if known not in self._records:
            self._records[known] = market.record(zone, tick)
        return self._records[known]

    def _terms(self, look: Look, quotes: list[Quote]) -> SlackMarket:
        market, tick = look.task.market, look.tick
        if look.now.here is MachineChoice.SPOT:
            zone = look.now.zone
        elif quotes:
            zone = best_quote(quotes, look.task.switching).zone
        else:  # the one that most often has machines
            zone = max(range(market.zones), key=lambda zone: market.record(zone, tick).uptime_h)
        rates: LossRates = loss_rates(market.record(zone, tick), market.young_record(zone, tick))
        return SlackMarket(
            spot_usd_per_hour=float(market.usd_per_hour[zone, tick]),
            on_demand_usd_per_hour=market.on_demand_usd_per_hour,
            young_losses_per_h=rates.young_per_h,
            old_losses_per_h=rates.old_per_h,
            elsewhere=market.elsewhere(zone, tick),
            returns_per_h=returns_per_h(market.any_zone(tick)),
            redo_s=look.task.notice_s or look.task.save_every_s / 2,
        )


def on_demand_only(_: Look) -> SlackChoice:
    return ON_DEMAND


def greedy(look: Look) -> SlackChoice:
    return slack_rules.greedy(look.now, look.task.switching, _quotes(look))


def uniform_progress(look: Look) -> SlackChoice:
    task = look.task
    return slack_rules.uniform_progress(look.now, task.switching, _quotes(look), task.work_s, task.deadline_s)


def _quotes(look: Look) -> list[Quote]:
    """These rules need only prices. A pending machine is waited for."""
    market = look.task.market
    zones = market.up[:, look.tick].nonzero()[0].tolist()
    if look.pending is not None and look.pending >= 0:
        zones = [look.pending]
    return [Quote(zone, float(market.usd_per_hour[zone, look.tick]), stay_h=1.0, spell_age_s=0.0) for zone in zones]
