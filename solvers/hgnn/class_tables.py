"""What a unit of each kind of work costs on each class of alike pools, at a few prices of a device.

With λ the price of a tick of one device in units of R / N (R: what a tick of the makespan costs,
N: the number of devices), a set s of alike modes of a kind costs, per unit of work,

    cost_s(λ) = ρ (e_s − rest_s t_s) + λ (R / N) n_s t_s

with ρ the price of a joule, e_s, t_s, n_s energy, ticks and devices of the set. The features of
``situation`` are made of the cheapest set of each (kind, class) at each λ of PRICES.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optbench.model.classes import ClassView, class_view
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.objective_prices import end_cost, joule_price

# Prices of a device at which demands are compared, in units of R / N.
PRICES = (0.5, 1.0, 2.0, 4.0)
# The place of price 1 among them.
PLAIN = 1


@dataclass(frozen=True, eq=False)
class ClassTables:
    """Tables by kind and class (and price), inf where a kind cannot run there; per unit of work.

    ``shortest`` is in ticks. ``least_net`` is the least ρ (e − rest t), ``net_of_shortest`` that
    of the fastest set, both in units of the objective. ``cost`` is the least cost at each
    price, ``long`` and ``wide`` are ticks and devices of the set that has it. ``stretch`` is the
    longest time over the shortest (1 where a kind cannot run), ``num_devices`` the devices of each
    class, ``end_cost`` what a tick of the makespan costs, ``device_price`` that over all devices.
    """

    view: ClassView
    num_devices: Floats
    device_price: float
    end_cost: float
    shortest: Floats
    least_net: Floats
    net_of_shortest: Floats
    cost: Floats
    long: Floats
    wide: Floats
    stretch: Floats


def class_tables(instance: Instance) -> ClassTables:
    """Return the tables of an instance, by whole arrays."""
    view = class_view(instance)
    kinds, classes = len(instance.modes.kind_ptr) - 1, view.num_classes
    devices = max(1.0, float(instance.pools.count.sum()))
    per_device = end_cost(instance) / devices
    first = view.first_mode
    ticks = instance.ticks_per_unit[first]
    rest_j = instance.mode_rest_w[first] * instance.modes.time_per_unit_s[first]
    net = joule_price(instance) * (instance.modes.energy_per_unit_j[first] - rest_j)
    count = np.maximum(1, view.devices)
    cell = view.kind * classes + np.maximum(0, view.primary_class)

    def least(values: Floats) -> tuple[Floats, Ints]:
        """Return the least value of each (kind, class), and the set that has it."""
        order = np.lexsort((values, cell))
        there, begins = np.unique(cell[order], return_index=True)
        out, which = np.full(kinds * classes, np.inf), np.full(kinds * classes, -1, dtype=np.int64)
        out[there], which[there] = values[order[begins]], order[begins]
        return out.reshape(kinds, classes), which.reshape(kinds, classes)

    shortest, fastest = least(ticks)
    longest, _ = least(-ticks)
    least_net, _ = least(net)
    costs, sets = zip(*(least(net + price * per_device * count * ticks) for price in PRICES))
    best = np.stack(sets, axis=-1)

    def at(values: Floats, which: Ints) -> Floats:
        return np.where(which >= 0, values[np.maximum(which, 0)], np.inf)

    with np.errstate(invalid="ignore"):
        stretch = np.where(fastest >= 0, -longest / shortest, 1.0)
    return ClassTables(
        view,
        np.asarray(np.bincount(view.pool_class, instance.pools.count, classes), dtype=float),
        per_device,
        end_cost(instance),
        shortest,
        least_net,
        at(net, fastest),
        np.stack(costs, axis=-1),
        at(ticks, best),
        at(count.astype(float), best),
        stretch,
    )
