"""The process of a co-location instance: epochs in which a policy places the jobs that are there.

The policy sees an ``Observation`` at the beginning of each epoch and answers with a ``Placement``.
It sees public throughputs, what its own runs measured (with noise), misfits that have happened, and
of each job what its user states: type, required rate, work left or the time that it stays. True
throughputs of anything else are in no observation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.allocation_rules import broken_rules
from optbench.shapes.colocation.allocations import Allocation, Placement, wrong_columns
from optbench.shapes.colocation.colocation_data import (
    Bools,
    Colocation,
    Floats,
    GpuType,
    Ints,
    JobType,
)
from optbench.shapes.colocation.epoch_physics import (
    NEVER,
    WAITING,
    Members,
    Misfit,
    epoch_effects,
)
from optbench.shapes.protocol.process import ActionError


@dataclass(frozen=True)
class Measurement:
    """The throughput of a job of one type in the epoch before; ``partner_type`` -1 is alone."""

    gpu_type: int
    job: int
    job_type: int
    partner_type: int
    per_s: float


@dataclass(frozen=True)
class PublicFacts:
    """What every policy of an instance knows from the start.

    Throughputs that are not public are NaN in ``alone_per_s`` and ``beside_per_s``."""

    gpu_types: tuple[GpuType, ...]
    job_types: tuple[JobType, ...]
    alone_per_s: Floats
    beside_per_s: Floats
    known: Bools
    utilisation: Floats
    epoch_s: float
    restart_s: float
    profile_s: float
    migration_s: float
    noise: float


@dataclass(frozen=True)
class PresentJobs:
    """The jobs in the system, in order of arrival; ``before`` is the GPU type of each in the epoch
    before (-1 waiting, -2 never run).
    """

    job: Ints
    job_type: Ints
    arrival_s: Floats
    required_per_s: Floats
    work_left: Floats
    leaves_s: Floats
    is_service: Bools
    replicas: Ints
    before: Ints


@dataclass(frozen=True)
class Observation:
    """The state at the beginning of an epoch; ``measurements`` and ``misfits`` are new ones."""

    epoch: int
    now_s: float
    counts: Ints
    jobs: PresentJobs
    last: Placement
    measurements: tuple[Measurement, ...]
    misfits: tuple[Misfit, ...]
    public: PublicFacts


class ColocationProcess:
    """One run of an instance."""

    def __init__(self, data: Colocation, seed: int) -> None:
        self._data = data
        self._rng = np.random.default_rng(seed)
        self._epoch = 0
        self._left = data.jobs.work.copy()
        self._before = np.full(data.jobs.count, NEVER, dtype=np.int64)
        self._known: set[Misfit] = set(public_misfits(data))
        self._measurements: tuple[Measurement, ...] = ()
        self._misfits: tuple[Misfit, ...] = ()
        self._placed: list[Placement] = []
        self._public = public_facts(data)
        self._skip_to_arrival()

    @property
    def done(self) -> bool:
        return self._epoch >= self._data.horizon_epochs or not self._remains().any()

    def observe(self) -> Observation:
        data, jobs = self._data, self._data.jobs
        here = np.flatnonzero(present(data, self._epoch, self._left))
        last = self._placed[-1] if self._placed else Placement.empty()
        return Observation(
            self._epoch,
            self._epoch * data.epoch_s,
            data.counts(self._epoch),
            PresentJobs(
                here,
                jobs.job_type[here],
                jobs.arrival_s[here],
                jobs.required_per_s[here],
                self._left[here],
                np.where(jobs.is_service, jobs.arrival_s + jobs.stay_s, np.inf)[here],
                jobs.is_service[here],
                jobs.replicas[here],
                self._before[here],
            ),
            last,
            self._measurements,
            self._misfits,
            self._public,
        )

    def act(self, action: Placement) -> None:
        if not isinstance(action, Placement):
            raise ActionError("a policy answers with a Placement (Placement.of_rows makes one)")
        wrong = wrong_columns(vars(action))
        if wrong is not None:
            raise ActionError(f"{wrong}; Placement.of_rows makes such rows")
        action = action.frozen()
        broken = broken_rules(self._data, self._epoch, action, self._left, self._known)
        if broken:
            raise ActionError(f"{broken[0].message} (constraint {broken[0].constraint!r})")
        data = self._data
        effects = epoch_effects(data, self._epoch, action, self._left, self._before)
        members = effects.members
        self._left = self._left - effects.progress
        self._left[np.isfinite(effects.completed_s)] = 0.0
        self._before = gpu_types_now(self._before, action, members)
        self._misfits = tuple(each for each in effects.misfits if each not in self._known)
        self._known |= set(self._misfits)
        noise = 1 + data.noise * self._rng.standard_normal(len(members.job))
        kind = data.jobs.job_type
        self._measurements = tuple(
            Measurement(
                int(action.gpu_type[members.row[k]]),
                int(members.job[k]),
                int(kind[members.job[k]]),
                self._partner_type(
                    members.row[k], k, members.partner[k], members.fails, members.row
                ),
                float(max(0.0, members.rate_per_s[k] * noise[k])),
            )
            for k in range(len(members.job))
            if not members.fails[k]
        )
        self._placed.append(action)
        self._epoch += 1
        self._skip_to_arrival()

    def _partner_type(self, row: int, k: int, partner: int, fails: Bools, rows: Ints) -> int:
        """The type of the job beside which a rate was measured: none where that one failed."""
        if partner < 0 or fails[rows == row].any():
            return -1
        return int(self._data.jobs.job_type[partner])

    def decision(self) -> Allocation:
        return Allocation.of_epochs(self._placed, range(len(self._placed)))

    def _remains(self) -> Bools:
        return remaining(self._data, self._epoch, self._left)

    def _skip_to_arrival(self) -> None:
        """Pass epochs in which no job is there; the one before the next arrival is the last."""
        while not self.done and not present(self._data, self._epoch, self._left).any():
            self._before = gpu_types_now(self._before)
            self._placed.append(Placement.empty())
            self._epoch += 1


def present(data: Colocation, epoch: int, left: Floats) -> Bools:
    """Whether a job can be placed in an epoch: it has arrived before it begins, and not left."""
    jobs, begin = data.jobs, epoch * data.epoch_s
    stays = np.where(jobs.is_service, jobs.arrival_s + jobs.stay_s > begin, left > 0)
    out: Bools = (jobs.arrival_s <= begin) & stays
    return out


def remaining(data: Colocation, epoch: int, left: Floats) -> Bools:
    """Whether a job is there or still to come."""
    jobs, begin = data.jobs, epoch * data.epoch_s
    out: Bools = np.where(jobs.is_service, jobs.arrival_s + jobs.stay_s > begin, left > 0)
    return out


def gpu_types_now(
    before: Ints, rows: Placement | None = None, members: Members | None = None
) -> Ints:
    """Return the GPU type of each job in an epoch that has been played: of replicas on several
    types the first one. A job that failed counts as waiting.
    """
    out: Ints = np.where(before == NEVER, NEVER, WAITING)
    if rows is None or members is None:
        return out
    ran = ~members.fails
    types = np.full(len(out), len(rows.gpu_type) + int(rows.gpu_type.max(initial=0)) + 1)
    np.minimum.at(types, members.job[ran], rows.gpu_type[members.row[ran]])
    placed = np.unique(members.job[ran])
    out[placed] = types[placed]
    return out


def public_facts(data: Colocation) -> PublicFacts:
    """Return what is public from the start; the rest is NaN."""
    return PublicFacts(
        data.gpu_types,
        data.job_types,
        np.where(data.known, data.alone_per_s, np.nan),
        np.where(data.known_pairs, data.beside_per_s, np.nan),
        data.known.copy(),
        data.utilisation.copy(),
        data.epoch_s,
        data.restart_s,
        data.profile_s,
        data.migration_s,
        data.noise,
    )


def public_misfits(data: Colocation) -> list[Misfit]:
    """Return the misfits that public throughputs show."""
    alone = np.argwhere(data.known & (data.alone_per_s == 0))
    pairs = np.argwhere(data.known_pairs & (data.beside_per_s == 0))
    found = [Misfit(int(g), int(t), -1) for g, t in alone]
    return found + [Misfit(int(g), int(t), int(s)) for g, t, s in pairs if t <= s]
