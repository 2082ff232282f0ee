"""Bodies of requests and answers as types. The OpenAPI document is made from them.

The fields of a spec are interpreted by the same code as for files and Python calls (`specs.request`, `specs.build`);
here they only have types. Non-finite numbers, which JSON lacks, are null.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from shoestring.server.limits import MAX_PAGE, NAME_PATTERN

Name = Annotated[str, Meta(pattern=NAME_PATTERN, description="Names the run and its folder.")]
Quantity = str | float
"""As people write it: 20, "$20", "6h"."""
Mode = Literal["run", "simulate"]
ServicePhase = Literal[
    "queued",
    "starting",
    "running",
    "pausing",
    "paused",
    "parked",
    "interrupted",
    "concluded",
    "cancelled",
    "failed",
    "damaged",
]
ServiceStatus = Literal[
    "queued",
    "starting",
    "running",
    "paused",
    "completed",
    "cancelled",
    "out_of_budget",
    "deadline_reached",
    "failed",
    "damaged",
]


class Spec(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What to run: the fields of a spec file. Paths and commands are those of the server's machine."""

    name: Name | None = None
    kind: Literal["study", "bag"] | None = None
    command: str | list[str | int | float] | None = None
    function: str | None = None
    launch: Literal["each", "once"] | None = None
    space: dict[str, Any] | None = None
    given: list[dict[str, Any]] | None = None
    over: dict[str, Any] | None = None
    table: str | None = None
    minimize: str | None = None
    maximize: str | None = None
    trials: int | None = None
    max_steps: int | None = None
    fractions: list[float | str] | None = None
    constraints: str | list[str] | None = None
    slots: int | None = None
    budget: Quantity | None = None
    deadline: Quantity | None = None
    recipe: str | None = None
    options: dict[str, Any] | None = None
    seed: int | None = None
    max_machines: int | None = None
    max_failures: int | None = None
    time_limit: Quantity | None = None
    job_takes: Quantity | None = None
    slice_s: Quantity | None = None
    wind_down_s: Quantity | None = None
    keep_checkpoints: int | None = None
    on: str | None = None
    market: str | dict[str, Any] | None = None
    machines: list[str] | dict[str, Any] | None = None
    zones: list[str] | None = None
    provider: str | None = None
    speedup: float | None = None
    interruptions_per_hour: float | None = None
    simulate: dict[str, Any] | None = None


class Submit(Struct, forbid_unknown_fields=True, kw_only=True):
    """A run to queue. Submitting the same again returns the same run, and queues nothing."""

    spec: Spec
    mode: Mode = "run"
    """simulate: in virtual time; stored as NAME-simulated."""


class Best(Struct, kw_only=True):
    trial: int
    value: float | None
    config: dict[str, Any]


class ProgressOut(Struct, kw_only=True):
    """Progress of a run, as of its latest journal entry."""

    kind: Literal["study", "bag"]
    recipe: str
    trials: int
    """For a study: how many it may try. For a bag: its jobs."""
    by_status: dict[str, int]
    best: Best | None
    metric: str | None
    spent_usd: float
    reserved_usd: float
    budget_usd: float
    used_s: float
    deadline_s: float
    machines: int
    revocations: int
    lost_steps: int
    ending: str
    entries: int
    """Of the journal so far: the number of the last one."""
    line: str
    """The same as one line of text."""


class Run(Struct, kw_only=True):
    id: Name
    mode: Mode
    status: ServiceStatus
    """For scripts. `completed`, `cancelled`, `out_of_budget` and `deadline_reached` are final."""
    phase: ServicePhase
    """What `status` was called before it had words for every end: all of them are `concluded` here."""
    submitted_at: float | None
    """Seconds of UTC; null for runs that were not started by the service."""
    ahead: int | None
    """Runs before this one in the queue; null if it is not queued."""
    trouble: str
    """Why it could not be started or has stopped."""
    progress: ProgressOut | None
    """Null until it has started."""


class Runs(Struct, kw_only=True):
    items: list[Run]
    next: str | None
    """The cursor of the next page; null on the last one."""


class TrialOut(Struct, kw_only=True):
    trial: int
    status: str
    fraction: float
    """The data fraction it trained on."""
    feasible: bool | None
    """Does it satisfy all constraints? Null if there are none, or nothing is measured yet."""
    step: int
    value: float | None
    config: dict[str, Any]
    machines: list[str]
    seconds: float
    cost_usd: float
    revocations: int
    lost_steps: int
    failures: int
    checkpoint: str | None
    detail: str
    metrics: dict[str, float | None]
    """Its last report, all metrics."""
    attempts: int
    """How often it was started or resumed."""
    segment: str | None
    """Its latest segment, in whose folder its log is."""
    output: str | None
    """The last line its command printed."""


class ResultsOut(Struct, kw_only=True):
    metric: str | None
    items: list[TrialOut]
    next: int | None


class ExplanationLineOut(Struct, kw_only=True):
    since_start_s: float
    text: str


class ExplanationOut(Struct, kw_only=True):
    """Every event and decision about a trial, with reasons."""

    trial: int
    items: list[ExplanationLineOut]
    next: int | None


class ReceiptRowOut(Struct, kw_only=True):
    provider: str
    machine: str
    spot: bool
    leases: int
    hours: float
    trained_hours: float
    revoked: int
    refunded_usd: float
    charged_usd: float
    on_demand_usd: float


class ReceiptOut(Struct, kw_only=True):
    name: str
    rows: list[ReceiptRowOut]
    leases: int
    hours: float
    trained_hours: float
    starting_hours: float
    restoring_hours: float
    saving_hours: float
    redone_hours: float
    idle_hours: float
    revocations: int
    refunded_usd: float
    charged_usd: float
    on_demand_usd: float
    budget_usd: float
    deadline_s: float
    used_s: float
    lost_steps: int
    lost_s: float
    denied: int
    refused: int
    unused: int
    """Machines that were up and ended before a trial ran on them."""
    open_machines: int
    open_usd: float
    warnings: list[str] = []


class EventOut(Struct, omit_defaults=True, kw_only=True):
    """One server-sent event."""

    event: Literal["entry", "status", "end"]
    data: str
    """JSON: for an entry its line of the journal, for a status the run, for the end an empty object."""
    id: str = ""
    """For an entry: its number, for Last-Event-ID."""


class SlurmCallback(Struct, forbid_unknown_fields=True, kw_only=True):
    """A Slurm job has changed its state: the environment of jobcomp/script."""

    job_id: Annotated[str, Meta(pattern=r"^[0-9][0-9A-Za-z_.+-]{0,63}$")]
    state: Annotated[str, Meta(pattern=r"^[A-Z_]{1,32}$")]
    exit_code: Annotated[str, Meta(max_length=16)] = ""
    nodes: Annotated[str, Meta(max_length=4096)] = ""
    run: Name | None = None
    """The run it belongs to, if the caller knows."""

    def __post_init__(self) -> None:
        if any(text.endswith("\n") for text in (self.job_id, self.state, self.run or "")):  # `$` lets it pass
            raise ValueError("a name must not end with a line break")


class Heard(Struct, kw_only=True):
    woken: int
    """How many waiters there were in the service."""


class Health(Struct, kw_only=True):
    ok: bool


class ProblemOut(Struct, kw_only=True):
    """What is wrong with the request, and how to fix it."""

    error: str
    hint: str = ""


# -- queries -----------------------------------------------------------------------------------------------------------
Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE, description="The most items of one page.")]


class RunsPage(Struct, forbid_unknown_fields=True, kw_only=True):
    limit: Limit = 100
    cursor: Annotated[str, Meta(max_length=100, description="`next` of the page before.")] = ""


class ItemsPage(Struct, forbid_unknown_fields=True, kw_only=True):
    limit: Limit = 100
    cursor: Annotated[int, Meta(ge=0, le=10**12, description="`next` of the page before.")] = 0


class After(Struct, forbid_unknown_fields=True, kw_only=True):
    after: Annotated[int, Meta(ge=0, le=10**12, description="The last entry already known.")] = 0


class Nothing(Struct, forbid_unknown_fields=True):
    """No query."""


def fields_of(spec: Spec) -> dict[str, Any]:
    """The given fields, as in a spec file."""
    plain: dict[str, Any] = msgspec.to_builtins(spec)
    return {field: value for field, value in plain.items() if value is not None}
