"""What schedulers that do not tell GPU generations apart know and do.

Each job type has one throughput for all GPUs, the mean of what is public or was measured alone, and
each pair of jobs is taken to share a GPU like time slices. The share of a GPU that a job needs is
its required rate over that throughput; a job type that was never measured needs ``UNKNOWN``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from optbench.shapes.colocation.allocations import NOBODY, Placement
from optbench.shapes.colocation.colocation_process import Observation
from optbench.shapes.colocation.epoch_physics import Misfit

# The share of a GPU that is set aside for a job of which nothing is known.
UNKNOWN = 0.5


@dataclass
class MeanThroughputs:
    """One throughput per job type, whatever the GPU."""

    total: dict[int, float] = field(default_factory=dict)
    runs: dict[int, int] = field(default_factory=dict)
    misfits: set[Misfit] = field(default_factory=set)

    def learn(self, seen: Observation) -> None:
        """Take public throughputs at the first observation, and new measurements."""
        if not self.runs:
            for g, t in np.argwhere(np.nan_to_num(seen.public.alone_per_s) > 0).tolist():
                self._add(t, float(seen.public.alone_per_s[g, t]))
            self.misfits |= set(public_misfits_of(seen))
        for each in seen.measurements:
            if each.partner_type == NOBODY:
                self._add(each.job_type, each.per_s)
        self.misfits |= set(seen.misfits)

    def _add(self, job_type: int, per_s: float) -> None:
        self.total[job_type] = self.total.get(job_type, 0.0) + per_s
        self.runs[job_type] = self.runs.get(job_type, 0) + 1

    def share(self, job_type: int, required_per_s: float) -> float:
        """The share of a GPU that a job is taken to need."""
        if job_type not in self.runs:
            return UNKNOWN
        return required_per_s / (self.total[job_type] / self.runs[job_type])

    def may_stand(self, gpu_type: int, one: int, other: int = NOBODY) -> bool:
        """Whether job types are not known to be a misfit on a GPU type."""
        pair = (one, NOBODY) if other == NOBODY else tuple(sorted((one, other)))
        return Misfit(gpu_type, pair[0], pair[1]) not in self.misfits


def public_misfits_of(seen: Observation) -> Iterator[Misfit]:
    """Yield the misfits that public throughputs show."""
    public = seen.public
    for g, t in np.argwhere(public.alone_per_s == 0).tolist():
        yield Misfit(g, t, NOBODY)
    for g, t, s in np.argwhere(public.beside_per_s == 0).tolist():
        if t <= s:
            yield Misfit(g, t, s)


@dataclass
class Shelf:
    """One GPU, or the GPUs of a gang: its type and its jobs (index in the observation)."""

    gpu_type: int
    jobs: list[int]
    used: float


@dataclass
class Shelves:
    """GPUs that are in use and free ones, for a scheduler that packs jobs one after the other."""

    seen: Observation
    known: MeanThroughputs
    free: list[int]
    taken: list[Shelf] = field(default_factory=list)

    def fits_beside(self, shelf: Shelf, job: int) -> bool:
        """Whether a job may join the one on a GPU."""
        kind, gangs = self.seen.jobs.job_type, self.seen.public.job_types
        other = shelf.jobs[0]
        single = gangs[kind[job]].gpus == gangs[kind[other]].gpus == 1
        return (
            single
            and len(shelf.jobs) == 1
            and self.known.may_stand(shelf.gpu_type, int(kind[job]), int(kind[other]))
        )

    def take_free(self, job: int, need: float) -> bool:
        """Put a job on free GPUs of the first type that has enough of them."""
        kind = int(self.seen.jobs.job_type[job])
        gpus = self.seen.public.job_types[kind].gpus
        for g in dict.fromkeys(self.free):
            if self.free.count(g) >= gpus and self.known.may_stand(g, kind):
                for _ in range(gpus):
                    self.free.remove(g)
                self.taken.append(Shelf(g, [job], need))
                return True
        return False

    def placement(self) -> Placement:
        """Return the rows of all GPUs in use."""
        job = self.seen.jobs.job
        rows = [
            (shelf.gpu_type, int(job[shelf.jobs[0]]), int(job[shelf.jobs[1]]))
            if len(shelf.jobs) > 1
            else (shelf.gpu_type, int(job[shelf.jobs[0]]), NOBODY)
            for shelf in self.taken
        ]
        return Placement.of_rows(rows)


def needs(seen: Observation, known: MeanThroughputs) -> list[float]:
    """The share of a GPU that each present job is taken to need."""
    jobs = seen.jobs
    pairs = zip(jobs.job_type.tolist(), jobs.required_per_s.tolist(), strict=True)
    return [known.share(kind, required) for kind, required in pairs]
