"""The machines of a source, as the run's market has them."""

from __future__ import annotations

from shoestring.backends.drawn_machines import DrawingMarket, DrawnMachines
from shoestring.backends.machines import MachineSource
from shoestring.backends.own_machines import OwnMachines
from shoestring.backends.price_watch import PriceWatch
from shoestring.backends.site import Site
from shoestring.market.own import OwnMarket


def on_market(
    machines: MachineSource, market: object, site: Site, *, grants: bool = True, outlives: bool = True
) -> MachineSource:
    """Granted and preempted as a simulated market draws it; at the prices of the user's own machines, and otherwise as
    they are observed; or, free of charge, unchanged.

    `grants`: a simulated market also draws when a machine comes up; otherwise it is granted when its source says so.
    `outlives`: machines outlive this process, so what was drawn is stored.
    """
    if isinstance(market, OwnMarket):
        return OwnMachines(machines, market, PriceWatch(market, site.clock, site.run_dir), site.clock)
    if isinstance(market, DrawingMarket):
        return DrawnMachines(machines, market, site.clock, site.leases if outlives else None, grants=grants)
    return machines
