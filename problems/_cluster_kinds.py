"""Kinds of work of gpu_cluster: category and matrix dimension, with their modes on every pool.

A problem of dimension d is a product of two d × d matrices, 2 d³ operations that can run at once.
A unit is the work that the reference device, one A100, does in a second at its top clock, so that
units of a task are its seconds on that device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optbench.model.instance import Bools, Floats, Ints, Modes
from optbench.power.dvfs import Law
from optbench.power.profiles import Profile, profile
from optbench.power.roofline import law_of_intensity, with_equal_launches

from ._cluster_hardware import Hardware

CATEGORIES = ("training", "inference", "matrix", "analytics")
DIMENSIONS = tuple(range(200, 1801, 100))
REFERENCE = "A100-PCIe"
# Operations per byte. A product of d × d matrices in half precision moves three of them once:
# 2 d³ / (6 d²) = d / 3. Analytics (scans, joins, aggregations) is modelled with 2 operations per
# byte; the sparse products and stencils of Williams, Waterman and Patterson (Roofline, CACM 2009)
# have 0.25 to 0.5 per byte without tensor cores.
MATRIX_BYTES_SHARE, ANALYTICS_FLOP_PER_BYTE = 3.0, 2.0
# The largest dimension that a category runs on CPU sockets (modelled: above it a socket takes more
# than ten times as long as an A100; analytics is bound by memory and runs everywhere).
CPU_LARGEST = {"training": 400, "inference": 900, "matrix": 900, "analytics": DIMENSIONS[-1]}
# Categories of which a task may use several GPUs of one node.
GANGED = ("training", "matrix")
CPU_LEVELS = 2


@dataclass(frozen=True, order=True)
class ClusterKind:
    """A kind of work; its name says both of its parts."""

    category: str
    dimension: int

    @property
    def name(self) -> str:
        return f"{self.category}-{self.dimension}"

    @property
    def size_gflop(self) -> float:
        return 2 * self.dimension**3 / 1e9

    @property
    def on_cpus(self) -> bool:
        return self.dimension <= CPU_LARGEST[self.category]

    def law(self, shape: Profile) -> Law:
        """The law of a unit of the profile, before it is divided by the reference's."""
        if self.category == "matrix":
            law = law_of_intensity(shape, self.dimension / MATRIX_BYTES_SHARE)
        elif self.category == "analytics":
            law = law_of_intensity(shape, ANALYTICS_FLOP_PER_BYTE)
        else:
            law = shape.law(self.category)
        return with_equal_launches(law)

    def reference_s(self) -> float:
        """Seconds that the reference device takes for a unit of the profile."""
        return self.law(profile(REFERENCE)).time_per_unit_s(1, 1.0, self.size_gflop)

    def relative_s(self, shape: Profile) -> float:
        """Seconds per unit on one device of a profile at its top clock."""
        return self.law(shape).time_per_unit_s(1, 1.0, self.size_gflop) / self.reference_s()


def levels(shape: Profile, count: int) -> list[float]:
    """Clock levels of the profile, spread evenly, the top one first."""
    rows = np.unique(np.rint(np.linspace(len(shape.clocks) - 1, 0, count)).astype(int))
    return [shape.clocks[row] for row in rows[::-1].tolist()]


@dataclass(frozen=True, eq=False)
class _Points:
    """Operating points of all shapes: shape, devices and clock of each."""

    shape_idx: Ints
    devices: Ints
    clock: Floats
    is_cpu: Bools

    def values(self, hardware: Hardware, kind: ClusterKind) -> Floats:
        """Time, energy and power per point: rounded to µs, to mJ, and up to mW."""
        reference_s = kind.reference_s()
        laws = [kind.law(shape) for shape in hardware.shapes]
        rows = []
        for t, n, clock in zip(
            self.shape_idx.tolist(), self.devices.tolist(), self.clock.tolist(), strict=True
        ):
            time_s = laws[t].time_per_unit_s(n, clock, kind.size_gflop) / reference_s
            power_w = laws[t].power_w(n, clock, kind.size_gflop)
            rows.append(
                (round(time_s, 6), round(power_w * time_s, 3), math.ceil(power_w * 1e3) / 1e3)
            )
        return np.array(rows)


def _points(hardware: Hardware, clocks: int, gang: int) -> _Points:
    rows = []
    for t, shape in enumerate(hardware.shapes):
        cpu = hardware.is_cpu(t)
        for k in range(1 if cpu else gang.bit_length()):
            for clock in levels(shape, min(clocks, CPU_LEVELS) if cpu else clocks):
                rows.append((t, 2**k, clock, cpu))
    return _Points(*(np.array(column) for column in zip(*rows, strict=True)))


def mode_table_of(
    hardware: Hardware, kinds: Sequence[ClusterKind], clocks: int, gang: int
) -> Modes:
    """All modes of the kinds: by pool, by number of devices, by clock."""
    points = _points(hardware, clocks, gang)
    rows_of = [np.flatnonzero(points.shape_idx == t) for t in range(len(hardware.shapes))]
    # Template of a kind that may do all: the pool and the operating point of each mode.
    per_pool = [rows_of[t] for t in hardware.shape_idx.tolist()]
    point = np.concatenate(per_pool)
    pool = np.repeat(np.arange(len(per_pool)), [len(rows) for rows in per_pool])
    fits = points.devices[point] <= hardware.pool_count[pool]
    point, pool = point[fits], pool[fits]
    columns, pools, points_used, ptr = [], [], [], [0]
    for kind in kinds:
        keep = np.ones(len(point), dtype=bool)
        if not kind.on_cpus:
            keep &= ~points.is_cpu[point]
        if kind.category not in GANGED:
            keep &= points.devices[point] == 1
        columns.append(points.values(hardware, kind)[point[keep]])
        pools.append(pool[keep])
        points_used.append(point[keep])
        ptr.append(ptr[-1] + int(keep.sum()))
    time_s, energy_j, power_w = np.concatenate(columns).T.copy()
    used = np.concatenate(points_used)
    return Modes(
        tuple(kind.name for kind in kinds),
        np.array(ptr, dtype=np.int64),
        time_s,
        energy_j,
        power_w,
        points.clock[used],
        req_ptr=np.arange(len(used) + 1, dtype=np.int64),
        req_pool=np.concatenate(pools).astype(np.int64),
        req_count=points.devices[used].astype(np.int64),
    )
