"""Partitions one after the other: by mis_spectral's search, by METIS, or at random.

mis_spectral makes parts for devices: by their speeds, and on fewer devices where that may be
shorter. Where parts are placed and each device has several, equal parts are searched before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np

from optbench.plugins.protocol import Run
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints

from .. import mis_spectral
from .._metis_runs import MetisRuns
from ..mis_spectral.part_loads import PartLoads, node_loads, part_loads
from ..random_parts import dealt_parts

Source = Literal["mis_spectral", "metis", "random"]
# A part of every node, and the devices that the parts are made for, if any.
PlacedPartition: TypeAlias = tuple[Ints, Ints | None]
# Equal parts have one of so many shares of the budget.
EQUAL_WAYS = 4
# How much equal parts may exceed their fair share of the load.
EQUAL_TOLERANCE = 0.03
# Runs of METIS where neither work nor time is limited.
MOST_RUNS = 100


def placed_partitions(
    kind: Source, data: GnnTraining, run: Run, is_placed: bool
) -> Iterator[PlacedPartition]:
    """Yield partitions, with the devices that they are made for, until the budget is spent."""
    if kind == "mis_spectral":
        yield from _searched(data, run, is_placed)
    elif kind == "metis":
        yield from ((part, None) for part in _by_metis(data, run))
    else:
        yield dealt_parts(data.graph.num_nodes, data.num_parts, run.rng), None


def _searched(data: GnnTraining, run: Run, is_placed: bool) -> Iterator[PlacedPartition]:
    settings = mis_spectral.MisSpectral()
    if data.minimize == "cut":
        (loads,) = part_loads(data)
        budget = mis_spectral.CycleBudget.share_of(run, 0, 1)
        search = mis_spectral.PartitionSearch(data, loads, run, settings, budget)
        yield from ((part, None) for part in search.partitions())
        return
    cycles = 0
    if is_placed and data.num_parts >= 2 * data.num_devices:
        budget = mis_spectral.CycleBudget.share_of(run, 0, EQUAL_WAYS)
        search = mis_spectral.PartitionSearch(data, _equal_parts(data), run, settings, budget)
        yield from ((part, None) for part in search.partitions())
        cycles = search.cycles
    yield from mis_spectral.DeviceSearch(data, run, settings, cycles).plans()


def _equal_parts(data: GnnTraining) -> PartLoads:
    nodes, parts = data.graph.num_nodes, data.num_parts
    if data.max_part < nodes:
        size = np.ones(nodes, dtype=np.int64)
        most = min(data.max_part, int(np.ceil((1 + EQUAL_TOLERANCE) * nodes / parts)))
    else:
        size = node_loads(data)
        most = int(np.ceil((1 + EQUAL_TOLERANCE) * size.sum() / parts))
    return PartLoads(size, np.full(parts, most, dtype=np.int64))


def _by_metis(data: GnnTraining, run: Run) -> Iterator[Ints]:
    """METIS's default, then many seeds: partitions within max_part; where the cut alone counts,
    those that cut fewer edges than all before.
    """
    runs = MetisRuns(data)
    least: float = np.inf
    for cut, part in runs.many(run):
        if (cut < least or data.minimize != "cut") and runs.fits(part):
            least = cut
            yield part
        if least == 0:
            return
