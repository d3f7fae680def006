"""Data of a co-location instance: GPU types, job types, true throughputs, arriving jobs.

Throughputs are in units of work per second (steps, requests). The arrays of GPU types g and job
types t, s are

    alone_per_s[g, t]       throughput of a job of type t alone; 0 where it does not run
    beside_per_s[g, t, s]   throughput of t beside a job of type s; 0 where the pair does not fit
    utilisation[g, t]       share of the GPU that a job of type t uses alone: an assumption
    known[g, t]             whether the throughputs of t on g are public from the start

A pair (g, t, s) is public where both (g, t) and (g, s) are. Policies see public throughputs and
their own noisy measurements; the arrays themselves are for the process and the verifier.

A job of a type with several GPUs is a gang: it takes that many GPUs of one type, alone. A job with
``stay_s`` > 0 is an inference service: it leaves after that time, and earns nothing above its
required rate. Any other job is a training job: it leaves when its ``work`` is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optbench.errors import ModelError

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
# Larger numbers are mistakes, and no computer would get through them.
MOST_GPUS, MOST_EPOCHS, MOST_REPLICAS, MOST_UNITS = 10**7, 10**6, 10**4, 1e30


@dataclass(frozen=True)
class GpuType:
    """One generation: its GPUs and the power of one, asleep, idle and fully used."""

    name: str
    count: int
    sleep_w: float
    idle_w: float
    full_w: float

    def __post_init__(self) -> None:
        if not 0 <= self.count <= MOST_GPUS:
            raise ModelError(
                f"gpu type {self.name!r}: count is {self.count}; it must be from 0 to {MOST_GPUS:,}"
            )
        if not 0 <= self.sleep_w <= self.idle_w <= self.full_w:
            raise ModelError(
                f"gpu type {self.name!r}: sleep_w {self.sleep_w}, idle_w {self.idle_w} and full_w "
                f"{self.full_w} must rise in this order, from 0"
            )


@dataclass(frozen=True)
class JobType:
    """What a user states of a job: name, model family, batch size and number of GPUs."""

    name: str
    family: str
    batch_size: float
    gpus: int = 1

    def __post_init__(self) -> None:
        for name, least in (("gpus", 1), ("batch_size", 0)):
            value = getattr(self, name)
            if not least <= value < MOST_GPUS or (name == "batch_size" and value == 0):
                raise ModelError(f"job type {self.name!r}: {name} is {value}; it must be above 0")

    @property
    def title(self) -> str:
        """Name and number of GPUs, for messages."""
        return self.name if self.gpus == 1 else f"{self.name} on {self.gpus} GPUs"


@dataclass(frozen=True)
class Jobs:
    """One entry per job, in order of arrival."""

    job_type: Ints
    arrival_s: Floats
    required_per_s: Floats
    work: Floats
    stay_s: Floats
    replicas: Ints

    @property
    def count(self) -> int:
        return len(self.job_type)

    @property
    def is_service(self) -> Bools:
        """Whether a job is an inference service."""
        return self.stay_s > 0


@dataclass(frozen=True)
class Outage:
    """GPUs of a type that are not available from one epoch to before another."""

    gpu_type: int
    gpus: int
    first_epoch: int
    end_epoch: int


@dataclass(frozen=True)
class Colocation:
    """A cluster, its true throughputs, and the jobs that arrive."""

    gpu_types: tuple[GpuType, ...]
    job_types: tuple[JobType, ...]
    alone_per_s: Floats
    beside_per_s: Floats
    utilisation: Floats
    known: Bools
    jobs: Jobs
    horizon_epochs: int
    outages: tuple[Outage, ...] = field(default=())
    epoch_s: float = 360.0
    # A job that does not fit costs idle power for this time.
    restart_s: float = 60.0
    profile_s: float = 60.0
    # Seconds without progress of a job that goes on with another GPU type, or after waiting.
    migration_s: float = 0.0
    # Standard deviation of a measurement, as a share of the throughput.
    noise: float = 0.03

    def __post_init__(self) -> None:
        check_sizes(self)
        check_tables(self)
        check_jobs(self)
        check_settings(self)

    @property
    def num_gpu_types(self) -> int:
        return len(self.gpu_types)

    @property
    def gangs(self) -> Ints:
        """GPUs of a job of each type."""
        return np.array([each.gpus for each in self.job_types], dtype=np.int64)

    @property
    def num_job_types(self) -> int:
        return len(self.job_types)

    def counts(self, epoch: int) -> Ints:
        """GPUs of each type that are available in an epoch."""
        out = np.array([each.count for each in self.gpu_types], dtype=np.int64)
        for outage in self.outages:
            if outage.first_epoch <= epoch < outage.end_epoch:
                out[outage.gpu_type] -= outage.gpus
        return np.maximum(out, 0)

    def watts(self) -> tuple[Floats, Floats, Floats]:
        """Power of one GPU of each type: asleep, idle, fully used."""
        sleep, idle, full = (
            np.array([getattr(each, name) for each in self.gpu_types])
            for name in ("sleep_w", "idle_w", "full_w")
        )
        return sleep, idle, full

    @property
    def known_pairs(self) -> Bools:
        """Whether the throughputs of a pair are public from the start."""
        both: Bools = self.known[:, :, None] & self.known[:, None, :]
        return both

    def median_alone_per_s(self) -> Floats:
        """Throughput of each job type on the median GPU type of those that run it."""
        runs = np.where(self.alone_per_s > 0, self.alone_per_s, np.nan)
        out: Floats = np.nanmedian(runs, axis=0)
        return out


def check_sizes(data: Colocation) -> None:
    """Refuse arrays whose sizes do not fit the declared types."""
    g, t, n = data.num_gpu_types, data.num_job_types, data.jobs.count
    if not g or not t:
        raise ModelError("an instance needs at least one GPU type and one job type")
    wanted: dict[str, tuple[Any, tuple[int, ...]]] = {
        "alone_per_s": (data.alone_per_s, (g, t)),
        "beside_per_s": (data.beside_per_s, (g, t, t)),
        "utilisation": (data.utilisation, (g, t)),
        "known": (data.known, (g, t)),
    }
    for name in ("arrival_s", "required_per_s", "work", "stay_s", "replicas"):
        wanted[f"jobs.{name}"] = (getattr(data.jobs, name), (n,))
    for name, (array, size) in wanted.items():
        if np.shape(array) != size:
            raise ModelError(f"{name} has the size {np.shape(array)}; it must be {size}")


def check_tables(data: Colocation) -> None:
    """Refuse throughputs that are no numbers or negative, and job types that nothing can run."""
    for name in ("alone_per_s", "beside_per_s"):
        _check_throughputs(data, name, getattr(data, name))
    _refuse(
        ~((data.utilisation > 0) & (data.utilisation <= 1)),
        lambda at: (
            f"utilisation{_cell(data, at)} is {data.utilisation[at]}; it lies above 0 and "
            "at most at 1"
        ),
    )
    fits = (data.beside_per_s > 0) & (np.swapaxes(data.beside_per_s, 1, 2) > 0)
    lone = (data.beside_per_s > 0) & ~fits
    _refuse(
        lone,
        lambda at: (
            f"beside_per_s{_cell(data, at)} is above 0 and that of its partner "
            "is 0; a pair fits for both or for neither"
        ),
    )
    gang = np.array([each.gpus > 1 for each in data.job_types])
    _refuse(
        fits & (gang[None, :, None] | gang[None, None, :]),
        lambda at: f"beside_per_s{_cell(data, at)} is above 0; jobs of several GPUs run alone",
    )
    runs_nowhere = ~(data.alone_per_s > 0).any(axis=0)
    _refuse(
        runs_nowhere,
        lambda at: f"job type {data.job_types[at[0]].title!r} runs on no GPU type alone",
    )


def _check_throughputs(data: Colocation, name: str, table: Floats) -> None:
    wrong = ~(table >= 0) | ~np.isfinite(table)
    remedy = "throughputs are finite and at least 0"
    _refuse(wrong, lambda at: f"{name}{_cell(data, at)} is {table[at]}; {remedy}")


def check_jobs(data: Colocation) -> None:
    """Refuse jobs that are out of order, empty, or that no GPU type can serve as required."""
    jobs, n = data.jobs, data.jobs.count
    if n == 0:
        raise ModelError("jobs: there are none; an instance needs at least one")
    outside = (jobs.job_type < 0) | (jobs.job_type >= data.num_job_types)
    _refuse(
        outside,
        lambda at: (
            f"job {at[0]}: job_type is {jobs.job_type[at]}; there are types "
            f"0 to {data.num_job_types - 1}"
        ),
    )
    if (np.diff(jobs.arrival_s) < 0).any() or jobs.arrival_s[0] < 0:
        raise ModelError("jobs.arrival_s must rise from job to job, from 0")
    _refuse(
        ~(jobs.required_per_s > 0),
        lambda at: f"job {at[0]}: required_per_s is {jobs.required_per_s[at]}; it must be above 0",
    )
    for name in ("work", "stay_s"):
        column = getattr(jobs, name)
        wrong = ~((column >= 0) & (column < MOST_UNITS))
        _refuse(wrong, _out_of_range(name, column))
    neither = ~((jobs.work > 0) ^ (jobs.stay_s > 0))
    _refuse(
        neither,
        lambda at: (
            f"job {at[0]}: work is {jobs.work[at]} and stay_s "
            f"{jobs.stay_s[at]}; exactly one of them is above 0"
        ),
    )
    many = (jobs.replicas < 1) | (jobs.replicas > MOST_REPLICAS)
    _refuse(
        many,
        lambda at: (
            f"job {at[0]}: replicas is {jobs.replicas[at]}; it must be from 1 to {MOST_REPLICAS:,}"
        ),
    )
    impossible = jobs.required_per_s > attainable_per_s(data) * (1 + 2.0**-40)
    _refuse(impossible, lambda at: _impossible(data, at[0]))


def attainable_per_s(data: Colocation) -> Floats:
    """The most that a job can attain: alone, all its replicas on its fastest GPU type."""
    gangs = data.gangs
    room = np.array([each.count for each in data.gpu_types])[:, None] // gangs[None, :]
    best = np.where(room > 0, data.alone_per_s, 0.0).max(axis=0)
    fastest = data.alone_per_s.max(axis=0)
    best = np.where(best > 0, best, np.where(room.max(axis=0) > 0, fastest, 0.0))
    single = gangs[data.jobs.job_type] == 1
    times = np.where(single, data.jobs.replicas, 1)
    out: Floats = best[data.jobs.job_type] * times
    return out


def _impossible(data: Colocation, job: int) -> str:
    kind = data.job_types[int(data.jobs.job_type[job])]
    best = attainable_per_s(data)[job]
    return (
        f"job {job} ({kind.title}) requires {data.jobs.required_per_s[job]:.6g} per second; it "
        f"alone cannot be served: its best GPUs give it {best:.6g}"
    )


def check_settings(data: Colocation) -> None:
    """Refuse times and shares out of range."""
    for name in ("epoch_s", "profile_s"):
        if not getattr(data, name) > 0:
            raise ModelError(f"{name} is {getattr(data, name)}; it must be above 0")
    for name in ("restart_s", "migration_s", "noise"):
        if not getattr(data, name) >= 0:
            raise ModelError(f"{name} is {getattr(data, name)}; it must be at least 0")
    for name in ("restart_s", "migration_s", "profile_s"):
        if getattr(data, name) > data.epoch_s:
            raise ModelError(
                f"{name} is {getattr(data, name)}; it must be at most an epoch, {data.epoch_s}"
            )
    if data.horizon_epochs * data.epoch_s <= data.jobs.arrival_s[-1]:
        raise ModelError(
            f"horizon_epochs is {data.horizon_epochs}: {data.horizon_epochs * data.epoch_s:g} s "
            f"are over before the last job arrives, at {data.jobs.arrival_s[-1]:g} s"
        )
    if data.horizon_epochs > MOST_EPOCHS:
        raise ModelError(f"horizon_epochs is {data.horizon_epochs}; at most {MOST_EPOCHS:,}")
    names = [each.name for each in data.gpu_types]
    if len(set(names)) < len(names):
        raise ModelError(f"two GPU types have one name: {', '.join(names)}")
    for outage in data.outages:
        check_outage(data, outage)


def check_outage(data: Colocation, outage: Outage) -> None:
    """Refuse an outage of GPUs that do not exist, or of no time."""
    if not 0 <= outage.gpu_type < data.num_gpu_types:
        raise ModelError(
            f"outage: gpu_type is {outage.gpu_type}; there are types 0 to {data.num_gpu_types - 1}"
        )
    count = data.gpu_types[outage.gpu_type].count
    if not 1 <= outage.gpus <= count:
        raise ModelError(f"outage: gpus is {outage.gpus}; the type has {count}")
    if not 0 <= outage.first_epoch < outage.end_epoch:
        raise ModelError(
            f"outage: it is from epoch {outage.first_epoch} to before {outage.end_epoch}; the end "
            "must be later"
        )


def _out_of_range(name: str, column: Floats) -> Callable[[Any], str]:
    return lambda at: f"job {at[0]}: {name} is {column[at]}; it must be from 0 to {MOST_UNITS:g}"


def _cell(data: Colocation, at: tuple[int, ...]) -> str:
    """Names of an entry of a table."""
    names = [data.gpu_types[at[0]].name, *(data.job_types[t].title for t in at[1:])]
    return f"[{', '.join(names)}]"


def _refuse(wrong: Any, words: Callable[[Any], str]) -> None:
    """Raise an error that names the first wrong entry and counts them."""
    places = np.argwhere(wrong)
    if len(places):
        more = f" (and {len(places) - 1:,} more)" if len(places) > 1 else ""
        raise ModelError(words(tuple(int(i) for i in places[0])) + more)
