"""A small network that prices devices by site and time, from tariffs and load alone, for planned
starts (``sim.plans``).

    fee[p, s] = unit · softplus(v · tanh(A x_ps + b) + c)

unit: the mean cost of a second of work on one device.
x_ps: the tariff there and then against the mean of all, its mean over some hours before and ahead,
the share of all devices that are no dearer then, over some hours ahead too, what the site's best
mode costs, how many devices it has, a constant, hours left. Three more numbers are learned: the
price of waiting, of working on after the last arrival, and the share of devices to book.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from optbench.errors import FileFormatError
from optbench.files import write_whole
from optbench.model.instance import Floats
from optbench.sim.kernel.sites.plans import Plans
from optbench.sim.sites.plans import SLOT_S, BookingTable, plans_of
from optbench.units import HOUR_S

HIDDEN, FEATURES = 12, 14
SIZE = FEATURES * HIDDEN + 2 * HIDDEN + 1
EXTRA = 3
PATIENCE_H = 9.0
# The load that the network saw in training, where it did not vary: a constant, so that no run uses
# information on future work.
LOAD = -0.23


def features(board: BookingTable) -> tuple[Floats, float]:
    """Return x[pool, slot, :] and the unit of fees."""
    instance, rate = board.instance, board.rate
    modes, count = instance.modes, instance.pools.count.astype(float)
    net = modes.energy_per_unit_j - instance.mode_rest_w * modes.time_per_unit_s
    first = board.first[: instance.num_pools + 1]  # of the first kind, which is the long work
    best = np.array([board.modes[a] for a in first[:-1]])
    unit = float(
        (rate.mean(axis=1) * net[best] / modes.time_per_unit_s[best] * count).sum() / count.sum()
    )
    relative = rate / rate.mean() - 1.0
    per_hour = round(HOUR_S / SLOT_S)

    def ahead(values: Floats, begin_h: float, end_h: float) -> Floats:
        a, b = round(begin_h * per_hour), round(end_h * per_hour)
        wide = np.pad(values, ((0, 0), (max(0, -a), max(0, b))), mode="edge")
        k = max(0, -a)
        total = np.concatenate((np.zeros((len(wide), 1)), np.cumsum(wide, axis=1)), axis=1)
        s = np.arange(values.shape[1]) + k
        return np.asarray((total[:, s + b] - total[:, s + a]) / (b - a))

    price = rate * net[best][:, None]
    order = price[:, None, :] >= price[None, :, :] - 1e-15
    no_dearer = (order * count[None, :, None]).sum(axis=1) / count.sum()
    left = (board.end_s - np.arange(board.slots) * SLOT_S) / (12 * HOUR_S)
    slots = np.ones((1, board.slots))
    parts = [
        4 * relative,
        4 * ahead(relative, 0, 2),
        4 * ahead(relative, 2, 5),
        4 * ahead(relative, 5, 10),
        4 * ahead(relative, -6, 0),
        2 * no_dearer - 1,
        2 * ahead(no_dearer, 0, 4) - 1,
        4 * ahead(relative, 0, 3).mean(axis=0) * np.ones_like(relative),
        4 * (net[best] / net[best].mean() - 1)[:, None] * slots,
        np.log(count / count.mean())[:, None] * slots / 2,
        np.full_like(relative, LOAD),
        np.clip(left, -1, 1)[None, :] * np.ones_like(relative),
        (left < 0)[None, :] * np.ones_like(relative),
        4 * (price / price.mean(axis=0) - 1),
    ]
    return np.stack(parts, axis=2), unit


def fees(theta: Floats, x: Floats, unit: float) -> Floats:
    a = theta[: FEATURES * HIDDEN].reshape(FEATURES, HIDDEN)
    b, v, c = np.split(theta[FEATURES * HIDDEN : SIZE], [HIDDEN, 2 * HIDDEN])
    return np.asarray(unit * np.logaddexp(0.0, np.tanh(x @ a + b) @ v + c[0]))


def plans_from_parameters(theta: Floats, board: BookingTable, x: Floats, unit: float) -> Plans:
    """Return the numbers of a run from all learned parameters."""
    return plans_at_fees(board, fees(theta, x, unit), unit, theta[SIZE:])


def plans_at_fees(board: BookingTable, fee: Floats, unit: float, extra: Floats) -> Plans:
    """Return the numbers of a run at these fees; ``extra``: logarithms of the prices of waiting and
    of working on, and the room.
    """
    mu, kappa, room = extra
    return plans_of(
        board,
        fee,
        mu=unit * float(np.exp(mu)),
        kappa=unit * float(np.exp(kappa)),
        patience_h=PATIENCE_H,
        room=float(1.0 - 0.2 / (1.0 + np.exp(-room))),
    )


def write_prices(path: Path, theta: Floats, about: Mapping[str, Any]) -> None:
    """Write parameters as JSON, preceded by their provenance."""
    rounded = [round(float(each), 5) for each in theta]
    write_whole(path, json.dumps({**about, "theta": rounded}) + "\n")


def read_prices(path: Path) -> tuple[Floats, dict[str, Any]]:
    """Read parameters and their provenance; an error names what is wrong with the file."""
    make = f"`optbench train learned_prices --on PROBLEM -o {path}` makes one"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileFormatError(f"{path}: there is no such checkpoint; {make}") from None
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: not a readable JSON file ({error}); {make}") from None
    theta = about.pop("theta", None) if isinstance(about, dict) else None
    if not isinstance(theta, list) or not all(type(each) in (int, float) for each in theta):
        raise FileFormatError(f"{path}: 'theta' is not a list of numbers; {make}")
    if len(theta) != SIZE + EXTRA or not np.isfinite(theta).all():
        raise FileFormatError(
            f"{path}: 'theta' has {len(theta)} numbers; it must have {SIZE + EXTRA}, all finite; "
            f"{make}"
        )
    return np.asarray(theta, dtype=float), about
