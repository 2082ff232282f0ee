"""The cheapest choice for one job at one look, by the slack programme, within the guarantee.

The placement of a real run and the benchmark call this same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from shoestring.models.speed.progress import steps_done
from shoestring.policies.placement.slack.baselines import greedy, uniform_progress
from shoestring.policies.placement.slack.dynamic_program import SlackTable
from shoestring.policies.placement.slack.guarantee import (
    ON_DEMAND,
    WAIT,
    MachineChoice,
    Situation,
    SlackChoice,
    Switching,
    guarded,
)
from shoestring.policies.placement.slack.per_trial import SlackContext, TrialSlack
from shoestring.policies.placement.slack.spot_market import SpotMarket, programme_for
from shoestring.policies.placement.slack.zones import Quote, best_quote, moving_pays

if TYPE_CHECKING:
    from shoestring.policies.placement.slack.dynamic_program import Table


YOUNG_S = 3600.0


def choose(now: Situation, switching: Switching, programme: SlackTable, quotes: Sequence[Quote]) -> SlackChoice:
    """`quotes` are of the zones that have machines now, including that of a spot machine held."""
    if now.here is MachineChoice.SPOT:
        proposed = _on_spot(now, switching, programme, quotes)
    elif now.here is MachineChoice.ON_DEMAND:
        proposed = _on_demand(now, switching, programme, quotes)
    else:
        proposed = _with_nothing(now, switching, programme, quotes)
    return guarded(proposed, now, switching)


def _with_nothing(now: Situation, switching: Switching, programme: SlackTable, quotes: Sequence[Quote]) -> SlackChoice:
    work, slack = now.work_left_s, now.slack_s
    if not quotes:
        waiting, best = programme.at(programme.wait, work, slack), programme.at(programme.nothing, work, slack)
        return WAIT if waiting <= best else ON_DEMAND
    there = best_quote(quotes, switching)
    slack_after = slack - switching.setup_s
    spot_usd = there.usd_per_hour * switching.setup_s / 3600 + programme.at(_aged(programme, there), work, slack_after)
    on_demand_usd = programme.on_demand_usd_per_hour * switching.setup_s / 3600
    on_demand_usd += programme.at(programme.on_demand_spot_up, work, slack_after)
    return SlackChoice(MachineChoice.SPOT, there.zone) if spot_usd <= on_demand_usd else ON_DEMAND


def _on_spot(now: Situation, switching: Switching, programme: SlackTable, quotes: Sequence[Quote]) -> SlackChoice:
    stay = SlackChoice(MachineChoice.SPOT, now.zone)
    here = next((quote for quote in quotes if quote.zone == now.zone), None)
    if here is None or now.starting:
        return stay
    others = [quote for quote in quotes if quote.usd_per_hour < here.usd_per_hour]
    if not others:
        return stay
    there = best_quote(others, switching)
    table, work, slack = _aged(programme, here), now.work_left_s, now.slack_s
    slack_usd = programme.at(table, work, slack - switching.setup_s) - programme.at(table, work, slack)
    return (
        SlackChoice(MachineChoice.SPOT, there.zone)
        if moving_pays(here.usd_per_hour, there, switching, slack_usd)
        else stay
    )


def _on_demand(now: Situation, switching: Switching, programme: SlackTable, quotes: Sequence[Quote]) -> SlackChoice:
    work, slack = now.work_left_s, now.slack_s
    if not quotes:
        stay, leave = programme.at(programme.on_demand, work, slack), programme.at(programme.nothing, work, slack)
        return WAIT if leave < stay else ON_DEMAND
    there = best_quote(quotes, switching)
    stay = programme.at(programme.on_demand_spot_up, work, slack)
    overlap_usd = there.usd_per_hour * switching.setup_s / 3600
    slack_after = slack - switching.restore_s - switching.save_s
    leave = overlap_usd + programme.at(_aged(programme, there), work, slack_after)
    return SlackChoice(MachineChoice.SPOT, there.zone) if leave < stay else ON_DEMAND


def _aged(programme: SlackTable, quote: Quote) -> Table:
    return programme.young if quote.spell_age_s < YOUNG_S else programme.old


Rule = Literal["slack", "greedy", "uniform_progress"]


def choice_by(rule: Rule, context: SlackContext, trial_slack: TrialSlack, market: SpotMarket) -> SlackChoice:
    match rule:
        case "greedy":
            return greedy(trial_slack.now, trial_slack.switching, market.quotes)
        case "uniform_progress":
            deadline_s = context.state.spec.deadline_s - context.state.spec.wind_down_s
            work_s = trial_slack.now.work_left_s + _done_s(context, trial_slack)
            return uniform_progress(trial_slack.now, trial_slack.switching, market.quotes, work_s, deadline_s)
        case "slack":
            return choose(
                trial_slack.now, trial_slack.switching, programme_for(context, market, trial_slack), market.quotes
            )


def _done_s(context: SlackContext, trial_slack: TrialSlack) -> float:
    """Work of the study so far, per trial that can run at once: what the schedule is compared with."""
    state = context.state
    steps = sum(steps_done(state, job) for job in state.jobs.values())
    return steps * trial_slack.seconds_per_step / min(state.places, max(1, len(state.jobs)))
