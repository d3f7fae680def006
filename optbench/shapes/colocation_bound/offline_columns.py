"""Columns of the offline bound: what one GPU (gang) does in a second with one class or a pair.

Work of a class is counted in seconds at its highest rate. All numbers are rounded to the side on
which the bound stays valid: rates and requirements up, power and lack of service down. ``SAFE``
covers the rounding of the few float operations that make each of them.

Alone, a class has a column per GPU type at its highest rate there, alone or beside any partner, and
a training class one more at its lowest requirement, where that is less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.shapes.colocation.colocation_data import Bools, Colocation, Floats, Ints
from optbench.shapes.colocation_bound.offline_demand import JobClasses

SAFE = 2.0**-45


@dataclass(frozen=True)
class RateTables:
    """Rates and power beyond sleep.

    ``credit`` is the share of the lowest requirement of its class that a rate is worth, at most 1,
    and ``lack`` the rest; both are 0 for services, and ``lack`` for jobs of several replicas."""

    rate: Floats
    watts: Floats
    credit: Floats
    lack: Floats


@dataclass(frozen=True)
class ColumnTables:
    """Arrays over GPU types g and classes c, d; entries of c beside d are of the first one.

    ``per_s`` is the highest rate of a class, in units of work."""

    per_s: Floats
    gangs: Ints
    solo: RateTables
    slow: RateTables
    pair_fits: Bools
    pair: RateTables


def column_tables(data: Colocation, classes: JobClasses) -> ColumnTables:
    """Return rates and power of all columns."""
    kind = classes.job_type
    cap = np.where(classes.is_service, classes.ceiling_per_s, np.inf)
    alone = data.alone_per_s[:, kind]
    beside = data.beside_per_s[:, kind[:, None], kind[None, :]]
    fits = (beside > 0) & (np.swapaxes(beside, 1, 2) > 0)
    itself = np.eye(classes.count, dtype=np.bool_) & classes.alone[None, :]
    fits &= ~itself[None, :, :]
    pair = np.where(fits, np.minimum(beside, cap[None, :, None]), 0.0)
    solo = np.maximum(np.minimum(alone, cap[None, :]), pair.max(axis=2))
    gangs = data.gangs[kind]
    highest = solo.max(axis=0)
    used = data.utilisation[:, kind]
    solo_share = used * _part(solo, alone)
    pair_share = used[:, :, None] * _part(pair, alone[:, :, None])
    both = pair_share + np.swapaxes(pair_share, 1, 2)
    slow = np.where(classes.is_service, 0.0, np.minimum(classes.floor_per_s, solo))
    slow_share = used * _part(slow, alone)
    row, column = classes.floor_per_s[None, :], classes.floor_per_s[:, None]
    return ColumnTables(
        highest,
        gangs,
        _rates(classes, solo / highest, solo / row, gangs * _watts(data, solo_share), 1),
        _rates(classes, slow / highest, slow / row, gangs * _watts(data, slow_share), 1),
        np.triu(fits),
        _rates(classes, pair / highest[:, None], pair / column, _watts(data, both), 2),
    )


def _rates(
    classes: JobClasses, rate: Floats, worth: Floats, watts: Floats, members: int
) -> RateTables:
    """Round rates; ``worth`` is the rate as a share of the lowest requirement of its class."""
    shape = (-1,) if members == 1 else (-1, 1)
    training = ~classes.is_service.reshape(shape)
    counted = training & classes.single.reshape(shape)
    credit = np.where(training, np.minimum(1.0, worth * (1 + SAFE)), 0.0)
    lack = np.where(counted, np.maximum(1 - worth - SAFE, 0.0), 0.0)
    return RateTables(rate * (1 + SAFE), watts, credit, lack)


def _part(rate: Floats, alone: Floats) -> Floats:
    """Rate as a share of that alone; full use where a job alone was never measured."""
    alone = np.broadcast_to(alone, rate.shape)
    out: Floats = np.divide(rate, alone, out=(rate > 0).astype(float), where=alone > 0)
    return out


def _watts(data: Colocation, share: Floats) -> Floats:
    """Power beyond sleep at these shares of use, rounded down."""
    sleep, idle, full = (each.reshape(-1, *[1] * (share.ndim - 1)) for each in data.watts())
    used = np.minimum(1.0, share * (1 - SAFE))
    watts = (idle - sleep) + used * (full - idle)
    out: Floats = np.maximum(watts * (1 - SAFE), 0.0)
    return out
