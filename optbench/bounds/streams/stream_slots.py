"""The slots of time of a stream's linear programme, and the devices that are there in each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optbench.bounds.streams.stream_traffic import Traffic, traffic
from optbench.errors import ParameterError
from optbench.model.busy_devices import missing_devices
from optbench.model.instance import Floats, Instance
from optbench.model.timegrid import ulp
from optbench.units import HOUR_S, SUM_MARGIN

# Slots of an hour, unless these were fewer or more than the limits.
FEWEST_SLOTS, MOST_SLOTS = 24, 336
TOO_MANY_SLOTS = 20_000


@dataclass(frozen=True, eq=False)
class Slots:
    """Edges in seconds; ``fixed`` if time ends with the last slot, otherwise that one is as long as
    needed.
    """

    edges: Floats
    fixed: bool

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    @property
    def width(self) -> Floats:
        return np.diff(self.edges)

    @property
    def slip(self) -> Floats:
        """More than the rounding of the edges can change a width: much of a short slot late in a
        long horizon.
        """
        return np.asarray(4.0 * ulp(self.edges[1:]), dtype=float)


def single_slot(instance: Instance, work: Traffic) -> Slots:
    """Return one slot from the first available task to the horizon, or to the end."""
    first = max(0.0, float(work.there_s[work.here].min()))
    if instance.horizon is None:
        return Slots(np.array([first, math.inf]), False)
    return Slots(np.array([first, float(instance.horizon) * instance.tick_s]), True)


def slots_of(instance: Instance, work: Traffic, slot_s: float) -> Slots:
    """Return slots of about ``slot_s`` at most, which end at whole ticks, and where tariffs and
    outages change.

    No slot is longer than needed once everything has arrived. Whole ticks are computed by the same
    product everywhere: two edges that differ by its rounding would make a slot of no length, and a
    deadline at an edge would count in the slot after it.
    """
    one, (first, last) = single_slot(instance, work), _span(instance, work)
    tick_s = instance.tick_s
    last = last if one.fixed else math.ceil((last + slot_s) / tick_s) * tick_s
    if (last - first) / slot_s > TOO_MANY_SLOTS:
        raise ParameterError(
            f"slot_s is {slot_s!r} of {last - first:g} s: more than {TOO_MANY_SLOTS} slots; take "
            "longer ones"
        )
    marks = np.arange(math.floor(first / slot_s) + 1, math.ceil(last / slot_s)) * slot_s
    inner = np.unique(np.concatenate((np.rint(marks / tick_s) * tick_s, _changes(instance))))
    inner = inner[(inner > first) & (inner < last)]
    return Slots(
        np.concatenate(([first], inner, [last] if one.fixed else [last, math.inf])), one.fixed
    )


def usual_slot_s(instance: Instance) -> float:
    """Return the default length of slots."""
    first, last = _span(instance, traffic(instance))
    return float(max((last - first) / MOST_SLOTS, min(HOUR_S, (last - first) / FEWEST_SLOTS)))


def _span(instance: Instance, work: Traffic) -> tuple[float, float]:
    """Return the time from the first available task to the horizon, or until everything has arrived
    and nothing changes any more.
    """
    first, last = single_slot(instance, work).edges.tolist()
    if math.isinf(last):
        last = max(
            float(work.there_s[work.here].max()), float(_changes(instance).max(initial=0.0)), first
        )
    return first, last


def _changes(instance: Instance) -> Floats:
    """Return when a tariff or an outage changes, in seconds."""
    turns = [np.zeros(0) if instance.tariffs is None else instance.tariffs.times]
    turns.append(np.zeros(0) if instance.stream is None else instance.stream.outages.time)
    return np.asarray(np.concatenate(turns) * instance.tick_s, dtype=float)


def devices_in(instance: Instance, slots: Slots) -> Floats:
    """Return devices per pool and slot, on average if an outage begins or ends within it (at least
    those available).
    """
    out = np.repeat(instance.pools.count.astype(float)[:, None], slots.count, axis=1)
    if instance.stream is None or len(instance.stream.outages.time) == 0:
        return out
    step = instance.tick_s
    low, high = slots.edges[:-1], slots.edges[1:]
    for pool, since, until, devices in zip(*missing_devices(instance), strict=True):
        away = np.minimum(high, until * step) - np.maximum(low, since * step)
        share = np.where(np.isfinite(slots.width), np.clip(away, 0.0, None) / slots.width, 0.0)
        whole = share >= 1.0
        # The used seconds of a slot with variable end may be those in which its devices are
        # available.
        out[pool] -= devices * (
            np.where(whole, 1.0, share * (1 - SUM_MARGIN)) if slots.fixed else whole
        )
    return np.asarray(np.maximum(out, 0.0), dtype=float)
