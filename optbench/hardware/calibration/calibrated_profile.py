"""A calibration as a profile file: the format of ``power/profiles.py`` with the key
``measurement``, which says for each kind of work how and on what it was measured.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from optbench import __version__
from optbench.errors import ParameterError
from optbench.hardware.calibration.calibration_target import CalibrationTarget
from optbench.hardware.calibration.clock_sweep import CalibrationResult
from optbench.hardware.calibration.coefficient_fit import COVERAGE, LawFit
from optbench.hardware.calibration.run_trace import MeasuredRun
from optbench.hardware.calibration.sweep_plan import fractions_of

# Lists of scalars are written in one row.
ROW = re.compile(r"\[\s+([^\[\]{}]*?)\s+\]")
SOURCES = {"counter": "the device's energy counter", "readings": "readings of its power"}


@dataclass(frozen=True)
class GivenFigures:
    """Figures that a device may not say, given by the user."""

    name: str | None = None
    sleep_w: float | None = None
    board_w: float | None = None
    memory_gb: float | None = None

    def of_name(self, target: CalibrationTarget) -> str:
        """The name of the profile."""
        return self.name or f"{target.model}, calibrated"


def profile_document(
    target: CalibrationTarget, found: CalibrationResult, kind: str, given: GivenFigures
) -> dict[str, Any]:
    """The profile as JSON's types."""
    sources: dict[str, str] = {}
    how = f"measured: {SOURCES[found.idle_source]}, {found.plan.idle_s:g} s without a load"
    idle_w = _rounded(found.idle_w)
    sources["idle_w"] = how + (", mean of the devices" if len(target.devices) > 1 else "")
    sleep_w = _sleep(given, idle_w, sources)
    board_w = _board(target, found, given, sources)
    memory_gb = _memory(target, given, sources)
    clocks = _clocks(target, found, sources)
    law = {**_coefficients(found.power), **_coefficients(found.time)}
    sources["laws"] = _law_source(found, kind)
    return {
        "name": given.of_name(target),
        "idle_w": idle_w,
        "sleep_w": sleep_w,
        "tdp_w": board_w,
        "memory_gb": memory_gb,
        "clocks": clocks,
        "laws": {kind: {name: law[name] for name in sorted(law)}},
        "sources": sources,
        "measurement": {kind: measurement(target, found)},
    }


def measurement(target: CalibrationTarget, found: CalibrationResult) -> dict[str, Any]:
    """Provenance of one kind of work."""
    settings = found.plan.settings
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "optbench": __version__,
        "finished_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "devices": [
            {
                "name": each.name,
                "uuid": each.uuid,
                "place": each.place,
                "missing": list(each.missing),
            }
            for each in target.devices
        ],
        "driver": target.driver,
        "workload": settings.workload,
        "size": settings.size,
        "top_clock_mhz": target.levels_mhz[-1] if target.levels_mhz else None,
        "clocks_mhz": list(found.plan.clocks_mhz),
        "fixed_clock": target.fixed_clock or None,
        "counts": list(found.plan.counts),
        "power_source": sorted({run.source for run in found.used}),
        "power_window_s": target.window_s,
        "sampling_period_s": settings.period_s,
        "settle_s": settings.settle_s,
        "measure_s": found.plan.measure_s,
        "rounds": found.rounds,
        "spent_s": round(found.spent_s, 1),
        "seed": settings.seed,
        "wanted_precision": settings.precision,
        "half_width": _rounded(found.half_width),
        "left_out": list(found.left_out),
        "power": _fit_record(found.power),
        "time": _fit_record(found.time),
        "columns": [column.name for column in fields(MeasuredRun)],
        "runs": [[_rounded(value) for value in astuple(run)] for run in found.runs],
    }


def _fit_record(fit: LawFit) -> dict[str, Any]:
    return {
        "coverage": COVERAGE,
        "intervals": {
            each.name: [_rounded(each.low), _rounded(each.high)] for each in fit.coefficients
        },
        "degrees_of_freedom": fit.degrees,
        "scatter_of_repeats": _rounded(fit.scatter),
        "misfit_probability": _rounded(fit.misfit),
        "misfits": fit.misfits,
        "largest_residual_of_a_point": _rounded(fit.worst),
        "residuals": [_rounded(value) for value in fit.residuals],
    }


def check_merge(old: Mapping[str, Any], name: str, clocks: Sequence[float], where: str) -> None:
    """Refuse to add a law to a profile of another device or with other clocks: a profile has one
    list of clocks for all its laws."""
    for key, new in (("name", name), ("clocks", list(clocks))):
        if old.get(key) != new:
            raise ParameterError(
                f"{where}: {key} is {old.get(key)!r} there and {new!r} in this calibration; a law "
                "can be added only to a profile of the same device and clocks: choose the same "
                "clocks, or another file"
            )


def merged(old: Mapping[str, Any], new: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The profile ``old`` with the law of ``new`` added or replaced."""
    check_merge(old, new["name"], new["clocks"], where)
    out = {**old, **new}
    for key in ("laws", "measurement"):
        out[key] = {**old.get(key, {}), **new[key]}
    of_laws = old["sources"].get("laws", "")
    kinds = set(old["laws"]) - set(new["laws"])
    if kinds and of_laws:
        out["sources"] = {**new["sources"], "laws": f"{of_laws}; {new['sources']['laws']}"}
    return out


def render_profile(document: Mapping[str, Any]) -> str:
    """The text of a profile file, with a row per run."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    return ROW.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


def _sleep(given: GivenFigures, idle_w: float, sources: dict[str, str]) -> float:
    if given.sleep_w is None:
        sources["sleep_w"] = (
            "not measured: as idle_w, so that no saving by sleeping is claimed; no driver can "
            "read the power of a device that is off"
        )
        return idle_w
    sources["sleep_w"] = "given by the user"
    if given.sleep_w > idle_w:
        raise ParameterError(
            f"--sleep-w is {given.sleep_w:g} W, but the device was measured at {idle_w:g} W idle; "
            "a sleeping device draws no more"
        )
    return given.sleep_w


def _board(
    target: CalibrationTarget,
    found: CalibrationResult,
    given: GivenFigures,
    sources: dict[str, str],
) -> float:
    highest_w = max(found.idle_w, *(run.watts for run in found.used), *found.power.fitted)
    if given.board_w is not None:
        sources["tdp_w"] = "given by the user"
        return given.board_w
    if target.power_limit_w is not None:
        sources["tdp_w"] = "the device's power limit at the time of the measurement"
        return target.power_limit_w
    sources["tdp_w"] = "the highest power measured or fitted; the device states no limit"
    return float(f"{1.0005 * highest_w:.4g}")


def _memory(target: CalibrationTarget, given: GivenFigures, sources: dict[str, str]) -> float:
    if given.memory_gb is not None:
        sources["memory_gb"] = "given by the user"
        return given.memory_gb
    if target.memory_gb is None:
        raise ParameterError(f"{target.model} does not say its memory; give it with --memory-gb")
    sources["memory_gb"] = "as the device says"
    return float(f"{target.memory_gb:.4g}")


def _clocks(
    target: CalibrationTarget, found: CalibrationResult, sources: dict[str, str]
) -> list[float]:
    if not target.levels_mhz:
        sources["clocks"] = f"one clock: {target.fixed_clock}; the law holds at this clock only"
        return [1.0]
    top = target.levels_mhz[-1]
    measured = sorted({run.clock_mhz for run in found.used})
    sources["clocks"] = (
        f"measured: {', '.join(map(str, measured))} MHz as fractions of the top clock, {top} MHz"
    )
    return fractions_of(target.levels_mhz, measured)


def _law_source(found: CalibrationResult, kind: str) -> str:
    fit = (
        f"{len(found.used)} runs in {found.rounds} rounds; largest residual of a point "
        f"{100 * found.power.worst:.2g} % (power) and {100 * found.time.worst:.2g} % (time)"
    )
    more = "" if max(found.plan.counts) > 1 else "; gamma_t not measured (one device), 0"
    return (
        f"measured: {kind} by `{found.plan.settings.workload}` with size "
        f"{found.plan.settings.size}, {fit}{more}"
    )


def _coefficients(fit: LawFit) -> dict[str, float]:
    return {name: _rounded(value) for name, value in fit.values.items()}


def _rounded(value: Any) -> Any:
    """Floats to nine significant digits: no measurement has more, and JSON stays readable."""
    return float(f"{value:.9g}") if isinstance(value, float) else value
