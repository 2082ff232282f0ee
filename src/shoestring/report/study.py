"""Study: what a run came to. All of it is derived from the journal, so a run can be looked at while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError
from shoestring.kernel.history import Entry
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Config
from shoestring.report.explain import Explanation, tell, why
from shoestring.report.receipt import Receipt, receipt_of
from shoestring.report.recommendation import answer_of, plain_answer
from shoestring.report.results import Results, results_of
from shoestring.report.trials import Tally, Trials, show_config
from shoestring.runs.folder import RunFolder
from shoestring.units import show_number, show_usd

if TYPE_CHECKING:
    from shoestring.optimizer.observations import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class BestTrial:
    """The trial with the best value, and where its saved state is."""

    number: int
    metric: str
    value: float
    step: int
    config: Config
    machines: tuple[str, ...]
    checkpoint: Path | None

    def __str__(self) -> str:
        parts = [f"{self.metric} {show_number(self.value)}", show_config(self.config)]
        if self.machines:
            parts.append(f"on {self.machines[-1]}")
        if self.checkpoint is not None:
            parts.append(f"checkpoint in {self.checkpoint}")
        return f"Trial {self.number}: {', '.join(part for part in parts if part)}"

    __repr__ = __str__


class Study:
    """A run's results: `best`, `answer`, `trials`, `results`, `receipt`, `why(number)`, `log()`, `spent`."""

    def __init__(self, entries: Callable[[], Iterable[Entry]], folder: RunFolder | None = None) -> None:
        self._entries = entries
        self.folder = folder
        self._tally: Tally | None = None

    @classmethod
    def in_folder(cls, folder: RunFolder) -> Study:
        return cls(folder.entries, folder)

    def entries(self) -> Iterable[Entry]:
        """The journal, from the beginning."""
        return self._entries()

    def refresh(self) -> Study:
        """Read the journal again: a run that goes on has more to tell."""
        self._tally = None
        return self

    @property
    def state(self) -> RunState:
        """The folded journal, for those who want to know everything."""
        return self._told().state

    @property
    def spec(self) -> RunSpec:
        return self.state.the_spec

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def metric(self) -> str:
        """What the study follows; a bag need not follow anything."""
        return self.spec.metric or "value"

    @property
    def status(self) -> str:
        """ "running", "interrupted" (its controller is gone), "paused", "parked" (a policy broke) or "concluded"."""
        state = self.state
        if state.goes_on:
            return "running" if self.folder is None or self.folder.is_driven() else "interrupted"
        return {"pausing": "paused", "parking": "parked"}.get(state.phase, state.phase)

    @property
    def trials(self) -> Trials:
        return Trials(self._told().rows(), self.metric)

    @property
    def results(self) -> Results:
        """A row for each job: its parameters, what it reported and printed last, what it took. `.to_pandas()` too."""
        folder = None if self.folder is None else self.folder.path
        return results_of(self._told().rows(), folder)

    @property
    def best(self) -> BestTrial | None:
        """The best trial, or None as long as no trial has reported the metric."""
        state = self.state
        if state.best is None:
            return None
        job = state.jobs[state.best]
        saved = None if job.checkpoint is None or self.folder is None else self.folder.checkpoint(job.checkpoint.name)
        return BestTrial(
            number=job.number,
            metric=self.metric,
            value=job.best,
            step=job.step,
            config=job.config,
            machines=tuple(self._told().machines.get(job.id, ())),
            checkpoint=saved if saved is not None and saved.exists() else None,  # a simulated one is only a number
        )

    @property
    def without_best(self) -> str:
        """What to say of a run that has no best trial."""
        tried = any(job.feasible is False for job in self.state.jobs.values())
        return "no trial keeps every limit" if tried else "no trial has come to a value"

    @property
    def answer(self) -> Answer | None:
        """The configuration to use, how good it is and whether it keeps every limit, each measured or predicted; None
        as long as nothing is known. Without limits and parts of the data it is the best trial."""
        return answer_of(self.state, self._told().question)

    @property
    def receipt(self) -> Receipt:
        return receipt_of(self.state)

    @property
    def spent(self) -> float:
        """Dollars billed so far."""
        return self.state.spent_usd

    def why(self, number: int) -> Explanation:
        """What happened to a trial, when, and why: the decisions in words."""
        jobs = self.state.jobs
        found = next((job.id for job in jobs.values() if job.number == number), None)
        if found is None:
            raise SpecError(
                f"there is no trial {number} in {self.name}",
                hint=f"trials have numbers from 0 to {len(jobs) - 1}" if jobs else "no trial has been invented yet",
            )
        return why(self._entries(), found)

    def log(self) -> Explanation:
        """The decision log of the whole run, in words."""
        return Explanation(tell(self._entries()))

    def to_plain(self) -> dict[str, Any]:
        """The results as plain data, for JSON."""
        best = self.best
        return {
            "name": self.name,
            "status": self.status,
            "ending": self.state.ending,
            "metric": self.metric,
            "direction": self.spec.direction,
            "best": None if best is None else self.trials[best.number].to_plain(),
            **self._plain_answer(),
            "receipt": self.receipt.to_plain(),
            "trials": self.trials.to_plain(),
        }

    def _plain_answer(self) -> dict[str, Any]:
        """Only where it says more than the best trial does."""
        if not (self.spec.constraints or self.spec.fractions):
            return {}
        answer = self.answer
        return {"answer": None if answer is None else plain_answer(answer)}

    def __repr__(self) -> str:
        best = self.best
        return (
            f"<Study {self.name}, {self.status}: {len(self.state.jobs)} trials, {show_usd(self.spent)} spent, "
            f"{'no result yet' if best is None else f'best {best.metric} {show_number(best.value)}'}>"
        )

    def _repr_html_(self) -> str:
        best = self.best
        ranked = sorted(self.trials, key=lambda row: self.spec.rank(row.value))
        return (
            f"<h4>{escape(self.name)}: {escape(self.status)}</h4>"
            f"<p>{escape('no result yet' if best is None else str(best))}</p>"
            f"{self.receipt._repr_html_()}{Trials(ranked, self.metric)._repr_html_()}"
        )

    def _told(self) -> Tally:
        if self._tally is None:
            tally = Tally()
            for entry in self._entries():
                tally.add(entry)
            if tally.state.spec is None:
                where = "this journal" if self.folder is None else str(self.folder.path)
                raise SpecError(f"nothing has happened yet in {where}", hint="start it with the command it was made by")
            self._tally = tally
        return self._tally


Bag = Study
"""A bag of jobs has the same results; its trials are the jobs that were given."""
