"""The page of a calibrated profile: measured points on the fitted laws, residuals, provenance.

It is drawn from the profile file alone: its laws and what stands under ``measurement``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from optbench.html import axes, colours, svg
from optbench.html.marks import mark
from optbench.html.page import (
    colour_key,
    figure,
    footer,
    header,
    machine_facts,
    note,
    page,
    section,
    text_table,
)
from optbench.html.quantities import duration, percent, plain
from optbench.power.dvfs import Law

LEFT, RIGHT, TOP, HEIGHT, RESIDUAL_HEIGHT = 120.0, 36.0, 14.0, 260.0, 130.0
STEPS = 100
MARK = 4.0

Run = dict[str, Any]


def render_calibration(profile: Mapping[str, Any]) -> str:
    """The page as text, with nothing to fetch."""
    measured = profile["measurement"]
    body = [header(str(profile["name"]), "calibrated profile", *_facts(profile))]
    for kind, record in measured.items():
        body += _kind(kind, Law(**profile["laws"][kind]), record)
    body.append(section("Where each figure comes from", _sources(profile)))
    body.append(footer(*machine_facts()))
    return page(f"Calibration of {profile['name']}", body)


def _facts(profile: Mapping[str, Any]) -> list[str]:
    return [
        f"idle {plain(profile['idle_w'])} W",
        f"board {plain(profile['tdp_w'])} W",
        f"{plain(profile['memory_gb'])} GB",
    ]


def _kind(kind: str, law: Law, record: Mapping[str, Any]) -> list[str]:
    runs = [dict(zip(record["columns"], row, strict=True)) for row in record["runs"]]
    used = [run for run in runs if not run["refused"]]
    top = record["top_clock_mhz"]
    power = figure("Power of a device by clock", _power(law, used, top))
    residual_of_power = _residuals(
        [(run, run["watts"] / law.power_w(1, _clock(run, top)) - 1) for run in used], top
    )
    time = figure("Seconds per unit of work by clock and number of devices", _time(law, used, top))
    residual_of_time = _residuals(
        [
            (run, run["seconds_per_unit"] / law.time_per_unit_s(run["count"], _clock(run, top)) - 1)
            for run in used
        ],
        top,
    )
    key = "".join(
        colour_key(colours.solver(k), f"{count} device{'s' if count > 1 else ''}")
        for k, count in enumerate(record["counts"])
    )
    legend = f'<p class="legend">{key}</p>'
    return [
        section(f"Kind of work: {kind}", _coefficients(law, record), _remarks(record)),
        section(
            "Power", legend, power, figure("Residuals: measured / fitted − 1", residual_of_power)
        ),
        section("Time", legend, time, figure("Residuals: measured / fitted − 1", residual_of_time)),
        section(
            "Runs",
            f"<details><summary>{len(runs)} runs</summary>{_runs(record, runs)}</details>",
        ),
        section("How it was measured", _provenance(record)),
    ]


def _clock(run: Run, top: int | None) -> float:
    return float(run["clock_mhz"] / top) if top else 1.0


def _mhz(run: Run, top: int | None) -> float:
    return float(run["clock_mhz"] if top else 1.0)


def _clock_axis(runs: Sequence[Run], top: int | None) -> axes.Axis:
    low, high = axes.padded([_mhz(run, top) for run in runs], 0.05)
    name = "clock in MHz" if top else "the one clock that there is"
    return axes.linear(LEFT, svg.WIDTH - LEFT - RIGHT, low, high, most=10, name=name)


def _power(law: Law, runs: Sequence[Run], top: int | None) -> str:
    x = _clock_axis(runs, top)
    low, high = axes.padded([run["watts"] for run in runs], 0.1)
    y = axes.linear(TOP + HEIGHT, -HEIGHT, low, high, name="watts")
    parts = [_curve(x, y, 0, lambda f: law.power_w(1, f), runs, top)] if top else []
    parts += [_mark(x, y, run, f"{plain(run['watts'])} W", run["watts"], runs, top) for run in runs]
    return axes.chart(x, y, parts, "measured powers and the fitted law by clock")


def _time(law: Law, runs: Sequence[Run], top: int | None) -> str:
    x = _clock_axis(runs, top)
    low, high = axes.padded([run["seconds_per_unit"] for run in runs], 0.1)
    y = axes.linear(TOP + HEIGHT, -HEIGHT, low, high, name="seconds per unit")
    parts = []
    for k, count in enumerate(_counts(runs) if top else ()):
        per_unit_s = partial(law.time_per_unit_s, count)
        parts.append(_curve(x, y, k, per_unit_s, runs, top))
    for run in runs:
        seconds = run["seconds_per_unit"]
        parts.append(_mark(x, y, run, f"{plain(seconds)} s per unit", seconds, runs, top))
    return axes.chart(x, y, parts, "measured times per unit and the fitted law by clock")


def _curve(
    x: axes.Axis,
    y: axes.Axis,
    k: int,
    law: Callable[[float], float],
    runs: Sequence[Run],
    top: int | None,
) -> str:
    """The law over the measured range of clocks."""
    low, high = (choose(_mhz(run, top) for run in runs) for choose in (min, max))
    clocks = [low + (high - low) * i / STEPS for i in range(STEPS + 1)]
    points = [(x.at(mhz), y.at(law(mhz / (top or 1)))) for mhz in clocks]
    return svg.path(svg.polyline(points), stroke=colours.solver(k), fill="none", stroke_width=1.6)


def _mark(
    x: axes.Axis,
    y: axes.Axis,
    run: Run,
    words: str,
    value: float,
    runs: Sequence[Run],
    top: int | None,
) -> str:
    k = _counts(runs).index(run["count"])
    tip = (
        f"{run['clock_mhz']:.0f} MHz, {run['count']} at work, round {run['round']}",
        words,
        f"steady for {duration(run['steady_s'])}, power by {run['source']}",
    )
    return mark(k, x.at(_mhz(run, top)), y.at(value), MARK, tip)


def _residuals(found: Sequence[tuple[Run, float]], top: int | None) -> str:
    """Relative deviations from the law around a line at 0."""
    runs = [run for run, _ in found]
    x = _clock_axis(runs, top)
    reach = 1.1 * max(1e-4, *(abs(value) for _, value in found))
    base = TOP + RESIDUAL_HEIGHT
    y = axes.linear(base, -RESIDUAL_HEIGHT, -reach, reach, most=4, write=percent, name="residual")
    zero = svg.line(x.start, y.at(0.0), x.end, y.at(0.0), stroke="currentColor", opacity="0.5")
    counts = _counts(runs)
    parts = [zero]
    for run, value in found:
        words = (f"{run['clock_mhz']:.0f} MHz, round {run['round']}", percent(value))
        k = counts.index(run["count"])
        parts.append(mark(k, x.at(_mhz(run, top)), y.at(value), MARK, words))
    return axes.chart(x, y, parts, "relative residuals by clock")


def _counts(runs: Sequence[Run]) -> list[int]:
    return sorted({int(run["count"]) for run in runs})


def _coefficients(law: Law, record: Mapping[str, Any]) -> str:
    rows = []
    for part, unit in (("power", "W"), ("time", "s")):
        for name, (low, high) in record[part]["intervals"].items():
            value = getattr(law, name)
            rows.append((name, f"{plain(value)} {unit}", f"{plain(low)} to {plain(high)} {unit}"))
    return text_table(("coefficient", "value", "95 % interval"), rows)


def _remarks(record: Mapping[str, Any]) -> str:
    out = [
        "P(f) = alpha_p f³ + beta_p f + gamma_p, T(n, f) = (alpha_t + beta_t / f + gamma_t n) / n "
        "with gamma_t for n > 1 only; f is the clock over the top clock. Weighted least squares, "
        "no coefficient below 0; t intervals of the fit without that constraint, cut at 0."
    ]
    for part in ("power", "time"):
        fit = record[part]
        worst = percent(fit["largest_residual_of_a_point"])
        words = f"{part.capitalize()}: the mean of a point is off by {worst} at most"
        if fit["misfits"]:
            words += (
                ", more than its repeats explain: the device does not follow the law exactly, and "
                "the intervals are those of the points around the law"
            )
        out.append(f"{words}.")
    out += [f"Left out: {reason}." for reason in record["left_out"]]
    return "".join(map(note, out))


def _runs(record: Mapping[str, Any], runs: Sequence[Run]) -> str:
    rows = [[_cell(run[name]) for name in record["columns"]] for run in runs]
    return text_table([name.replace("_", " ") for name in record["columns"]], rows, words=())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else plain(value)


def _provenance(record: Mapping[str, Any]) -> str:
    hidden = {"runs", "columns", "power", "time", "left_out", "devices"}
    rows = [
        (name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else value)
        for name, value in record.items()
        if name not in hidden and value is not None
    ]
    devices = [(f"device {d['place']}", f"{d['name']}, {d['uuid']}") for d in record["devices"]]
    return text_table(
        ("", ""), [(name, str(value)) for name, value in (*devices, *rows)], words=(0, 1)
    )


def _sources(profile: Mapping[str, Any]) -> str:
    rows = [(name, str(words)) for name, words in profile["sources"].items()]
    return text_table(("figure", "source"), rows, words=(0, 1))
