"""Chart of busy and resting power by pool, stacked, on the time axis of the Gantt chart.

The areas are the power trace of ``model/metrics.py``: their integral and the energy of transfers
add up to the energy of the schedule. A transfer uses its energy in an instant, marked on the time
axis.
"""

from __future__ import annotations

import numpy as np

from optbench.html import axes, colours, svg
from optbench.html.axes import Axis
from optbench.html.page import colour_key
from optbench.html.quantities import amount
from optbench.model.instance import Floats, Instance
from optbench.model.metrics import PowerTrace

HEIGHT, HEAD, FOOT = 190.0, 34.0, 26.0


def draw(instance: Instance, trace: PowerTrace, x: Axis, top: float) -> tuple[str, float]:
    """The SVG content of the chart from ``top`` on, empty without power, and its lower end."""
    total = trace.busy_w.sum(axis=0) + trace.rest_w.sum(axis=0)
    if not (total > 0).any():
        return "", top
    limits = instance.limits
    cap = min(limits.cap_w[limits.cap_place == 0].tolist(), default=None)
    highest = float(total.max())
    ceiling = 1.1 * (cap if cap is not None and highest <= cap <= 2.5 * highest else highest)
    base = top + HEAD + HEIGHT
    y = axes.linear(base, -HEIGHT, 0.0, ceiling, 4, lambda value: amount(value, "W"))
    xs = [x.at(t) for t in trace.t.tolist()]

    def pixels(watts: Floats) -> list[float]:
        return [y.at(w) for w in watts.tolist()]

    parts = [svg.text(x.start - 12, top + HEAD + 4, "power", class_="pool"), axes.grid(x, y)]
    level = np.zeros(len(total))
    for kind, watts in (("rest", trace.rest_w), ("busy", trace.busy_w)):
        for p in range(instance.num_pools):
            if (watts[p] > 0).any():
                above = level + watts[p]
                shape = svg.band(xs, pixels(above), pixels(level))
                fill = colours.colour(colours.POOLS, p)
                parts.append(svg.path(shape, fill=fill, class_=kind, data_p=p))
                level = above
    parts.append(svg.path(svg.steps(xs, pixels(total)), class_="total"))
    parts.append(_transfers(x, trace, base))
    if cap is not None and cap <= ceiling:
        parts.append(_cap(x, cap, y.at(cap)))
    return "".join(parts), base + FOOT


def legend(instance: Instance, trace: PowerTrace) -> str:
    """Names of the areas."""
    out = []
    for p, name in enumerate(instance.pools.names):
        for kind, watts in (("busy", trace.busy_w), ("rest", trace.rest_w)):
            if (watts[p] > 0).any():
                words = name if kind == "busy" else f"{name} resting"
                out.append(colour_key(colours.colour(colours.POOLS, p), words, f"key {kind}"))
    return "".join(out)


def caption(instance: Instance, metrics: dict[str, float]) -> str:
    """Where the energy goes, and how near the caps the schedule comes."""
    busy, rest, moved, whole = (
        amount(metrics[name], "J")
        for name in ("busy_energy_j", "rest_energy_j", "transfer_energy_j", "energy_j")
    )
    transfers = f" + {moved} transfers" if metrics["transfer_energy_j"] > 0 else ""
    highest = amount(metrics["peak_power_w"], "W")
    text = f"Area: {busy} busy + {rest} resting{transfers} = {whole}. Highest draw {highest}"
    names, limits = instance.places.names, instance.limits
    caps = [f"{cap:g} W at {names[place]}" for place, cap in zip(limits.cap_place, limits.cap_w)]
    return text + (f", capped at {', '.join(caps)}." if caps else ".")


def _transfers(x: Axis, trace: PowerTrace, base: float) -> str:
    out = []
    for t, joules in zip(trace.transfer_t.tolist(), trace.transfer_j.tolist(), strict=True):
        if joules > 0:
            triangle = f"M{svg.num(x.at(t))} {svg.num(base)}l-4 5h8z"
            out.append(svg.path(triangle, [f"transfer: {amount(joules, 'J')}"], class_="spark"))
    return "".join(out)


def _cap(x: Axis, cap: float, y: float) -> str:
    name = svg.text(x.end - 6, y - 6, f"cap {amount(cap, 'W')}", class_="cap-name")
    return svg.line(x.start, y, x.end, y, class_="cap") + name
