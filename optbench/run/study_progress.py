"""The state of a running study: cells done, remaining time, best gap, contradictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from optbench.model.measures import gap
from optbench.model.result import OPTIMAL_GAP
from optbench.run.best_known import exceeds, sign_of
from optbench.store.records import Record
from optbench.study.cells import Cell


class StudyWatch:
    """Receives records as cells end; ``jobs`` cells run at a time."""

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self.total = self.done = self.failed = self.proved = 0
        self.best_gap: float | None = None
        self.best_title = ""
        self._waiting: Counter[str] = Counter()
        self._took: dict[str, tuple[int, float]] = {}
        self._bounds: dict[str, float] = {}
        self._reached: dict[str, tuple[float, str]] = {}
        self._denied: dict[str, str] = {}

    def begin(self, known: Iterable[Record], waiting: Iterable[Cell], total: int) -> None:
        """Start from a complete plan: the stored records and the cells to run."""
        waiting = list(waiting)
        self.total, self.done = total, total - len(waiting)
        self._waiting = Counter(cell.label for cell in waiting)
        for record in known:
            self._look(record)

    def take(self, record: Record) -> str | None:
        """Record a finished cell; return a message if it contradicts another."""
        self.done += 1
        label = record.cell.label
        self._waiting[label] -= 1
        count, total_s = self._took.get(label, (0, 0.0))
        self._took[label] = count + 1, total_s + record.total_s
        return self._look(record)

    def remaining_s(self) -> float | None:
        """Estimate the seconds until the last cell is done: the mean time of each solver's cells,
        divided by the number of jobs.

        A solver without a finished cell counts with the mean of the others; without any finished
        cell the result is None.
        """
        if not self._took:
            return None
        cells = sum(count for count, _ in self._took.values())
        mean_s = sum(total_s for _, total_s in self._took.values()) / cells
        means = {label: total / count for label, (count, total) in self._took.items()}
        waiting = {label: number for label, number in self._waiting.items() if number > 0}
        work = sum(number * means.get(label, mean_s) for label, number in waiting.items())
        longest = max((means.get(label, mean_s) for label in waiting), default=0.0)
        return max(work / self.jobs, longest)

    def _look(self, record: Record) -> str | None:
        self.failed += record.failed
        if record.failed:
            return None
        cell = record.cell
        if cell.kind == "bound":
            if isinstance(record.bound, float):
                self._bounds[cell.instance_hash] = record.bound
        elif isinstance(record.objective, float):
            self._rate(record, record.objective)
        elif record.status == "infeasible":
            self._denied[cell.instance_hash] = cell.title
        return self._contradiction(cell.instance_hash, record)

    def _rate(self, record: Record, objective: float) -> None:
        instance = record.cell.instance_hash
        sign = sign_of(record.cell.sense)
        if instance not in self._reached or sign * objective < sign * self._reached[instance][0]:
            self._reached[instance] = (objective, record.cell.title)
        lows = [low for low in (self._bounds.get(instance), record.bound) if isinstance(low, float)]
        found = gap(objective, max(lows, key=lambda low: sign * low, default=None))
        if found is not None and (self.best_gap is None or found < self.best_gap):
            self.best_gap, self.best_title = found, record.cell.title
        self.proved += found is not None and found <= OPTIMAL_GAP

    def _contradiction(self, instance: str, record: Record) -> str | None:
        if instance not in self._reached:
            return None
        value, title = self._reached[instance]
        if instance in self._denied:
            denier = self._denied.pop(instance)
            reached = f"{title} reached {value!r} and the verifier confirmed it"
            return f"false claim: {denier} says that it is infeasible, but {reached}"
        lows = {
            record.cell.title: record.bound,
            "the instance's bounding": self._bounds.get(instance),
        }
        for who, low in lows.items():
            if isinstance(low, float) and exceeds(low, value, record.cell.sense):
                return (
                    f"false bound: {who} says {low!r}, but {title} reached {value!r} and the "
                    "verifier confirmed it"
                )
        return None
