"""Common parts of both formulations: the end of time, latest ends, rates of metrics per joule, and
the transfer block.

**Transfers.** Let u_ar = 1 when the producer of edge e runs on pool a and ends in tariff period r
(one period where no varying tariff matters), v_b = 1 when its consumer runs on pool b. The product
w_abr = u_ar v_b of an edge whose lag or energy depends on the pools is linear and exact, since one
u and one v are 1:

    Σ_b w_abr = u_ar,    Σ_a,r w_abr = v_b,    w >= 0, no variable where a and b are not linked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Floats, Instance, Ints
from optbench.model.objective import MAKESPANS
from optbench.model.ragged import ragged
from optbench.model.windows import Windows, latest_ends, time_horizon, windows
from optbench.units import J_PER_KWH
from optbench.views.milp.arrays import BlockCollector

PRICED = frozenset({"cost_usd", "carbon_g"})
ENERGETIC = PRICED | {"energy_j"}


@dataclass(frozen=True, eq=False)
class Frame:
    """An instance with its time bounds: ``end`` is the end of time, ``latest`` the latest end of
    each task.
    """

    instance: Instance
    end: float
    windows: Windows
    latest: Floats

    @property
    def head(self) -> Floats:
        return self.windows.head

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each metric of the objective's first level."""
        return dict(self.instance.objective.levels[0])

    @property
    def wanted(self) -> frozenset[str]:
        """Metrics the objective or a limit names."""
        return frozenset(self.weights) | frozenset(self.instance.limits.metric_max)

    @property
    def needs_makespan(self) -> bool:
        """Whether a metric depends on the makespan: resting power does if it is paid until
        completion.
        """
        resting = self.instance.horizon is None and bool((self.instance.pools.rest_w > 0).any())
        return bool(self.wanted & set(MAKESPANS)) or (resting and bool(self.wanted & ENERGETIC))

    @property
    def varying(self) -> bool:
        """Whether a tariff that varies over time matters."""
        tariffs = self.instance.tariffs
        return tariffs is not None and len(tariffs.times) > 1 and bool(self.wanted & PRICED)

    @property
    def times(self) -> Floats:
        """Beginnings of the tariff periods that matter."""
        tariffs = self.instance.tariffs
        return tariffs.times.astype(float) if self.varying and tariffs is not None else np.zeros(1)

    def rates(self, metric: str) -> Floats:
        """``rates[pool, period]``: what one joule adds to the metric."""
        tariffs = self.instance.tariffs
        if metric == "energy_j":
            return np.ones((self.instance.num_pools, len(self.times)))
        assert tariffs is not None  # validated: a priced metric has a tariff
        table = tariffs.price_usd_per_kwh if metric == "cost_usd" else tariffs.carbon_g_per_kwh
        return np.asarray(table[:, : len(self.times)] / J_PER_KWH, dtype=float)

    @property
    def late_tasks(self) -> Ints:
        """Tasks that can be tardy."""
        tasks = self.instance.tasks
        return np.flatnonzero(np.isfinite(tasks.deadline) & ~tasks.deadline_hard)


def frame(instance: Instance, end: float | None = None) -> Frame:
    """Return the frame; ``end`` is a time by which some optimal schedule is known to have ended, if
    it is known.
    """
    known = windows(instance)
    top = time_horizon(instance) if end is None else min(end, time_horizon(instance))
    top = float(np.floor(top))
    return Frame(instance, top, known, latest_ends(instance, known, top))


@dataclass(frozen=True, eq=False)
class Carriers:
    """The binaries that define where a task runs: columns ``first + ptr[i]`` .. of task i, each
    with its pool and period.
    """

    first: int
    ptr: Ints
    pool: Ints
    period: Ints


@dataclass(frozen=True, eq=False)
class Transfers:
    """The block of transfer variables: column ``first + c`` is for ``edge[c]`` from ``sender[c]``
    to ``receiver[c]``.
    """

    first: int
    edge: Ints
    sender: Ints
    receiver: Ints
    period: Ints

    def cost(self, frame: Frame, metric: str) -> Floats:
        """Return what each adds to a metric that counts energy."""
        energy = frame.instance.transfer_j(
            self.sender, self.receiver, frame.instance.edges.data_gb[self.edge]
        )
        return np.asarray(energy * frame.rates(metric)[self.sender, self.period], dtype=float)

    def lag(self, instance: Instance) -> Floats:
        return np.asarray(
            instance.lag(self.sender, self.receiver, instance.edges.data_gb[self.edge]), dtype=float
        )


def pools_of(instance: Instance, task: int) -> Ints:
    """Primary pools of a task (-1: none)."""
    pairs = instance.pairs
    return np.unique(instance.modes.primary[pairs.mode[pairs.ptr[task] : pairs.ptr[task + 1]]])


def lags_of(instance: Instance, edge: int) -> Floats:
    """``lags[sender, receiver]`` of an edge over the pools of its two tasks."""
    a = pools_of(instance, int(instance.edges.source[edge]))
    b = pools_of(instance, int(instance.edges.target[edge]))
    return np.asarray(
        instance.lag(a[:, None], b[None, :], instance.edges.data_gb[edge]), dtype=float
    )


def edges_by_lag(frame: Frame) -> tuple[Floats, list[int], list[int]]:
    """Return the lag of each edge where it does not depend on the pools (NaN elsewhere), edges
    where it does, and edges that cost energy.
    """
    instance = frame.instance
    uniform, lagged, costly = np.zeros(len(instance.edges.source)), [], []
    for e in np.flatnonzero(instance.edges.data_gb > 0).tolist():
        lags = lags_of(instance, e)
        if (lags == lags.flat[0]).all() and np.isfinite(lags).all():
            uniform[e] = lags.flat[0]
        else:
            uniform[e] = np.nan
            lagged.append(e)
        a = pools_of(instance, int(instance.edges.source[e]))
        b = pools_of(instance, int(instance.edges.target[e]))
        spent = instance.transfer_j(a[:, None], b[None, :], instance.edges.data_gb[e])
        if frame.wanted & ENERGETIC and (spent > 0).any():
            costly.append(e)
    return uniform, lagged, costly


def add_transfers(
    sheet: BlockCollector, frame: Frame, edges: Sequence[int], carriers: Carriers
) -> Transfers:
    """Add the variables w of these edges, with their rows ``send`` and ``receive``."""
    instance = frame.instance
    labels: list[Ints] = [np.zeros((0, 4), dtype=np.int64)]
    for e in edges:
        i, j = int(instance.edges.source[e]), int(instance.edges.target[e])
        keys = np.unique(
            np.stack((carriers.pool, carriers.period))[:, carriers.ptr[i] : carriers.ptr[i + 1]],
            axis=1,
        ).T
        receivers = np.unique(carriers.pool[carriers.ptr[j] : carriers.ptr[j + 1]])
        which, b = np.repeat(np.arange(len(keys)), len(receivers)), np.tile(receivers, len(keys))
        a, period = keys[which].T if len(keys) else np.zeros((2, 0), dtype=np.int64)
        linked = np.isfinite(instance.lag(a, b, instance.edges.data_gb[e]))
        labels.append(np.stack((np.full(len(b), e), a, b, period), axis=1)[linked])
    label = np.concatenate(labels)
    first = sheet.add_columns("send", label, 0.0, 1.0)
    block = Transfers(first, *label.T)
    tasks = instance.edges.source[list(edges)], instance.edges.target[list(edges)]
    _link(
        sheet,
        "send_from",
        edges,
        tasks[0],
        carriers,
        (carriers.pool, carriers.period),
        block,
        (block.sender, block.period),
    )
    _link(
        sheet, "receive_at", edges, tasks[1], carriers, (carriers.pool,), block, (block.receiver,)
    )
    return block


def _link(
    sheet: BlockCollector,
    name: str,
    edges: Sequence[int],
    tasks: Ints,
    carriers: Carriers,
    parts: tuple[Ints, ...],
    block: Transfers,
    own: tuple[Ints, ...],
) -> None:
    """Add Σ w = Σ of the carriers of the edge's task, for each edge and each value of ``parts``."""
    which, cols = ragged(carriers.ptr[tasks], carriers.ptr[tasks + 1] - carriers.ptr[tasks])
    here = np.stack(
        [np.asarray(edges, dtype=np.int64)[which], *(part[cols] for part in parts)], axis=1
    )
    there = np.stack([block.edge, *own], axis=1)
    label, row = np.unique(np.concatenate((here, there)), axis=0, return_inverse=True)
    row = row.reshape(-1)
    mine = block.first + np.arange(len(there))
    sheet.add_rows(
        name,
        label,
        [(row[len(cols) :], mine, 1.0), (row[: len(cols)], carriers.first + cols, -1.0)],
        0.0,
        0.0,
    )
