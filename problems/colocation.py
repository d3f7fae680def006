"""Training jobs and inference services share GPUs of several generations, and slow each other down.

Up to two jobs share a GPU. How fast a job runs alone and beside another one stands in tables of
measured throughputs, of which a policy sees only a part: those of *public* families of job types.
The families that are held out are chosen before anything else is computed, and a new generation of
GPUs is public for no job type. A policy decides for epochs of ``epoch_s`` which jobs run on which
GPUs. The first level of the objective is the shortfall of the required rates, the second one the
energy up to a horizon that is common to all policies.

The default tables are those that the authors of Gavel measured (26 job types of 6 families on V100,
P100 and K80, at 1, 2, 4 and 8 GPUs; pairs at 1 GPU only). They hold neither power nor utilisation
nor requirements nor inference: these are drawn or assumed as ``_colocation_jobs`` and
``_colocation_power`` state. The horizon, over which sleeping GPUs draw power in every policy, is

    last arrival + horizon_factor × (required GPU-seconds / GPUs + the longest job)

where the longest job is that with the most time at its required rate. Measured over all kinds of
arrivals and loads from 0.5 to 1.1, random placement completes all work within a factor of 0.9,
blind best fit, which leaves a job where it is, within 1.6 (20 seeds each), and the slowest GPUs
first, all of them shared, within 2.5 to 3.

With ``aligned`` jobs arrive at the beginnings of epochs, as in the rounds of Gavel's simulator: the
offered load then differs from ``load`` by at most the share of half an epoch in the span. Without
it every job waits for half an epoch on average, whoever decides, which alone is a violation of 2.5
to 3 % of the time in the system at the default ``duration_s``.

Random numbers come from streams of the seed, one each for families, job types, requirements and
durations, arrivals, and failures: what one parameter changes leaves the draws of the others alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path

import numpy as np

from optbench.arguments import require
from optbench.errors import nearest
from optbench.plugins.protocol import Problem
from optbench.shapes.colocation.colocation_data import (
    Bools,
    Colocation,
    Ints,
    Jobs,
    Outage,
)
from optbench.shapes.colocation.colocation_shape import ColocationShape
from optbench.shapes.protocol.shaped_instance import ShapedInstance

from ._colocation_jobs import (
    PHI,
    Requirements,
    Wanted,
    draw_types,
    fitted_times,
    held_out_families,
    jobs_of,
    poisson_times,
    required_gpu_s,
)
from ._colocation_power import (
    GAVEL_PROFILES,
    UTILISATIONS,
    Utilisation,
    generation_profiles,
    gpu_types,
    utilisation,
)
from ._colocation_tables import OwnTables, read_tables
from ._colocation_traces import GAVEL_TRACES, alibaba_times, gavel_trace, own_jobs
from ._gavel import gavel_tables
from ._interference import interference_tables
from ._throughput_tables import ThroughputTables

NAME = "colocation"
DEFAULT_JOBS, DEFAULT_LOAD = 135, 0.9
HORIZON_FACTOR = 1.75
DRAWN = ("poisson", "alibaba")
# An epoch is an action of a policy, of which a process takes a million.
MOST_EPOCHS = 1_000_000
# Streams of random numbers of a seed.
FAMILIES, TYPES, WORK, ARRIVALS, FAILURES = range(5)


@dataclass(frozen=True)
class ColocationCluster(Problem):
    """Jobs that share GPUs of mixed generations, with throughputs that are known only in part.

    ``gpus`` are split evenly over the GPU types of ``tables``: those of Gavel, ``synthetic`` ones
    (``types`` job types on ``generations``, drawn by ``tables_seed``), or a CSV file. ``trace`` is
    ``poisson``, a trace of Gavel (``max_min_fairness``, ``artifact_evaluation``, ``msr``),
    ``alibaba`` (its times), or a CSV file of jobs. ``load`` is the GPU-seconds required per second
    and GPU, to which arrivals are fitted (default 0.9; the times of a file of jobs stay unless it
    is given). A share ``strangers`` of drawn jobs is of held-out families (``held_out``, by
    default drawn), a share ``gangs`` has several GPUs, and a share ``services`` of all jobs are
    inference services. At their required rate jobs take a median of ``duration_s``. ``replicas``
    is the number of GPUs on which a job of one GPU may run at once. ``failures`` GPUs fail for
    ``repair_s`` each. ``new_generation`` is the share of the arrivals' span after which the GPUs
    of the newest type appear (V100, or the last one of other tables); nothing of them is public.
    With ``aligned`` arrivals are rounded to beginnings of epochs.
    """

    gpus: int = 24
    jobs: int | None = None
    load: float | None = None
    requirements: Requirements = "tight"
    services: float = 0.3
    trace: str = "poisson"
    tables: str = "gavel"
    types: int = 200
    generations: int = 4
    tables_seed: int = 0
    strangers: float = 0.6
    held_out: tuple[str, ...] = ()
    gangs: float = 0.05
    duration_s: float = 7200.0
    replicas: int = 1
    utilisation: Utilisation = "feature"
    epoch_s: float = 360.0
    noise: float = 0.03
    migration_s: float = 0.0
    restart_s: float = 60.0
    profile_s: float = 60.0
    failures: int = 0
    repair_s: float = 14_400.0
    new_generation: float | None = None
    aligned: bool = True
    horizon_factor: float = HORIZON_FACTOR

    def __post_init__(self) -> None:
        for name in ("gpus", "types", "replicas"):
            self._require(getattr(self, name) >= 1, name, "at least 1")
        self._require(self.generations >= 1, "generations", "at least 1")
        self._require(self.jobs is None or self.jobs >= 2, "jobs", "none, or at least 2")
        holds = self.load is None or 0 < self.load < np.inf
        self._require(holds, "load", "none, or positive")
        known = self.requirements in PHI
        self._require(known, "requirements", f"one of {', '.join(PHI)}")
        known = self.utilisation in UTILISATIONS
        self._require(known, "utilisation", f"one of {', '.join(UTILISATIONS)}")
        for name in ("services", "strangers", "gangs"):
            self._require(0 <= getattr(self, name) <= 1, name, "a share from 0 to 1")
        for name in ("duration_s", "epoch_s", "repair_s", "profile_s", "horizon_factor"):
            self._require(0 < getattr(self, name) < np.inf, name, "positive")
        for name in ("noise", "migration_s", "restart_s"):
            self._require(0 <= getattr(self, name) < np.inf, name, "at least 0")
        for name in ("migration_s", "restart_s", "profile_s"):
            within = getattr(self, name) <= self.epoch_s
            self._require(within, name, f"at most an epoch, {self.epoch_s:g} s")
        self._require(self.failures >= 0, "failures", "at least 0")
        share = self.new_generation
        self._require(share is None or 0 < share < 1, "new_generation", "none, or within 0 and 1")
        for name, default in (("types", 200), ("generations", 4), ("tables_seed", 0)):
            holds = getattr(self, name) == default or self.tables == "synthetic"
            self._require(holds, name, f"{default} unless tables=synthetic")

    def _require(self, holds: bool, field: str, allowed: str) -> None:
        require(holds, NAME, field, getattr(self, field), allowed)

    def instance(self, seed: int = 0) -> ShapedInstance:
        data = self.data(seed)
        return ColocationShape().instance(f"colocation-{data.jobs.count}-{seed}", data)

    def data(self, seed: int = 0) -> Colocation:
        """Return the data of the instance."""
        own = self._tables()
        tables = own.tables
        counts = self._counts(tables.gpu_names)
        held_out = self._held_out(seed, own)
        jobs = self._jobs(seed, own, held_out, counts)
        used = utilisation(tables.job_types, len(counts), self.utilisation)
        return Colocation(
            gpu_types(tables.gpu_names, counts.tolist(), own.profiles, self.tables),
            tables.job_types,
            tables.alone_per_s,
            tables.beside_per_s,
            used,
            self._known(own, held_out),
            jobs,
            self._horizon(own, jobs),
            self._outages(seed, own, counts, jobs),
            epoch_s=self.epoch_s,
            restart_s=self.restart_s,
            profile_s=self.profile_s,
            migration_s=self.migration_s,
            noise=self.noise,
        )

    def _tables(self) -> OwnTables:
        if self.tables == "gavel":
            return OwnTables(gavel_tables(), GAVEL_PROFILES)
        if self.tables == "synthetic":
            made = synthetic_tables(self.types, self.generations, self.tables_seed)
            return OwnTables(made, generation_profiles(made.gpu_names))
        self._require_file("tables", ("gavel", "synthetic"))
        return read_tables(self.tables)

    def _require_file(self, field: str, words: tuple[str, ...]) -> None:
        """Refuse a value that is none of the words and no file."""
        value = getattr(self, field)
        is_file = Path(value).is_file()
        self._require(is_file, field, f"{', '.join(words)}, or a CSV file that exists")

    def _counts(self, gpu_names: tuple[str, ...]) -> Ints:
        """GPUs of each type: equally many, one more of the first types where they do not divide."""
        number = len(gpu_names)
        self._require(self.gpus >= number, "gpus", f"at least one per GPU type, {number}")
        counts = np.full(number, self.gpus // number, dtype=np.int64)
        counts[: self.gpus % number] += 1
        return counts

    def _held_out(self, seed: int, own: OwnTables) -> tuple[str, ...]:
        job_types = own.tables.job_types
        if not self.held_out:
            return held_out_families(np.random.default_rng([seed, FAMILIES]), job_types)
        families = sorted({each.family for each in job_types})
        for family in self.held_out:
            require(
                family in families,
                NAME,
                "held_out",
                list(self.held_out),
                f"families of the tables; {family!r} is none: {nearest(family, families)}",
            )
        some = set(self.held_out) != set(families)
        require(some, NAME, "held_out", list(self.held_out), "less than all families")
        return tuple(sorted(set(self.held_out)))

    def _known(self, own: OwnTables, held_out: tuple[str, ...]) -> Bools:
        public = np.array([each.family not in held_out for each in own.tables.job_types])
        known = np.tile(public, (len(own.tables.gpu_names), 1))
        if self.new_generation is not None:
            known[self._newest(own)] = False
        return known

    def _newest(self, own: OwnTables) -> int:
        """The newest GPU type: the first one of Gavel's tables, else the last one."""
        return 0 if self.tables == "gavel" else len(own.tables.gpu_names) - 1

    def _jobs(self, seed: int, own: OwnTables, held_out: tuple[str, ...], counts: Ints) -> Jobs:
        wanted = self._wanted(seed, own, held_out, counts)
        rng = np.random.default_rng([seed, WORK])
        jobs = jobs_of(
            rng, wanted, own.tables, self.requirements, self.services, self.duration_s,
            self.replicas,
        )  # fmt: skip
        load = self.load
        if load is None:
            if self._is_file:
                return jobs
            load = DEFAULT_LOAD
        times = jobs.arrival_s
        if self.trace == "artifact_evaluation":
            times = poisson_times(np.random.default_rng([seed, ARRIVALS]), jobs.count)
        gpu_s = float(required_gpu_s(jobs, own.tables).sum())
        arrival_s = fitted_times(times, gpu_s, self.gpus, load)
        if self.aligned:
            arrival_s = np.round(arrival_s / self.epoch_s) * self.epoch_s
        return Jobs(
            jobs.job_type, arrival_s, jobs.required_per_s, jobs.work, jobs.stay_s, jobs.replicas
        )

    @property
    def _is_file(self) -> bool:
        """Whether the trace is a file of jobs."""
        return self.trace not in (*DRAWN, *GAVEL_TRACES)

    def _wanted(self, seed: int, own: OwnTables, held_out: tuple[str, ...], counts: Ints) -> Wanted:
        job_types = own.tables.job_types
        if self.trace in GAVEL_TRACES:
            return gavel_trace(self.trace, job_types, self.jobs)
        if self._is_file:
            self._require_file("trace", (*DRAWN, *GAVEL_TRACES))
            return own_jobs(self.trace, job_types, self.jobs)
        number = DEFAULT_JOBS if self.jobs is None else self.jobs
        rng = np.random.default_rng([seed, ARRIVALS])
        draw = alibaba_times if self.trace == "alibaba" else poisson_times
        shares = (self.strangers, self.gangs)
        kinds = draw_types(
            np.random.default_rng([seed, TYPES]), number, own.tables, held_out, shares, counts
        )
        return Wanted.of_types(kinds, draw(rng, number))

    def _horizon(self, own: OwnTables, jobs: Jobs) -> int:
        """Epochs until the common horizon."""
        time_s = np.where(jobs.is_service, jobs.stay_s, jobs.work / jobs.required_per_s)
        busy_s = float(required_gpu_s(jobs, own.tables).sum()) / self.gpus
        drain_s = self.horizon_factor * (busy_s + float(time_s.max()))
        epochs = ceil((float(jobs.arrival_s[-1]) + drain_s) / self.epoch_s)
        few = f"longer: the horizon has {epochs:,} epochs, more than {MOST_EPOCHS:,}"
        self._require(epochs <= MOST_EPOCHS, "epoch_s", few)
        return epochs

    def _outages(self, seed: int, own: OwnTables, counts: Ints, jobs: Jobs) -> tuple[Outage, ...]:
        """GPUs that fail at random times, and the GPUs of a generation until it appears."""
        rng = np.random.default_rng([seed, FAILURES])
        last_s = float(jobs.arrival_s[-1])
        out = []
        for _ in range(self.failures):
            gpu_type = int(rng.choice(len(counts), p=counts / counts.sum()))
            first = int(rng.uniform(0.0, last_s) // self.epoch_s)
            end = first + max(1, round(self.repair_s / self.epoch_s))
            out.append(Outage(gpu_type, 1, first, end))
        if self.new_generation is not None:
            appears = ceil(self.new_generation * last_s / self.epoch_s)
            newest = self._newest(own)
            out.append(Outage(newest, int(counts[newest]), 0, max(1, appears)))
        return tuple(out)


@lru_cache(maxsize=4)
def synthetic_tables(types: int, generations: int, seed: int) -> ThroughputTables:
    """Return the tables of the interference model; an instance's seed does not change them."""
    made = interference_tables(types, generations, seed)
    made.alone_per_s.setflags(write=False)
    made.beside_per_s.setflags(write=False)
    return made
