"""Partitions one after the other: by mis_spectral's search, by METIS, or at random.

mis_spectral balances parts by the speed of the devices that the identity gives them to. Where
parts are placed otherwise and a device has several, equal parts are searched as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Literal

import numpy as np

from optbench.plugins.protocol import Run
from optbench.shapes.gnn_training.training_data import GnnTraining, Ints

from .. import mis_spectral
from .._metis_runs import MetisRuns
from ..mis_spectral.part_loads import PartLoads, node_loads, part_loads
from ..random_parts import dealt_parts

Source = Literal["mis_spectral", "metis", "random"]
# How much equal parts may exceed their fair share of the load.
EQUAL_TOLERANCE = 0.03
# Runs of METIS where neither work nor time is limited.
MOST_RUNS = 100


def partition_source(
    kind: Source, data: GnnTraining, run: Run, is_placed: bool
) -> Callable[[], Iterator[Ints]]:
    """Return what yields partitions until the run's budget is spent."""
    return {
        "mis_spectral": lambda: _searched(data, run, is_placed),
        "metis": lambda: _by_metis(data, run),
        "random": lambda: iter([dealt_parts(data.graph.num_nodes, data.num_parts, run.rng)]),
    }[kind]


def _searched(data: GnnTraining, run: Run, is_placed: bool) -> Iterator[Ints]:
    settings = mis_spectral.MisSpectral()
    for loads in _ways_of_balancing(data, is_placed):
        yield from mis_spectral.PartitionSearch(data, loads, run, settings).partitions()


def _ways_of_balancing(data: GnnTraining, is_placed: bool) -> list[PartLoads]:
    """mis_spectral's own, and equal parts where they can be placed; all have equal shares."""
    ways = list(part_loads(data))
    if data.minimize != "cut" and is_placed and data.num_parts >= 2 * data.num_devices:
        ways.append(_equal_parts(data))
    return [replace(each, share=1.0 / len(ways)) for each in ways]


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
    ways = ((None, None), (True, runs.ufactor), (False, runs.ufactor))
    most = run.work_limit or (MOST_RUNS if run.time_limit_s is None else np.inf)
    least: float = np.inf
    for number in count():
        recursive, ufactor = ways[number % len(ways)]
        seed = None if number == 0 else run.seed * 100_003 + number
        cut, part = runs.part(recursive, seed, ufactor)
        if (cut < least or data.minimize != "cut") and runs.fits(part):
            least = cut
            yield part
        if number + 1 >= most or run.time_left() <= 0 or least == 0:
            return
