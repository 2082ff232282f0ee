"""Job bags on preemptible VMs, replayed on held-out real lifetimes: reuse of machines, checkpoint schedules, choice of
machines, and the cost of whole bags. No model has seen the machines that it is scored or run on.

    python -m benchmarks.scispot [--quick] [--json FILE] [--plot FILE] [--held-out FOLDER]
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks.datasets import add_held_out_option
from benchmarks.plotting import add_plot_option, check_plot
from benchmarks.rows import Row, parser, publish
from benchmarks.scispot_bags import Outcome, play_bag
from benchmarks.scispot_choice import JOBS, Chosen, Explored, choices, explored, regret
from benchmarks.scispot_gangs import GangBag, gang_bags
from benchmarks.scispot_lemma import PREEMPTIONS, Ends, ends
from benchmarks.scispot_lives import Split, splits
from benchmarks.scispot_reuse import WRONG, by_length
from benchmarks.scispot_saving import WRONG as WRONG_HAZARDS
from benchmarks.scispot_saving import overheads, table_s
from benchmarks.scispot_types import EXPONENTS, FEW, FEWER_SEEDS_FROM, SEEDS, TypeBag, type_bag
from benchmarks.scispot_types import JOBS as JOB_COUNTS
from shoestring.errors import DataError

BAGS = {0.25: 200, 1.0: 100, 6.0: 40}
"""Hours of a job, and jobs."""
PROCESSES = 2


def mean_of(lengths: Mapping[float, float], hours: Sequence[float]) -> float:
    return statistics.fmean(lengths[h] for h in hours)


def table(title: str, found: Mapping[str, Mapping[float, float]], hours: Sequence[float]) -> None:
    print(f"\n{title:<34}" + "".join(f"{h:>8g}" for h in hours) + f"{'mean':>8}")
    for name, lengths in found.items():
        shown = "".join(f"{lengths[h]:>8.3f}" for h in hours)
        print(f"{name:<34}{shown}{mean_of(lengths, hours):>8.3f}")


def reuse_rows(failed: Mapping[str, Mapping[float, float]]) -> list[Row]:
    hours = [float(h) for h in range(1, 13)]
    ours, memoryless, by_age = (mean_of(failed[name], hours) for name in ("ours", "memoryless", "age + job < 24 h"))
    wrong = {name: mean_of(failed[name], hours) / ours for name in WRONG}
    return [
        Row(
            "failure_ratio_of_wrong_model",
            max(wrong.values()),
            "x",
            "Fig. 9: jobs lost with a wrong model, against the fitted one; "
            + ", ".join(f"{name.removeprefix('ours, ')} {ratio:.3f}" for name, ratio in wrong.items()),
        ),
        Row(
            "failure_ratio_vs_memoryless_1_12h", ours / memoryless, "x", f"{ours:.3f} of {memoryless:.3f}; goal <= 0.5"
        ),
        Row("failure_ratio_vs_age_rule", ours / by_age, "x", "reuse if age + job < 24 h; goal <= 1.1"),
        Row(
            "failure_ratio_of_printed_0.25h",
            failed["Eq. 10 as printed"][0.25] / failed["memoryless"][0.25],
            "x",
            "Eq. 10 to the letter, jobs of a quarter of an hour: above 1 is worse than knowing nothing",
        ),
    ]


def saving_rows(longer: Mapping[str, Mapping[int, float]], solve_s: float) -> list[Row]:
    mean = {name: statistics.fmean(lengths.values()) for name, lengths in longer.items()}
    ours = mean["programme"]
    return [
        Row(
            "checkpoint_overhead_vs_young_daly_1h",
            ours / mean["Young-Daly, 1 h"],
            "x",
            f"{ours:.2%} against {mean['Young-Daly, 1 h']:.2%} longer; goal <= 0.25, the paper has 0.2",
        ),
        Row(
            "checkpoint_overhead_vs_fair_young_daly",
            ours / mean["Young-Daly, fair"],
            "x",
            f"the machines' true mean life: {mean['Young-Daly, fair']:.2%}; goal <= 0.75",
        ),
        Row(
            "checkpoint_overhead_of_wrong_model",
            max(mean[f"programme, {name}"] for name in WRONG_HAZARDS) / ours,
            "x",
            "programme with a wrong model, against the fitted one; "
            + ", ".join(f"{name} {mean[f'programme, {name}'] / ours:.3f}" for name in WRONG_HAZARDS),
        ),
        Row("checkpoint_overhead_vs_none", ours / mean["none"], "x", f"no saves at all: {mean['none']:.2%}"),
        Row("dp_table_s", solve_s, "CPU s", "12 h of work, every minute of a day of ages; goal <= 1"),
    ]


def lemma_row(found: Ends) -> Row:
    return Row(
        "lemma_1_density_at_ends",
        found.simulated,
        "x",
        f"Fig. 4: of {PREEMPTIONS} preemptions that do not overlap, 2 min each, in the first and last minute of a day, "
        f"against the mean; the lemma says {found.lemma:.3f} at the very ends. Real machines: {found.real:.1f} in the "
        f"first hour, and {found.together:.0%} of "
        "preemptions have another within a minute",
    )


def type_rows(found: Sequence[TypeBag]) -> list[Row]:
    """The worst mean over seeds of any exponent and number of jobs."""

    def cells(of: Callable[[TypeBag], float], jobs: Callable[[int], bool]) -> dict[tuple[float, int], float]:
        kept = {(bag.exponent, bag.jobs) for bag in found if jobs(bag.jobs)}
        return {x: statistics.fmean(of(bag) for bag in found if (bag.exponent, bag.jobs) == x) for x in sorted(kept)}

    made = []
    for name, goal, jobs in (
        ("exploration_cost_vs_best_type", 1.10, lambda count: count > FEW),
        ("exploration_cost_vs_best_type_few_jobs", 1.15, lambda count: count <= FEW),
    ):
        ours, oracle = cells(lambda bag: bag.cost, jobs), cells(lambda bag: bag.oracle, jobs)
        if not ours:
            continue
        at, at_oracle = max(ours, key=ours.__getitem__), max(oracle, key=oracle.__getitem__)
        one = max(bag.cost for bag in found if jobs(bag.jobs))
        counts = sorted({count for _, count in ours})
        words = (
            f"worst of cpus^{min(EXPONENTS)}..{max(EXPONENTS)} and {counts[0]} to {counts[-1]} jobs: cpus^{at[0]}, "
            f"{at[1]} jobs; goal <= {goal:.2f}; mean {statistics.fmean(ours.values()):.3f}, worst single bag {one:.3f}"
            "; "
            f"an oracle that tries each type once: worst {oracle[at_oracle]:.3f} (cpus^{at_oracle[0]}, {at_oracle[1]} "
            f"jobs), mean {statistics.fmean(oracle.values()):.3f}; {sum(not bag.done for bag in found)} undone"
        )
        made.append(Row(name, ours[at], "x", words))
    return made


def explored_row(found: Sequence[Explored]) -> Row:
    worst = max(found, key=lambda bag: bag.regret)
    return Row(
        "selection_regret",
        statistics.fmean(bag.regret for bag in found),
        "share",
        f"whole bags of {JOBS} jobs of 64 CPUs, exploration included, above the best machine size alone; goal <= 0.10; "
        f"worst {worst.regret:.2f} ({worst.application}, {worst.longer} times as long); "
        f"{sum(not bag.done for bag in found)} undone",
    )


def choice_rows(found: Sequence[Chosen]) -> list[Row]:
    kept = statistics.fmean(chosen.usd["ours"] / chosen.usd["on demand"] for chosen in found)
    others = ", ".join(
        f"{name} {regret(found, name):.2f}" for name in ("Eq. 11 as printed", "portfolio", "cheapest per CPU")
    )
    return [
        Row(
            "selection_regret_of_known_lengths",
            regret(found, "ours"),
            "share",
            f"if it were known how long jobs take on each size: dearer than the best; {others}",
        ),
        Row("selection_cost_vs_ondemand", kept, "x", "gangs of 64 CPUs, each by its cheapest machines"),
    ]


def gang_row(found: Sequence[GangBag]) -> Row:
    words = ", ".join(
        f"n^{x}: {statistics.fmean(bag.regret for bag in found if bag.scaling == x):+.3f}"
        for x in sorted({bag.scaling for bag in found})
    )
    undone = sum(not bag.done for bag in found)
    against = (
        f"bags that may use 1, 2 or 4 machines a job, against the best fixed number; n machines as fast as {words}"
    )
    return Row("gang_regret", statistics.fmean(bag.regret for bag in found), "share", f"{against}; {undone} undone")


def bag_rows(bags: Mapping[bool, Mapping[float, Sequence[Outcome]]]) -> list[Row]:
    saved, unsaved = bags[True], bags[False]
    usd = {h: statistics.fmean(bag.usd / bag.on_demand_usd for bag in played) for h, played in saved.items()}
    rows = [
        Row(
            "cost_vs_ondemand",
            statistics.fmean(usd.values()),
            "x",
            "at 0.47 of the on-demand price; " + ", ".join(f"jobs of {h:g} h: {x:.3f}" for h, x in usd.items()),
        )
    ]
    lost = {h: statistics.fmean(bag.overhead for bag in played) for h, played in unsaved.items()}
    for hours, played in unsaved.items():
        kept = statistics.fmean(bag.overhead for bag in saved[hours])
        undone = sum(not bag.done for bag in (*played, *saved[hours]))
        against = f"{BAGS[hours]} jobs of {hours:g} h begun again when lost; with saves {kept:.4f}; {undone} undone"
        rows.append(Row(f"overhead_of_preemptions_{hours:g}h", lost[hours], "share", against))
    worst = max(lost.values())
    rows.append(
        Row(
            "overhead_of_preemptions",
            worst,
            "share",
            "the worst of these: work lost and done again, as a share of all work. Neither saves nor restarts nor "
            "waiting are in it; the paper: < 0.03",
        )
    )
    return rows


def type_bags(parts: Sequence[Split], *, quick: bool) -> list[tuple[Split, float, int, int]]:
    if quick:
        return [(parts[0], exponent, 60, SEEDS[0]) for exponent in (0.5, 1.1)]
    return [
        (parts[at % len(parts)], exponent, jobs, seed)
        for exponent in EXPONENTS
        for jobs in JOB_COUNTS
        for at, seed in enumerate(SEEDS[: 2 if jobs >= FEWER_SEEDS_FROM else None])
    ]


def _bag(asked: tuple[Split, float, int, int, bool]) -> Outcome:
    split, hours, jobs, seed, saves = asked
    return play_bag(split, hours, jobs, seed, saves=saves)


def main() -> None:
    asked = parser(__doc__.partition("\n\n")[0])
    add_plot_option(asked, "figures like 5, 7, 8, 10 and 11 of the paper")
    add_held_out_option(asked)
    args = asked.parse_args()
    check_plot(args.plot)
    try:
        parts = list(splits(2 if args.quick else 5))
    except DataError as missing:
        print(f"skipped: {missing} ({missing.hint})")
        return
    failed = by_length(parts)
    longer = overheads(parts, repeats=2 if args.quick else 40)
    found = [chosen for split in parts for chosen in choices(split)]
    seeds = range(1 if args.quick else 3)
    bags: dict[bool, dict[float, list[Outcome]]] = {True: {}, False: {}}
    with ProcessPoolExecutor(PROCESSES) as pool:
        for saves, played in bags.items():
            for hours, jobs in BAGS.items():
                played[hours] = list(pool.map(_bag, [(split, hours, jobs, x, saves) for split in parts for x in seeds]))
        gangs = list(pool.map(gang_bags, [(split, seed) for split in parts for seed in seeds]))
        types = list(pool.map(type_bag, type_bags(parts, quick=args.quick)))
        whole = list(pool.map(explored, [(split, at) for at, split in enumerate(parts[: 1 if args.quick else None])]))
    table("jobs lost, by hours of a job", failed, list(failed["ours"]))
    table("longer by saves and losses", longer, list(longer["programme"]))
    print()
    rows = [*reuse_rows(failed), lemma_row(ends(parts, 200 if args.quick else 20_000))]
    rows += [*saving_rows(longer, table_s(parts[0])), explored_row([bag for each in whole for bag in each])]
    rows += [*choice_rows(found), *type_rows(types)]
    publish([*rows, gang_row([bag for played in gangs for bag in played]), *bag_rows(bags)], args.json)
    if args.plot is not None:
        from benchmarks.scispot_plot import draw

        draw(args.plot, parts, failed, found, bags[True])


if __name__ == "__main__":
    main()
