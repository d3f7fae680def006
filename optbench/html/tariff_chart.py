"""Strips of electricity prices and carbon intensities over time; darker is higher."""

from __future__ import annotations

import numpy as np

from optbench.html import svg
from optbench.html.axes import Axis
from optbench.html.marks import short
from optbench.model.instance import Floats, Instance, Ints

HEIGHT, GAP = 13.0, 5.0
FAINTEST = 0.06


def draw(instance: Instance, axis: Axis, top: float) -> tuple[str, float]:
    """A strip per series that varies, shared by pools with the same series, and the lower end."""
    tariffs = instance.tariffs
    if tariffs is None:
        return "", top
    out, y = [], top
    for name, unit, rates in (
        ("price", "USD/kWh", tariffs.price_usd_per_kwh),
        ("carbon", "g/kWh", tariffs.carbon_g_per_kwh),
    ):
        series = np.unique(rates, axis=0)
        for row in series:
            if np.ptp(row) > 0:
                pools = [
                    instance.pools.names[p] for p in np.flatnonzero((rates == row).all(axis=1))
                ]
                label = name if len(series) == 1 else f"{name}: {', '.join(pools)}"
                out.append(_strip(label, unit, tariffs.times, row, axis, y))
                y += HEIGHT + GAP
    return "".join(out), y


def _strip(label: str, unit: str, times: Ints, row: Floats, axis: Axis, y: float) -> str:
    parts = [svg.text(axis.start - 12, y + 10, short(label, 20), class_="pool-size")]
    ends = np.append(times[1:], np.inf)
    for start, end, rate in zip(times.tolist(), ends.tolist(), row.tolist(), strict=True):
        if start < axis.high:
            x, right = axis.at(start), axis.at(min(end, axis.high))
            shade = FAINTEST + (1 - FAINTEST) * (rate - float(row.min())) / float(np.ptp(row))
            words = [f"{label}: {rate:g} {unit}", f"from {axis.write(start)}"]
            width, depth = max(0.5, right - x), f"{shade:.2f}"
            parts.append(svg.rect(x, y, width, HEIGHT, words, fill_opacity=depth))
    return svg.tag("g", "".join(parts), class_="tariff")
