"""The table that is shown before a run on the user's own machines starts: which nodes, at which price, spot or not."""

from __future__ import annotations

from collections.abc import Iterator

from shoestring.market.own import NodeType, OwnMarket
from shoestring.report.trials import aligned
from shoestring.units import show_duration, show_usd

_HEAD = ("nodes", "number", "slots", "machine", "zone", "kind", "$/hour", "list $/hour", "from", "notice", "age limit")


def own_table(market: OwnMarket) -> Iterator[str]:
    rows = [_row(node, market.book.trace(node.offer).usd_per_hour[-1]) for node in market.nodes]
    yield from ("  ".join(line).rstrip() for line in aligned([_HEAD, *rows]))
    yield "nothing is simulated: grants, preemptions and prices are those of these nodes"


def _row(node: NodeType, usd_per_hour: float) -> tuple[str, ...]:
    source = "a command" if node.price_command else "a file" if node.price_file else "given"
    return (
        node.label,
        f"up to {node.count}" if node.launch else str(node.count or 1),
        str(node.slots or 1),
        node.machine,
        node.zone,
        "spot" if node.spot else "on-demand",
        show_usd(usd_per_hour),
        show_usd(node.list_usd_per_hour),
        source,
        show_duration(node.listing.notice_s) if node.spot else "-",
        "-" if node.max_life_s is None else show_duration(node.max_life_s),
    )
