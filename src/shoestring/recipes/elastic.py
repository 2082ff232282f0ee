"""Elastic recipes for a budget and a deadline on spot machines: trials change their number of slots while they run.

Options of all, beside those of every recipe: eta, p_min, p_max, provision_s (see docs/elastic.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.search.elastic.baselines import ElasticGrid, ElasticHalving, ElasticHyperband
from shoestring.policies.search.elastic.hypersched import HyperSched
from shoestring.policies.search.seer.as_printed import SeerAsPrinted
from shoestring.policies.search.seer.policy import Seer
from shoestring.policies.search.seer.renting import ReleaseSpare, RentByPlan
from shoestring.policies.search.seer.terms import Parameters, check_feasible_spec
from shoestring.recipes.classic import bundle, halving_options, require_metric, uses_spot
from shoestring.recipes.options.parse import Options

PAPERS_P_MAX = 4
"""For the searches that the paper compares SEER with: a wide trial gains less and less from each slot."""


def seer(spec: RunSpec) -> Sequence[Policy]:
    """Many trials start; the best get more time and slots, planned to the budget (eta, nu, p_min, p_max, t_min_s)."""
    options = Options(spec)
    parameters = _parameters(spec, options)
    return _by_plan(Seer(parameters), options)


def seer_as_printed(spec: RunSpec) -> Sequence[Policy]:
    """SEER exactly as its paper prints it, for comparison (eta, nu, p_min, p_max, t_min_s)."""
    options = Options(spec)
    parameters = _parameters(spec, options)
    return _by_plan(SeerAsPrinted(parameters), options)


def elastic_grid(spec: RunSpec) -> Sequence[Policy]:
    """Half of the time for many random trials, the other half for the best one on many slots (p_min, p_max)."""
    return _baseline(spec, ElasticGrid, PAPERS_P_MAX)


def elastic_successive_halving(spec: RunSpec) -> Sequence[Policy]:
    """Timed successive halving: promoted trials get the slots of pruned ones (eta, p_max, t_min_s)."""
    return _baseline(spec, ElasticHalving, PAPERS_P_MAX)


def elastic_hyperband(spec: RunSpec) -> Sequence[Policy]:
    """Timed Hyperband with all brackets at once, for as many trials as the budget pays (eta, t_min_s)."""
    return _baseline(spec, ElasticHyperband)


def hypersched(spec: RunSpec) -> Sequence[Policy]:
    """ASHA that shifts from exploring to training its leaders on more slots (eta, grace_steps, p_min, p_max)."""
    options = Options(spec)
    eta, grace_steps = halving_options(options, spec)
    parameters = _parameters(spec, options)
    return bundle(HyperSched(parameters, eta, grace_steps), options, elastic=True, placement="cheapest")


def _baseline(
    spec: RunSpec, search: type[ElasticGrid | ElasticHalving | ElasticHyperband], p_max: float = math.inf
) -> tuple[Policy, ...]:
    options = Options(spec)
    parameters = _parameters(spec, options, p_max)
    return _by_plan(search(parameters), options)


def _by_plan(
    search: Seer | SeerAsPrinted | ElasticGrid | ElasticHalving | ElasticHyperband, options: Options
) -> tuple[Policy, ...]:
    _, placement, *others = bundle(search, options, elastic=True, placement="cheapest")
    return (search, RentByPlan(search), placement, ReleaseSpare(), *others)


def _parameters(spec: RunSpec, options: Options, p_max: float = math.inf) -> Parameters:
    require_metric(spec)
    t_min_s, provision_s = options.seconds("t_min_s", 1.0), options.seconds("provision_s", 1.0)
    p_min, widest = options.whole("p_min", Parameters.p_min, least=1), options.whole("p_max", 1, least=1)
    given = spec.options
    parameters = Parameters(
        eta=options.number("eta", Parameters.eta),
        nu=options.number("nu", Parameters.nu),
        p_min=p_min,
        p_max=widest if "p_max" in given else max(p_max, p_min),
        t_min_s=t_min_s if "t_min_s" in given else None,
        provision_s=provision_s if "provision_s" in given else None,
        spot=uses_spot(options),
    )
    try:
        parameters.check()
    except SpecError as error:
        raise SpecError(f"options.{error}", hint=error.hint) from None
    if spec.listings:
        check_feasible_spec(spec, parameters)  # refuse now what cannot be planned, not in the middle of a run
    return parameters
