"""Spot price files: what `aws ec2 describe-spot-price-history` prints (JSON), JSON lines, CSV and parquet.

Every error names the file, the line or record, and how to fix it. Order does not matter and exact duplicates are
dropped. A gap is an error rather than silently bridged: Amazon records every series at least once a day, so two days
without a record mean that records are missing.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from shoestring.errors import DataError, need
from shoestring.kernel.types import Offer
from shoestring.market.prices import PriceBook, PriceTrace, utc

COLUMNS: dict[str, tuple[str, ...]] = {
    "time": ("Timestamp", "timestamp", "time"),
    "machine": ("InstanceType", "instance_type", "machine"),
    "zone": ("AvailabilityZone", "availability_zone", "az", "zone"),
    "price": ("SpotPrice", "spot_price", "price_usd_hr", "usd_per_hour", "price"),
}
MAX_GAP_S = 2 * 86400.0
"""The longest time without a record that is bridged, unless another is given."""
PRODUCT = ("ProductDescription", "product_description", "product")

Row = tuple[str, Any, Any, Any, Any, Any]
"""Line or record in the file, time, machine, zone, price, product (None where the file has no such column)."""


def read_prices(
    path: str | Path,
    *,
    machines: Collection[str] | None = None,
    zones: Collection[str] | None = None,
    product: str = "Linux/UNIX",
    provider: str = "aws",
    max_gap_s: float = MAX_GAP_S,
) -> PriceBook:
    """The spot prices in a file, one series per machine type and zone; `machines` and `zones` select some."""
    path = Path(path)
    series: dict[tuple[str, str], dict[float, float]] = {}
    products: set[str] = set()
    for where, time, machine, zone, price, sold_as in _rows(path):
        if sold_as is not None and sold_as != product:
            products.add(str(sold_as))
            continue
        if (machines is not None and machine not in machines) or (zones is not None and zone not in zones):
            continue
        if not (isinstance(machine, str) and machine and isinstance(zone, str) and zone):
            raise DataError(f"{path}, {where}: machine type {machine!r} in zone {zone!r} is not a name")
        known = series.setdefault((machine, zone), {})
        at, usd_per_hour = _seconds(time, path, where), _price(price, path, where)
        if known.setdefault(at, usd_per_hour) != usd_per_hour:
            raise DataError(
                f"{path}, {where}: two prices of {machine} in {zone} at {utc(at)}: {known[at]} and {usd_per_hour}",
                hint="keep one of the two records; several products in one file need a product column",
            )
    if not series:
        kept = f"; it has {', '.join(sorted(products))} but not {product}" if products else ""
        wanted = f" of {', '.join(sorted(machines))}" if machines else ""
        wanted += f" in {', '.join(sorted(zones))}" if zones else ""
        raise DataError(f"{path} holds no matching prices{wanted}{kept}", hint="check machines, zones and product")
    _refuse_gaps(path, series, max_gap_s)
    traces = {}
    for machine, zone in sorted(series):
        offer = Offer(provider=provider, zone=zone, machine=machine, spot=True)
        records = sorted(series[machine, zone].items())
        traces[offer] = PriceTrace(offer, [at for at, _ in records], [usd for _, usd in records])
    return PriceBook(traces)


def read_prices_once(
    path: str | Path, *, machines: Collection[str] | None, zones: Collection[str] | None, max_gap_s: float
) -> PriceBook:
    """The same, cached until the file changes: a forecast opens one market many times."""
    path = Path(path)
    found = path.stat() if path.exists() else None
    stamp = None if found is None else (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
    chosen = (None if names is None else frozenset(names) for names in (machines, zones))
    return _read_latest(path, stamp, *chosen, max_gap_s)


@lru_cache(maxsize=1)
def _read_latest(
    path: Path,
    stamp: tuple[int, ...] | None,  # noqa: ARG001 - part of the cache key: a rewritten file is read again
    machines: frozenset[str] | None,
    zones: frozenset[str] | None,
    max_gap_s: float,
) -> PriceBook:
    return read_prices(path, machines=machines, zones=zones, max_gap_s=max_gap_s)


def _refuse_gaps(path: Path, series: dict[tuple[str, str], dict[float, float]], max_gap_s: float) -> None:
    file_end = max(max(records) for records in series.values())
    for (machine, zone), records in series.items():
        times = sorted(records)
        for before, after in zip(times, [*times[1:], file_end], strict=True):
            if after - before > max_gap_s:
                raise DataError(
                    f"{path}: no price of {machine} in {zone} from {utc(before)} to {utc(after)}"
                    f" ({(after - before) / 3600:.0f} h; at most {max_gap_s / 3600:.0f} h are bridged)",
                    hint="get the missing records, leave this series out by machines or zones, or raise max_gap_s"
                    " (of shoestring market: --max-gap)",
                )


def _rows(path: Path) -> Iterator[Row]:
    readers = {".json": _json, ".jsonl": _json_lines, ".ndjson": _json_lines, ".csv": _csv, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: cannot tell the format from its name", hint=f"known endings: {' '.join(readers)}")
    try:
        yield from reader(path)
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file", hint="check the path of the price file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _json(path: Path) -> Iterator[Row]:
    try:
        content = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError as error:
        raise DataError(
            f"{path} is not JSON: {error}", hint="one record per line? then name the file .jsonl"
        ) from error
    records = content.get("SpotPriceHistory") if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise DataError(
            f"{path} has no list 'SpotPriceHistory'",
            hint="save the output of: aws ec2 describe-spot-price-history --output json",
        )
    yield from _records(path, ((f"record {number}", record) for number, record in enumerate(records, 1)))


def _json_lines(path: Path) -> Iterator[Row]:
    def lines() -> Iterator[tuple[str, Any]]:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        yield f"line {number}", msgspec.json.decode(line)
                    except msgspec.DecodeError as error:
                        raise DataError(f"{path}, line {number} is not JSON: {error}") from error

    yield from _records(path, lines())


def _records(path: Path, records: Iterator[tuple[str, Any]]) -> Iterator[Row]:
    for where, record in records:
        if not isinstance(record, dict):
            raise DataError(f"{path}, {where}: {record!r} is not a record of a price")
        time, machine, zone, price = (record[name] for name in _pick(record, f"{path}, {where}"))
        yield where, time, machine, zone, price, next((record[name] for name in PRODUCT if name in record), None)


def _csv(path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        picked = [header.index(name) for name in _pick(header, str(path))]
        product = next((header.index(name) for name in PRODUCT if name in header), None)
        for cells in lines:
            if not cells:
                continue
            if len(cells) != len(header):
                raise DataError(f"{path}, line {lines.line_num} has {len(cells)} cells, the header {len(header)}")
            time, machine, zone, price = (cells[index] for index in picked)
            yield f"line {lines.line_num}", time, machine, zone, price, None if product is None else cells[product]


def _parquet(path: Path) -> Iterator[Row]:
    arrow, parquet = need("pyarrow", extra="tables"), need("pyarrow.parquet", extra="tables")
    try:
        names = parquet.read_schema(path).names
        picked = list(_pick(names, str(path)))
        product = next((name for name in PRODUCT if name in names), None)
        table = parquet.read_table(path, columns=[*picked, *([product] if product else [])])
    except arrow.ArrowInvalid as error:
        raise DataError(f"{path} is not a parquet file: {error}") from error
    time = table[picked[0]]
    if arrow.types.is_timestamp(time.type):
        # Microseconds as integers: a datetime object per row would take longer than all the rest.
        micros = time.cast(arrow.timestamp("us"), safe=False).cast(arrow.int64()).to_pylist()
        times = [None if value is None else value / 1e6 for value in micros]
    else:
        times = time.to_pylist()
    machines, zones, prices = (table[name].to_pylist() for name in picked[1:])
    products = table[product].to_pylist() if product else [None] * len(times)
    for number, values in enumerate(zip(times, machines, zones, prices, products, strict=True), 1):
        yield f"row {number}", *values


def _pick(columns: Collection[str], where: str) -> Iterator[str]:
    """The file's column names for time, machine, zone and price, in this order."""
    for meaning, names in COLUMNS.items():
        found = next((name for name in names if name in columns), None)
        if found is None:
            raise DataError(
                f"{where} has no column for the {meaning}; it has {', '.join(map(repr, columns)) or 'none at all'}",
                hint=f"call it {' or '.join(names)}",
            )
        yield found


def _seconds(value: Any, path: Path, where: str) -> float:
    """UTC seconds from ISO text (UTC where it names no zone) or from a number of seconds."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    at = _number(value)
    # Seconds or milliseconds, a year or a date without dashes: a number counts only where it cannot be misread.
    if not 1e8 <= at < 1e10:
        raise DataError(f"{path}, {where}: timestamp {value!r} cannot be read", hint="write it as 2025-03-01T12:00:00Z")
    return at


def _price(value: Any, path: Path, where: str) -> float:
    usd_per_hour = _number(value)
    if not 0 < usd_per_hour < math.inf:
        raise DataError(
            f"{path}, {where}: price {value!r} is not a positive number of dollars", hint="correct or remove the record"
        )
    return usd_per_hour


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
