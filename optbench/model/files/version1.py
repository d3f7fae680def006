"""Version 1 of the native files, in which time could be seconds as floats and segments carried
units: read, never written.

Times in seconds get the automatic tick of ``model.timegrid``: releases, openings and outages are
rounded up, deadlines and the horizon down, tariffs to the nearest tick. Segments in seconds go to
the nearest tick; ``model.repair`` moves them where rounding alone stands in the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optbench.model.files import json_columns as col
from optbench.model.instance import Instance
from optbench.model.timegrid import HORIZON_TICKS, automatic_tick_s, grid_down, grid_up
from optbench.typed_values import number, refuse

SECONDS, TICKS = "seconds", "ticks"


def current_instance(data: dict[str, Any]) -> dict[str, Any]:
    """The object of a version 1 file as one of version 2, whose form is checked later."""
    data = dict(data)
    domain = col.text(data.pop("domain", None), "domain", (TICKS, SECONDS))
    data["version"] = 2
    if domain == TICKS:
        data["horizon"] = _whole(data.get("horizon"))
        for part, key in (("tariffs", "times"), ("tasks", "deadline")):
            if isinstance(data.get(part), dict):
                times = col.rows(data[part].get(key), f"{part}.{key}")
                data[part] = {**data[part], key: [_whole(time) for time in times]}
        if isinstance(data.get("stream"), dict):
            data["stream"] = _stream(data["stream"], 1.0)
        return data
    data["tick_s"] = tick_s = automatic_tick_s(_latest_s(data))
    data["horizon"] = _time(data.get("horizon"), "horizon", tick_s, grid_down)
    for part, key, rounded in (
        ("tasks", "release", grid_up),
        ("tasks", "deadline", grid_down),
        ("tariffs", "times", np.rint),
    ):
        if part == "tasks" or data.get(part) is not None:
            table = _table(data.get(part), part)
            data[part] = {**table, key: _times(table.get(key), f"{part}.{key}", tick_s, rounded)}
    _rename_makespan(data)
    if data.get("stream") is not None:
        data["stream"] = _stream(_table(data["stream"], "stream"), tick_s)
    return data


def _rename_makespan(data: dict[str, Any]) -> None:
    """In seconds, the makespan was that of ``makespan_s``: the same numbers under that name."""
    if isinstance(data.get("limits"), dict) and isinstance(data["limits"].get("metric_max"), dict):
        limits = dict(data["limits"]["metric_max"])
        if "makespan" in limits:
            given = number(limits.pop("makespan"), "limits.metric_max.makespan")
            limits["makespan_s"] = min(given, limits.get("makespan_s", given))
        data["limits"] = {**data["limits"], "metric_max": limits}
    levels = []
    for level in col.rows(data.get("objective"), "objective"):
        level = dict(level) if isinstance(level, dict) else level
        if isinstance(level, dict) and "makespan" in level:
            level["makespan_s"] = level.get("makespan_s", 0.0) + level.pop("makespan")
        levels.append(level)
    data["objective"] = levels


def _stream(stream: dict[str, Any], tick_s: float) -> dict[str, Any]:
    out = dict(stream)
    out["opens"] = _time(stream.get("opens"), "stream.opens", tick_s, grid_up)
    if isinstance(stream.get("outages"), dict):
        times = _times(stream["outages"].get("time"), "stream.outages.time", tick_s, grid_up)
        out["outages"] = {**stream["outages"], "time": times}
    return out


def _latest_s(data: dict[str, Any]) -> float:
    """The horizon, or the latest time with longest task and lag, as in ``assemble``."""
    if data.get("horizon") is not None:
        return number(data["horizon"], "horizon")
    tasks, modes = _table(data.get("tasks"), "tasks"), _table(data.get("modes"), "modes")
    given = [0.0, *_numbers(tasks, "release"), *_numbers(tasks, "deadline")]
    given += _numbers(data.get("tariffs"), "times")
    longest: dict[Any, float] = {}
    columns = (col.rows(modes.get(key), f"modes.{key}") for key in ("kind", "time_per_unit_s"))
    for kind, time_s in zip(*columns, strict=False):
        time_s = float(time_s) if isinstance(time_s, (int, float)) else 0.0
        longest[kind] = max(longest.get(kind, 0.0), time_s)
    columns = (col.rows(tasks.get(key), f"tasks.{key}") for key in ("kind", "units"))
    lasts = [longest.get(kind, 0.0) * float(units) for kind, units in zip(*columns, strict=False)]
    links = data.get("links")
    s_per_gb = max(_numbers(links, "s_per_gb"), default=0.0)
    lag = max(_numbers(data.get("edges"), "data_gb"), default=0.0) * s_per_gb
    return (
        max(given)
        + max(lasts, default=0.0)
        + (max(_numbers(links, "latency_s"), default=0.0) + lag)
    )


def _numbers(table: Any, key: str) -> list[float]:
    """The numbers of a column; none where there is no such table or column."""
    values = col.rows(table[key], key) if isinstance(table, dict) and key in table else []
    return [float(value) for value in values if isinstance(value, (int, float))]


def segment_times(instance: Instance, values: Any, domain: str) -> list[float]:
    """Times of a version 1 schedule as ticks of the instance, not yet whole."""
    per_tick = instance.tick_s if domain == SECONDS else 1.0
    return [float(value) / per_tick for value in values]


def _table(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse(path, value, "an object of columns")
    return value


def _time(value: Any, path: str, tick_s: float, rounded: Any) -> int | None:
    if value is None:
        return None
    ticks = number(value, path) / tick_s
    return int(min(float(rounded(ticks)), HORIZON_TICKS))


def _times(values: Any, path: str, tick_s: float, rounded: Any) -> list[int | None]:
    return [
        _time(value, f"{path}[{row}]", tick_s, rounded)
        for row, value in enumerate(col.rows(values, path))
    ]


def _whole(value: Any) -> Any:
    """A whole float as an integer; anything else is left for the reader to refuse."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
