"""What one trial should do now, by the rule that was chosen: the slack programme, or one that it is compared with."""

from __future__ import annotations

from typing import Literal

from shoestring.policies.placement.slack.baselines import greedy, uniform_progress
from shoestring.policies.placement.slack.choice import choose
from shoestring.policies.placement.slack.guarantee import Wish
from shoestring.policies.placement.slack.queue import places_of
from shoestring.policies.placement.slack.spot_market import SpotMarket, programme_for
from shoestring.policies.placement.slack.trial_slack import Net, Turn

Rule = Literal["slack", "greedy", "uniform_progress"]


def wish_of(rule: Rule, turn: Turn, net: Net, market: SpotMarket) -> Wish:
    match rule:
        case "greedy":
            return greedy(net.now, net.switching, market.quotes)
        case "uniform_progress":
            deadline_s = turn.state.spec.deadline_s - turn.state.spec.wind_down_s
            work_s = net.now.work_left_s + _done_s(turn, net)
            return uniform_progress(net.now, net.switching, market.quotes, work_s, deadline_s)
        case "slack":
            return choose(net.now, net.switching, programme_for(turn, market, net), market.quotes)


def _done_s(turn: Turn, net: Net) -> float:
    """Work of the study so far, shared by its places: what the clock is compared with. One trial alone has its own."""
    state = turn.state
    steps = sum(job.step for job in state.jobs.values())
    return steps * net.seconds_per_step / min(places_of(state), max(1, len(state.jobs)))
