"""Version 1 of the native files, in which time could be seconds as floats and segments carried units: read, never written.

Times in seconds get the automatic tick of ``model.timegrid``: releases, openings and outages are rounded up, deadlines and the
horizon down, tariffs to the nearest tick. Segments in seconds go to the nearest tick; ``model.repair`` moves them where rounding
alone stands in the way.
"""

from __future__ import annotations

from typing import Any

from optbench.model.files import json_columns as col
from optbench.model.instance import Instance
from optbench.model.timegrid import HORIZON_TICKS, automatic_tick_s, grid_down, grid_up
from optbench.typed_values import number, refuse

SECONDS, TICKS = "seconds", "ticks"


def current_instance(data: dict[str, Any]) -> dict[str, Any]:
    """The object of a version 1 file as one of version 2; the form of what it leaves alone is checked later."""
    data = dict(data)
    domain = col.text(data.pop("domain", None), "domain", (TICKS, SECONDS))
    data["version"] = 2
    if domain == TICKS:
        data["horizon"] = _whole(data.get("horizon"), "horizon")
        if isinstance(data.get("tariffs"), dict):
            data["tariffs"] = {**data["tariffs"], "times": _wholes(data["tariffs"].get("times"), "tariffs.times")}
        if isinstance(data.get("tasks"), dict):
            data["tasks"] = {**data["tasks"], "deadline": _wholes(data["tasks"].get("deadline"), "tasks.deadline")}
        if isinstance(data.get("stream"), dict):
            data["stream"] = _stream(data["stream"], 1.0)
        return data
    tick_s = automatic_tick_s(_latest_s(data))
    data["tick_s"] = tick_s
    data["horizon"] = _time(data.get("horizon"), "horizon", tick_s, grid_down)
    tasks = dict(_table(data.get("tasks"), "tasks"))
    tasks["release"] = _times(tasks.get("release"), "tasks.release", tick_s, grid_up)
    tasks["deadline"] = _times(tasks.get("deadline"), "tasks.deadline", tick_s, grid_down)
    data["tasks"] = tasks
    _rename_makespan(data)
    if data.get("tariffs") is not None:
        tariffs = dict(_table(data["tariffs"], "tariffs"))
        tariffs["times"] = _times(tariffs.get("times"), "tariffs.times", tick_s, None)
        data["tariffs"] = tariffs
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
    """The horizon, or the latest time that is given, the longest task and the longest lag after it, as ``assemble`` has it."""
    if data.get("horizon") is not None:
        return number(data["horizon"], "horizon")
    tasks, modes = _table(data.get("tasks"), "tasks"), _table(data.get("modes"), "modes")
    given = [0.0]
    for key in ("release", "deadline"):
        given += [float(t) for t in col.rows(tasks.get(key), f"tasks.{key}") if isinstance(t, (int, float))]
    if isinstance(data.get("tariffs"), dict):
        given += [float(t) for t in col.rows(data["tariffs"].get("times"), "tariffs.times") if isinstance(t, (int, float))]
    longest: dict[Any, float] = {}
    columns = (col.rows(modes.get(key), f"modes.{key}") for key in ("kind", "time_per_unit_s"))
    for kind, time_s in zip(*columns, strict=False):
        longest[kind] = max(longest.get(kind, 0.0), float(time_s) if isinstance(time_s, (int, float)) else 0.0)
    columns = (col.rows(tasks.get(key), f"tasks.{key}") for key in ("kind", "units"))
    lasts = [longest.get(kind, 0.0) * float(units) for kind, units in zip(*columns, strict=False)]
    return max(given) + max(lasts, default=0.0) + _longest_lag_s(data)


def _longest_lag_s(data: dict[str, Any]) -> float:
    links = data.get("links") if isinstance(data.get("links"), dict) else {}

    def largest(table: Any, key: str) -> float:
        values = col.rows(table.get(key), key) if isinstance(table, dict) and key in table else []
        return max((float(value) for value in values if isinstance(value, (int, float))), default=0.0)

    return largest(links, "latency_s") + largest(data.get("edges"), "data_gb") * largest(links, "s_per_gb")


def segment_times(instance: Instance, values: Any, domain: str) -> list[float]:
    """Times of a version 1 schedule as ticks of the instance, not yet whole."""
    per_tick = instance.tick_s if domain == SECONDS else 1.0
    return [float(value) / per_tick for value in values]


def _table(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse(path, value, "an object of columns")
    return value


def _time(value: Any, path: str, tick_s: float, rounded: Any) -> int | None:
    """A time on the grid; to the nearest tick where no direction is given."""
    if value is None:
        return None
    ticks = number(value, path) / tick_s
    return int(min(float(rounded(ticks)) if rounded is not None else round(ticks), HORIZON_TICKS))


def _times(values: Any, path: str, tick_s: float, rounded: Any) -> list[int | None]:
    return [_time(value, f"{path}[{row}]", tick_s, rounded) for row, value in enumerate(col.rows(values, path))]


def _whole(value: Any, path: str) -> Any:
    """A whole float as an integer; anything else is left for the reader to refuse."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _wholes(values: Any, path: str) -> list[Any]:
    return [_whole(value, path) for value in col.rows(values, path)]
