"""Jobs that follow others under the same key: the second is made from the outcome of the first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from optbench.execute.base import Job, JobOutcome


@dataclass
class FollowingJobs:
    """``waiting`` are the second jobs, which an executor runs before all that have not begun."""

    waiting: list[Job] = field(default_factory=list)
    _followed: dict[str, Job] = field(default_factory=dict)
    _first: dict[str, JobOutcome] = field(default_factory=dict)

    def began(self, job: Job) -> None:
        """Note a job that has been sent, in case another follows it."""
        if job.then is not None:
            self._followed[job.key] = job

    def complete(self, outcome: JobOutcome) -> JobOutcome | None:
        """Return the outcome of a job and of the one that follows it; None while that runs."""
        if outcome.key in self._first:
            return replace(self._first.pop(outcome.key), check=outcome)
        job = self._followed.pop(outcome.key, None)
        following = None if job is None or job.then is None else job.then(outcome)
        if following is None:
            return outcome
        self._first[outcome.key] = outcome
        self.waiting.append(following)
        return None

    def clear(self) -> None:
        for kept in (self.waiting, self._followed, self._first):
            kept.clear()
