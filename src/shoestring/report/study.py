"""Study: the results of a run. All of it is derived from the journal, so an active run can be inspected too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoestring.errors import SpecError
from shoestring.kernel.history import Entry
from shoestring.kernel.spec import RunSpec
from shoestring.kernel.state import RunState
from shoestring.kernel.types import Config
from shoestring.report.receipt import Receipt, receipt_of
from shoestring.report.status import RunStatus, run_status
from shoestring.report.trials import Tally, Trials, show_config
from shoestring.report.unspent import Unspent, unspent_of
from shoestring.report.waiting import why_nothing_runs
from shoestring.runs.folder import RunFolder
from shoestring.units import show_number, show_usd

if TYPE_CHECKING:
    from shoestring.optimizer.observations import Answer
    from shoestring.report.explain import Explanation
    from shoestring.report.results import Results


@dataclass(frozen=True, slots=True, kw_only=True)
class BestTrial:
    """The trial with the best value, and where its checkpoint is."""

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

    def __init__(
        self, entries: Callable[[], Iterable[Entry]], folder: RunFolder | None = None, tally: Tally | None = None
    ) -> None:
        """`tally`: of these entries, if they are folded already."""
        self._entries = entries
        self.folder = folder
        self._tally = tally

    @classmethod
    def in_folder(cls, folder: RunFolder) -> Study:
        return cls(folder.entries, folder)

    def entries(self) -> Iterable[Entry]:
        """The journal, from the beginning."""
        return self._entries()

    def refresh(self) -> Study:
        """Read the journal again: an active run has new entries."""
        self._tally = None
        return self

    @property
    def state(self) -> RunState:
        """The folded journal: everything that is known of the run."""
        return self._tallied().state

    @property
    def spec(self) -> RunSpec:
        return self.state.the_spec

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def metric(self) -> str:
        """The metric to optimize; a bag need not have one."""
        return self.spec.metric or "value"

    @property
    def status(self) -> RunStatus:
        """ "running", "paused", "completed", "cancelled", "out_of_budget", "deadline_reached" or "failed"."""
        return run_status(self.state, driven=self.folder is None or self.folder.is_driven())

    @property
    def status_detail(self) -> str:
        """Why it has this status, in a sentence; empty while it is running."""
        if self.status == "paused" and self.state.active:
            return "its controller is gone: run the same command again to resume"
        return self.state.ending

    @property
    def unspent(self) -> Unspent | None:
        """What was left, and how to use it, where the work is done and most of the budget is not spent."""
        return unspent_of(self.state)

    @property
    def trials(self) -> Trials:
        return Trials(self._tallied().rows(), self.metric)

    @property
    def results(self) -> Results:
        """A row for each job: parameters, last metrics, last line printed, time and cost. `.to_pandas()` too."""
        from shoestring.report.results import results_of

        folder = None if self.folder is None else self.folder.path
        return results_of(self._tallied().rows(), folder)

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
            machines=tuple(self._tallied().machines.get(job.id, ())),
            checkpoint=saved if saved is not None and saved.exists() else None,  # a simulated one has no files
        )

    @property
    def without_best(self) -> str:
        """Why there is no best trial, and what became of the trials; empty if there is one, and for a bag without a
        metric, if a job has finished."""
        from shoestring.report.no_result import why_no_best

        state = self.state
        has_result = state.best is not None or (self.spec.metric is None and state.by_status["finished"])
        return "" if has_result else why_no_best(state)

    @property
    def answer(self) -> Answer | None:
        """The recommended configuration, its objective and whether it satisfies every constraint, each measured or
        predicted; None as long as nothing is known: `without_best` says why. Without constraints and data fractions it
        is the best trial."""
        from shoestring.report.recommendation import answer_of

        return answer_of(self.state, self._tallied().question)

    @property
    def receipt(self) -> Receipt:
        return receipt_of(self.state)

    @property
    def spent(self) -> float:
        """Dollars billed so far."""
        return self.state.spent_usd

    def why(self, number: int) -> Explanation:
        """Every event and decision about a trial, with times and reasons."""
        from shoestring.report.explain import why

        jobs = self.state.jobs
        found = next((job.id for job in jobs.values() if job.number == number), None)
        if found is None:
            raise SpecError(
                f"there is no trial {number} in {self.name}",
                hint=f"trials have numbers from 0 to {len(jobs) - 1}" if jobs else "no trial has been added yet",
            )
        return why(self._entries(), found, self.state)

    def log(self) -> Explanation:
        """The decision log of the whole run, as sentences."""
        from shoestring.report.explain import Explanation, tell

        return Explanation(tell(self._entries()))

    def to_plain(self) -> dict[str, Any]:
        """The results as plain data, for JSON."""
        best = self.best
        return {
            "name": self.name,
            "status": self.status,
            "ending": self.state.ending,
            "waiting": why_nothing_runs(self.state),
            "metric": self.metric,
            "direction": self.spec.direction,
            "best": None if best is None else self.trials[best.number].to_plain(),
            "without_best": self.without_best,
            **self._plain_answer(),
            **({} if (unspent := self.unspent) is None else {"unspent": unspent.to_plain()}),
            "receipt": self.receipt.to_plain(),
            "trials": self.trials.to_plain(),
        }

    def _plain_answer(self) -> dict[str, Any]:
        """Only where it differs from the best trial."""
        if not (self.spec.constraints or self.spec.fractions):
            return {}
        from shoestring.report.recommendation import plain_answer

        answer = self.answer
        return {"answer": None if answer is None else plain_answer(answer)}

    def __repr__(self) -> str:
        best = self.best
        return (
            f"<Study {self.name}, {self.status}: {len(self.state.jobs)} trials, {show_usd(self.spent)} spent, "
            f"{'no result yet' if best is None else f'best {best.metric} {show_number(best.value)}'}>"
        )

    def _repr_html_(self) -> str:
        from html import escape

        best = self.best
        ranked = sorted(self.trials, key=lambda row: self.spec.rank(row.value))
        return (
            f"<h4>{escape(self.name)}: {escape(self.status)}</h4>"
            f"<p>{escape('no result yet' if best is None else str(best))}</p>"
            f"{self.receipt._repr_html_()}{Trials(ranked, self.metric)._repr_html_()}"
        )

    def _tallied(self) -> Tally:
        if self._tally is None:
            self._tally = Tally()
            for entry in self._entries():
                self._tally.add(entry)
        if self._tally.state.spec is None:
            self._tally = None
            where = "this journal" if self.folder is None else str(self.folder.path)
            raise SpecError(f"nothing has happened yet in {where}", hint="start it with the command that created it")
        return self._tally


Bag = Study
"""A bag of jobs has the same results; its trials are the given jobs."""
