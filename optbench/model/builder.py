"""``Model``: declare a problem in Python; ``build()`` makes a validated Instance of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from optbench.arguments import known_keywords_of_methods
from optbench.errors import ModelError
from optbench.model import assemble
from optbench.model.declarations import (
    NO_CLOCK,
    Kind,
    KindKey,
    LinkData,
    Mode,
    Place,
    Pool,
    PoolData,
    Task,
)
from optbench.model.declared_limits import DeclaredLimits
from optbench.model.instance import Instance
from optbench.power.profiles import Profile, profile, warn_of_overdraw
from optbench.rendering import RenderedInstance
from optbench.units import DAY_S


@known_keywords_of_methods("m", ModelError)
class Model(DeclaredLimits, RenderedInstance, kind="model"):
    """A scheduling problem under declaration.

    >>> m = Model("two jobs")
    >>> gpu = m.pool("gpu", count=1, idle_w=10)
    >>> a = m.task("a", modes=[m.mode(gpu, time_s=3, energy_j=600)])
    >>> b = m.task("b", modes=[m.mode(gpu, time_s=2, energy_j=400)], after=a)
    >>> m.minimize(energy_j=1.0)
    >>> m.build().num_tasks
    2
    """

    def __init__(
        self,
        name: str = "model",
        *,
        time: Literal["ticks", "seconds"] = "ticks",
        tick_s: float | Literal["auto"] = 1.0,
        horizon_s: float | None = None,
        preemptive: bool = False,
    ) -> None:
        """Times are whole ticks of ``tick_s`` seconds.

        With "auto" a tick is 1 ns, or the next coarser power of ten that keeps the horizon below
        2^48 ticks. ``time="seconds"`` is the same as ``tick_s="auto"``.
        """
        if time not in ("ticks", "seconds"):
            raise ModelError(f"model {name!r}: time is {time!r}; it must be 'ticks' or 'seconds'")
        super().__init__()
        self.name, self.horizon_s, self.preemptive = name, horizon_s, preemptive
        self.tick_s: float | Literal["auto"] = (
            "auto" if tick_s == "auto" or time == "seconds" else float(tick_s)
        )
        self.links: list[LinkData] = []
        self.linked: dict[int, int] = {}  # by sender, its receivers as bits
        self.kinds: dict[KindKey, int] = {}
        self.columns: dict[str, list[Any]] = {column: [] for column in assemble.TASK_COLUMNS}
        self.task_names: dict[int, str] = {}
        self.users: dict[str, int] = {}
        self.edges: tuple[list[Any], list[Any], list[Any]] = ([], [], [])

    # --- hardware ---

    def place(self, name: str, inside: Place | None = None) -> Place:
        """Declare a site or node; without ``inside`` it lies directly in the cluster."""
        if name in self.place_names:
            raise ModelError(f"two places are named {name!r}; names must differ")
        self.place_names.append(name)
        self.place_parent.append(inside.idx if inside is not None else 0)
        return Place(len(self.place_names) - 1, name)

    def pool(
        self,
        name: str,
        count: int = 1,
        *,
        profile: str | Path | Profile | None = None,
        at: Place | None = None,
        idle_w: float | None = None,
        sleep_w: float | None = None,
        sleeps: bool = False,
        wake_s: float | None = None,
        wake_j: float | None = None,
        memory_gb: float | None = None,
        clocks: Sequence[float] | None = None,
        failures_per_day: float | None = None,
    ) -> Pool:
        """Declare identical devices; arguments override the profile's power, memory and clocks.

        Devices that are not busy draw ``idle_w``, or ``sleep_w`` where the pool ``sleeps``. Those
        that take ``wake_s`` seconds or ``wake_j`` joules to wake sleep only where a schedule says
        so. ``failures_per_day`` is how often one device fails.
        """
        shape = _profile(profile)
        count = _count(count, f"pool {name!r}: count")
        if shape is None and clocks is not None:
            raise ModelError(
                f"pool {name!r}: clocks need a profile; without one, give each task explicit modes"
            )
        # Shipped profiles have no flags; for a file its reader has already issued a warning.
        if isinstance(profile, Profile):
            used = profile if clocks is None else replace(profile, clocks=tuple(clocks))
            warn_of_overdraw(used, f"pool {name!r}")

        def value(given: float | None, of_profile: str, default: float) -> float:
            return float(given if given is not None else getattr(shape, of_profile, default))

        self.pools.append(
            PoolData(
                name,
                count,
                at.idx if at is not None else 0,
                value(idle_w, "idle_w", 0.0),
                value(sleep_w, "sleep_w", 0.0),
                sleeps,
                value(memory_gb, "memory_gb", np.inf),
                shape,
                tuple(clocks if clocks is not None else shape.clocks if shape else ()),
                None if failures_per_day is None else float(failures_per_day) / DAY_S,
                wake_s,
                wake_j,
            )
        )
        return Pool(len(self.pools) - 1, name)

    def link(
        self,
        a: Pool | Iterable[Pool],
        b: Pool | Iterable[Pool],
        *,
        bandwidth_gbit_s: float = np.inf,
        latency_ms: float = 0.0,
        energy_j_per_gb: float = 0.0,
        both: bool = True,
    ) -> None:
        """Declare links between two pools or groups of pools, in both directions by default."""
        groups = [dict.fromkeys([end] if isinstance(end, Pool) else end) for end in (a, b)]
        names = " to ".join(
            repr(next(iter(group)).name) if group else "no pool" for group in groups
        )
        if not bandwidth_gbit_s > 0:
            raise ModelError(
                f"link {names}: bandwidth_gbit_s is {bandwidth_gbit_s!r}; it must be positive"
            )
        ways = [groups, groups[::-1]] if both and groups[0].keys() != groups[1].keys() else [groups]
        for senders, receivers in ways:
            for sender in senders:
                self._note_link(sender, receivers)
            sent, received = (tuple(pool.idx for pool in group) for group in (senders, receivers))
            self.links.append(
                LinkData(sent, received, 8.0 / bandwidth_gbit_s, latency_ms / 1e3, energy_j_per_gb)
            )

    def _note_link(self, sender: Pool, receivers: Iterable[Pool]) -> None:
        known = self.linked.get(sender.idx, 0)
        for receiver in receivers:
            if known >> receiver.idx & 1 and receiver != sender:
                raise ModelError(f"link {sender.name!r} to {receiver.name!r} is declared twice")
            known |= 1 << receiver.idx
        self.linked[sender.idx] = known

    def mode(
        self,
        pool: Pool | Mapping[Pool, int] | None,
        time_s: float,
        energy_j: float = 0.0,
        *,
        power_w: float | None = None,
        clock: float | None = None,
    ) -> Mode:
        """A mode for one unit of work: on a device of a pool, on ``{pool: devices, ...}``, or on
        None.

        ``power_w`` is the highest power drawn, which counts for power caps; by default it is
        energy_j / time_s.
        """
        needs = {} if pool is None else {pool: 1} if isinstance(pool, Pool) else pool
        power = power_w if power_w is not None else energy_j / time_s if time_s > 0 else 0.0
        return Mode(
            tuple(
                (p.idx, _count(n, f"mode on pool {p.name!r}: devices")) for p, n in needs.items()
            ),
            float(time_s),
            float(energy_j),
            float(power),
            NO_CLOCK if clock is None else float(clock),
        )

    # --- work ---

    def kind(
        self,
        name: str | None = None,
        *,
        modes: Iterable[Mode] | None = None,
        gpus: int | Iterable[int] = 1,
        pools: Iterable[Pool] | None = None,
        size_gflop: float | None = None,
    ) -> Kind:
        """Declare a kind of work for many tasks: one of the pools' profiles, or ``modes``."""
        label = f"kind {name!r}" if name is not None else f"kind {len(self.kinds)}"
        # With explicit modes the name is only a label; it need not be a kind of the profiles.
        return Kind(
            self._kind(label, name if modes is None else None, modes, gpus, pools, size_gflop)
        )

    def task(
        self,
        name: str | None = None,
        *,
        units: float = 1.0,
        kind: str | Kind | None = None,
        modes: Iterable[Mode] | None = None,
        after: Task | Iterable[Task] = (),
        data_gb: Mapping[Task, float] | None = None,
        gpus: int | Iterable[int] = 1,
        pools: Iterable[Pool] | None = None,
        size_gflop: float | None = None,
        release_s: float = 0.0,
        deadline_s: float | None = None,
        hard: bool | None = None,
        weight: float = 1.0,
        memory_gb: float = 0.0,
        user: str | int | None = None,
        checkpoint_s: float | None = None,
    ) -> Task:
        """Declare a task: explicit ``modes``, or a ``kind`` of the pools' profiles with GPU counts.

        ``size_gflop`` is the work of its problems that can run in parallel; without it they fill
        every device (see the DVFS law). ``data_gb`` is the data that each predecessor sends; its
        keys are predecessors too. A deadline is hard unless the objective includes tardiness;
        ``hard=`` overrides this. ``user`` says whose task it is, by any name. In a preemptive
        model an interrupted task keeps all it has done; with ``checkpoint_s`` only what it had
        done at its last checkpoint, one after every so many seconds of a run (inf: none).
        """
        idx = len(self.columns["units"])
        label = f"task {name!r}" if name is not None else f"task {idx}"
        if name is not None:
            self.task_names[idx] = name
        kind_idx = self._kind(label, kind, modes, gpus, pools, size_gflop)
        owner = self._users(user)
        given = (release_s, deadline_s, hard, weight, memory_gb, owner, checkpoint_s)
        self._add(1, label, units, kind_idx, *given)
        volumes = dict(data_gb or {})
        before = dict.fromkeys((after,) if isinstance(after, Task) else after) | dict.fromkeys(
            volumes
        )
        for source in before:
            self.precede(source, Task(idx), volumes.get(source, 0.0))
        return Task(idx)

    def tasks(
        self,
        units: Any,
        *,
        kind: str | Kind | Sequence[str] | None = None,
        modes: Iterable[Mode] | None = None,
        gpus: int | Iterable[int] = 1,
        pools: Iterable[Pool] | None = None,
        size_gflop: float | None = None,
        release_s: Any = 0.0,
        deadline_s: Any = None,
        hard: bool | None = None,
        weight: Any = 1.0,
        memory_gb: Any = 0.0,
        user: Any = None,
        checkpoint_s: Any = None,
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Declare tasks by arrays of equal length, or one value for all; returns indices."""
        units = np.atleast_1d(np.asarray(units, dtype=float))
        n, begin = len(units), len(self.columns["units"])
        label = f"tasks {begin} to {begin + n - 1}"
        if kind is None or isinstance(kind, (str, Kind)):
            kind_idx: Any = self._kind(label, kind, modes, gpus, pools, size_gflop)
        else:
            names, which = np.unique(np.asarray(kind, dtype=str), return_inverse=True)
            kind_idx = np.asarray(
                [self._kind(label, str(k), modes, gpus, pools, size_gflop) for k in names]
            )[which]
        owner = self._users(user)
        given = (release_s, deadline_s, hard, weight, memory_gb, owner, checkpoint_s)
        self._add(n, label, units, kind_idx, *given)
        return np.arange(begin, begin + n)

    def precede(self, source: Any, target: Any, data_gb: Any = 0.0) -> None:
        """``target`` starts after ``source`` and its data; tasks, indices or arrays of these."""
        ends = [
            np.atleast_1d(np.asarray(end.idx if isinstance(end, Task) else end))
            for end in (source, target)
        ]
        for end in ends:
            if end.dtype.kind not in "iu":
                raise ModelError(
                    f"precede: tasks are given by handle or index, not by {end[0].item()!r}"
                )
            bad = (end < 0) | (end >= len(self.columns["units"]))
            if bad.any():
                raise ModelError(
                    f"precede: there is no task {end[bad][0]}; {len(self.columns['units'])} are "
                    "declared so far"
                )
        rows = np.broadcast_arrays(ends[0], ends[1], np.asarray(data_gb, dtype=float))
        for column, values in zip(self.edges, rows, strict=True):
            column.extend(values.tolist())

    def _kind(
        self,
        label: str,
        kind: str | Kind | None,
        modes: Iterable[Mode] | None,
        gpus: int | Iterable[int],
        pools: Iterable[Pool] | None,
        size_gflop: float | None,
    ) -> int:
        if isinstance(kind, Kind) and modes is None:
            if gpus != 1 or pools is not None or size_gflop is not None:
                raise ModelError(
                    f"{label}: gpus, pools and size_gflop are arguments of m.kind(...); give "
                    "them there"
                )
            return kind.idx
        key = assemble.kind_key(label, kind, modes, gpus, pools, size_gflop)
        return self.kinds.setdefault(key, len(self.kinds))

    def _users(self, given: Any) -> Any:
        """The number of a user, or of each of many, by their names."""
        if given is None:
            return None
        if np.ndim(given) == 0:
            return self.users.setdefault(str(given), len(self.users))
        return [self.users.setdefault(str(each), len(self.users)) for each in given]

    def _add(self, n: int, label: str, *values: Any) -> None:
        """Append one or n rows to every task column."""
        for (column, default), value in zip(assemble.TASK_COLUMNS.items(), values, strict=True):
            value = default if value is None else value
            if n == 1 and not isinstance(value, (np.ndarray, list, tuple)):
                self.columns[column].append(value)
                continue
            rows = np.asarray(value)
            if rows.shape not in ((), (n,)):
                raise ModelError(
                    f"{label}: {column} has shape {rows.shape}; it must be one value or {n}"
                )
            self.columns[column].extend(np.broadcast_to(rows, n).tolist())

    def build(self) -> Instance:
        """Make the validated instance; a ModelError names what is invalid."""
        return assemble.instance_of(self)


def _count(value: Any, what: str) -> int:
    """A positive whole number, of any integer type."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 1:
        raise ModelError(f"{what} is {value!r}; it must be a positive integer")
    return int(value)


def _profile(given: str | Path | Profile | None) -> Profile | None:
    return profile(given) if isinstance(given, (str, Path)) else given


__all__ = ["Kind", "Mode", "Model", "Place", "Pool", "Task"]
