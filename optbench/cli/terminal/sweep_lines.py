"""What `optbench gpu calibrate` shows: progress, the plan of a dry run, the result."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import DIM, escape, figure, percent, show, table
from optbench.html.quantities import duration

if TYPE_CHECKING:
    from optbench.hardware.calibration.calibration_target import CalibrationTarget
    from optbench.hardware.calibration.clock_sweep import CalibrationResult, SweepProgress
    from optbench.hardware.calibration.sweep_plan import SweepPlan


class SweepLine(LiveLine):
    """What is measured now, and the results of runs."""

    waiting = "starting"
    refresh_hz = 2.0

    def describe(self, now: SweepProgress) -> Step:
        left_s = now.total - now.done
        left = f"about {duration(left_s)} left" if left_s >= 1 else "longer than expected"
        words = now.words if now.is_result else f"{now.words}, {left}"
        return Step(words, now.done, now.total, is_result=now.is_result)

    def has_more(self) -> bool:
        return False


def plan_json(
    target: CalibrationTarget, plan: SweepPlan, kind: str, path: str | None
) -> dict[str, Any]:
    from optbench.hardware.calibration.load_program import command_of

    settings = plan.settings
    places = [device.place for device in target.devices]
    command = command_of(settings.workload, ",".join(places), settings.size, plan.load_s())
    least, most = settings.rounds
    return {
        "dry_run": True,
        "model": target.model,
        "devices": [{"uuid": each.uuid, "place": each.place} for each in target.devices],
        "clocks_mhz": plan.clocks_mhz,
        "fixed_clock": target.fixed_clock or None,
        "counts": plan.counts,
        "kind": kind,
        "command": shlex.join(command),
        "power_window_s": plan.window_s,
        "rounds": [least, most],
        "runs_of_a_round": len(plan.points),
        "seconds_of_a_run": plan.load_s() + settings.start_s,
        "seconds": [plan.duration_s(least), plan.duration_s(most)],
        "wanted_precision": settings.precision,
        "output": path,
    }


def show_plan(plan: dict[str, Any]) -> None:
    least, most = plan["rounds"]
    quick, slow = plan["seconds"]
    places = ", ".join(f"{each['place']} ({each['uuid']})" for each in plan["devices"])
    clocks = ", ".join(map(str, plan["clocks_mhz"])) + " MHz"
    rows = (
        ("devices", f"{plan['model']}: {places}"),
        ("clocks", f"as it is: {plan['fixed_clock']}" if plan["fixed_clock"] else clocks),
        ("devices at work", ", ".join(map(str, plan["counts"]))),
        ("load", plan["command"]),
        ("a run", f"{duration(plan['seconds_of_a_run'])}, {plan['runs_of_a_round']} in a round"),
        ("power", f"readings average {plan['power_window_s']:g} s"),
        ("rounds", f"{least} to {most}, until ±{percent(plan['wanted_precision'])}"),
        ("takes about", f"{duration(quick)} to {duration(slow)}"),
        ("writes", plan["output"] or "nothing (no -o)"),
    )
    show("\n[bold]dry run[/]: no clock is set, nothing is started")
    show(table(("", ""), [(name, escape(str(value))) for name, value in rows]))


def result_json(found: CalibrationResult) -> dict[str, Any]:
    return {
        "coefficients": {
            each.name: {"value": each.value, "low": each.low, "high": each.high}
            for fit in (found.power, found.time)
            for each in fit.coefficients
        },
        "half_width": found.half_width,
        "precise": found.precise,
        "misfits": {"power": found.power.misfits, "time": found.time.misfits},
        "rounds": found.rounds,
        "runs": len(found.runs),
        "left_out": found.left_out,
        "idle_w": found.idle_w,
        "spent_s": found.spent_s,
    }


def show_result(
    found: CalibrationResult, document: dict[str, Any], kind: str, written: Sequence[str]
) -> None:
    show(f"\n[bold]{escape(document['name'])}[/], {escape(kind)}")
    rows = [
        (each.name, figure(each.value), f"{figure(each.low)} to {figure(each.high)}")
        for fit in (found.power, found.time)
        for each in fit.coefficients
    ]
    show(table(("coefficient", "value", "95 % interval"), rows, right=("value",)))
    show(f"idle {figure(found.idle_w)} W, board {figure(document['tdp_w'])} W")
    for words_, fit in (("power", found.power), ("time", found.time)):
        beyond = ", more than its repeats explain: the law is not exact" if fit.misfits else ""
        show(f"[{DIM}]{words_}: a point is off by {percent(fit.worst)} at most{beyond}[/]")
    if not found.precise:
        wanted = percent(found.plan.settings.precision)
        why = "more rounds (--rounds) or longer ones (--measure) would narrow it"
        if found.settled:
            why = "the points lie off the law, so that more rounds would not narrow it"
        widest = percent(found.half_width)
        show(f"[{DIM}]the widest interval is ±{widest}, wanted was ±{wanted}: {why}[/]")
    for reason in found.left_out:
        show(f"left out: {escape(reason)}")
    show(f"[{DIM}]{len(found.runs)} runs, {duration(found.spent_s)}[/]")
    for path in written:
        show(f"written to [bold]{escape(path)}[/]")
