"""SciSpot: job bags on preemptible VMs, placed and checkpointed by their lifetime distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoestring.errors import SpecError
from shoestring.kernel.policy import Policy
from shoestring.kernel.spec import RunSpec
from shoestring.policies.checkpointing.retention import Retention
from shoestring.policies.housekeeping.closing import Closing
from shoestring.policies.housekeeping.renewal import Renewal
from shoestring.policies.placement.scispot.candidates import place_with_cpus
from shoestring.policies.placement.scispot.gang_size import Gangs
from shoestring.policies.placement.scispot.policy import SciSpot
from shoestring.policies.search.run_to_completion import Given, RandomSearch
from shoestring.recipes.options.checkpointing import checkpointing_policies
from shoestring.recipes.options.model_files import lifetime_source
from shoestring.recipes.options.parse import Options
from shoestring.recipes.options.placement import pinning
from shoestring.values import as_whole

if TYPE_CHECKING:
    from shoestring.models.lifetimes.source import LifetimeSource


def scispot(spec: RunSpec) -> Sequence[Policy]:
    """A bag of jobs on preemptible VMs, placed and saved by VM lifetimes (lifetimes, gangs, cpus_per_job)."""
    options = Options(spec)
    lifetimes = lifetime_source(options)
    saves = checkpointing_policies(options, "programme", lifetimes)
    gangs = _gangs(options, lifetimes)
    options.finish()
    search: Policy = Given() if spec.given else RandomSearch()
    return (search, *pinning(spec), *gangs, SciSpot(lifetimes), *saves, Renewal(), Closing(), Retention())


def _gangs(options: Options, lifetimes: LifetimeSource) -> tuple[Gangs, ...]:
    """The options `gangs`, how many machines may work on one job together, one number or several, comma-separated; and
    `cpus_per_job`, from which number and type follow."""
    if options.is_given("cpus_per_job"):
        return (Gangs(lifetimes, (), _cpus_per_job(options)),)
    if not options.is_given("gangs"):
        return ()
    spec, given = options.spec, options.spec.options["gangs"]
    parts = given.split(",") if isinstance(given, str) else (given,)
    counts = tuple(sorted({as_whole(part, "options.gangs") for part in parts}))
    if counts[0] < 1:
        raise SpecError(
            f"options.gangs={given!r}: {counts[0]} machines cannot run a job", hint='list counts, e.g. "1,2,4"'
        )
    if counts[-1] > spec.max_machines:
        raise SpecError(
            f"options.gangs={given!r}: at most {spec.max_machines} may be rented at once",
            hint=f"raise max_machines to {counts[-1]}, or remove larger counts",
        )
    _refuse_roles(spec, f"options.gangs={given!r}")
    return () if counts == (1,) else (Gangs(lifetimes, counts),)


def _cpus_per_job(options: Options) -> int:
    spec, cpus = options.spec, options.whole("cpus_per_job", 1, least=1)
    said = f"options.cpus_per_job={cpus}"
    if options.is_given("gangs"):
        raise SpecError(f"{said} and options.gangs both say how many machines a job has", hint="remove one of the two")
    _refuse_roles(spec, said)
    fewest = min(
        (place_with_cpus(x, cpus, spec.slots).count for x in spec.listings if x.slots >= spec.slots), default=1
    )
    if fewest > spec.max_machines:
        raise SpecError(
            f"{said} needs at least {fewest} machines, and at most {spec.max_machines} may be rented at once",
            hint=f"raise max_machines to {fewest}, or allow larger machine types",
        )
    return cpus


def _refuse_roles(spec: RunSpec, said: str) -> None:
    if spec.space.roles:
        raise SpecError(
            f"{said} chooses machines for every job, "
            f"but {', '.join(spec.space.roles.values())} in the space would choose them too",
            hint="remove one of the two",
        )
