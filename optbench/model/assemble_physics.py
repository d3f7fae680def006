"""Assembly of what a Model declares for places and over time: tariffs, cooling, congestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from optbench.errors import ModelError
from optbench.model.congestion import Congestion
from optbench.model.cooling import Cooling
from optbench.model.instance import Pools, Tariffs
from optbench.model.timegrid import is_on_grid

if TYPE_CHECKING:
    from optbench.model.builder import Model

Series = tuple[float, ...]


def cooling_of(m: Model) -> Cooling | None:
    """The cooled places, as declared."""
    if not m.cooled:
        return None
    names = [field.name for field in fields(Cooling)]
    columns = {name: np.asarray([getattr(row, name) for row in m.cooled]) for name in names}
    return Cooling(**columns)


def congestion_of(m: Model, tick_s: float) -> Congestion | None:
    """The factors of all declarations over all their times; of two the larger holds."""
    if not m.busy:
        return None
    times_s = np.unique(np.concatenate([np.asarray(row.times_s) for row in m.busy]))
    times = times_s / tick_s
    if not is_on_grid(times).all():
        raise ModelError(f"congestion times must be whole ticks of {tick_s:g} s")
    factor = np.ones((len(m.pools), len(times)))
    for row in m.busy:
        period = np.searchsorted(np.asarray(row.times_s), times_s, side="right") - 1
        here = np.asarray(row.pools, dtype=np.int64)
        given = np.asarray(row.factor)[period]
        # A factor below 1 must not vanish beside the 1 of a free link: it is refused later.
        low = given < 1
        factor[here] = np.where(low, given, np.maximum(factor[here], given))
    return Congestion(np.asarray(np.rint(times), dtype=np.int64), factor)


def tariffs_of(m: Model, pools: Pools, tick_s: float) -> Tariffs | None:
    """Each pool has the tariff of the nearest place above it that has one."""
    if not m.tariffs:
        return None
    times_s = np.unique(
        np.concatenate([np.asarray(tariff.times_s, dtype=float) for tariff in m.tariffs])
    )
    times = times_s / tick_s
    if not is_on_grid(times).all():
        raise ModelError(
            f"tariff times must be whole ticks of {tick_s:g} s; choose a tick_s that divides them"
        )
    by_place = {tariff.place: tariff for tariff in m.tariffs}
    price, carbon = np.zeros((2, len(m.pools), len(times)))
    for p, place in enumerate(pools.place.tolist()):
        while place >= 0 and place not in by_place:
            place = m.place_parent[place]
        if place < 0:
            raise ModelError(
                f"pool {m.pools[p].name!r} has no tariff; declare one for its place or for the "
                "whole cluster"
            )
        tariff = by_place[place]
        period = np.searchsorted(np.asarray(tariff.times_s), times_s, side="right") - 1
        price[p], carbon[p] = (
            np.asarray(tariff.price_usd_per_kwh)[period],
            np.asarray(tariff.carbon_g_per_kwh)[period],
        )
    return Tariffs(np.asarray(np.rint(times), dtype=np.int64), price, carbon)


def tariff_series(
    price_usd_per_kwh: float | Sequence[float],
    carbon_g_per_kwh: float | Sequence[float],
    times_s: Sequence[float] | None,
    every_s: float,
) -> tuple[Series, Series, Series]:
    """Return times, prices and carbon values of equal length."""
    price, carbon = (
        np.atleast_1d(np.asarray(v, dtype=float)) for v in (price_usd_per_kwh, carbon_g_per_kwh)
    )
    n = max(len(price), len(carbon))
    times = tuple(every_s * i for i in range(n)) if times_s is None else tuple(times_s)
    if len(times) != n or len(price) not in (1, n) or len(carbon) not in (1, n):
        sizes = f"{len(price)} prices, {len(carbon)} carbon values and {len(times)} times"
        raise ModelError(f"tariff: {sizes} do not fit together")
    if times[0] != 0 or any(not late > early for early, late in pairwise(times)):
        raise ModelError(f"tariff: times_s is {list(times)}; it must start at 0 and rise strictly")
    prices, carbons = (tuple(np.broadcast_to(v, n).tolist()) for v in (price, carbon))
    return times, prices, carbons
