"""``optbench gpu apply``: lock the clocks of GPUs as a schedule says, and always restore them."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.applying import (
    between_words,
    show_change,
    show_dry_run,
    show_summary,
    show_violations,
    warn,
)
from optbench.cli.terminal.output import emit_json
from optbench.cli.terminal.parser import Parser, UsageError, add_seed, number, seconds
from optbench.cli.terminal.schedule_files import instance_of_schedule
from optbench.cli.terminal.targets import TARGET_HELP
from optbench.hardware.clock_control.clock_changes import (
    KEPT_GAP_S,
    ClockChange,
    SupportedClock,
    clock_changes,
    supported_clocks,
)
from optbench.hardware.clock_control.controlled_clocks import (
    check_controllable,
    check_supported,
    controlled_clocks,
)
from optbench.hardware.clock_control.device_map import MappedDevices, map_devices, parse_map
from optbench.hardware.clock_control.journal import ClockRange
from optbench.hardware.clock_control.planned_clocks import COLOURING, ClockPlan
from optbench.hardware.clock_control.task_events import SILENCE_S, open_fifo
from optbench.hardware.gpus.nvml_errors import NO_PERMISSION
from optbench.hardware.gpus.nvml_session import GpuError, GpuSession, gpu_session

if TYPE_CHECKING:
    from optbench.hardware.clock_control.following import FollowedPlan

DESCRIPTION = (
    "Lock the clocks of GPUs as a schedule says. Without --execute nothing is changed: the "
    "devices, the clocks and the changes are shown. The schedule must be feasible. However the "
    "command ends (by itself, Ctrl-C, an error, kill -9), the clocks are restored: by itself, by "
    "its watchdog, or by `optbench gpu restore`. Locking clocks needs root."
)
EXAMPLES = (
    "optbench gpu apply instance.json schedule.json --map a100=0,1",
    "optbench gpu apply schedule.json --map a100=GPU-7c1e,GPU-90ab --execute",
    "optbench gpu apply schedule.json --execute --start-at 2027-01-31T22:00",
    "optbench gpu apply schedule.json --execute --events /run/launcher.fifo",
)


def configure(parser: Parser) -> None:
    parser.positional(
        "files FILE",
        "[INSTANCE] SCHEDULE: the schedule, as `optbench solve -o` writes; before it its instance "
        f"({TARGET_HELP}), unless an instance file of it lies beside the schedule",
        "+",
    )
    parser.option("--format FORMAT", "format of the instance file, where its content fits several")
    add_seed(parser, "seed of a generated instance (default 0)")
    parser.repeated(
        "--map POOL=GPU,...",
        "the devices of a pool, by UUID, a beginning of it, or index; once per pool; needed "
        "unless one choice alone exists",
    )
    parser.flag("--execute", "lock the clocks; without it they are only shown")
    parser.option("--start-at TIME", "time 0 of the schedule: 2027-01-31T22:00, or +90s (now)")
    parser.option("--events FIFO", "follow `start TASK`, `end TASK`, `finish` lines, not the time")
    parser.option(
        "--silence SECONDS",
        "with --events: restore the clocks when no line has come for so long after all tasks that "
        f"run should have ended (default {SILENCE_S:g})",
        seconds,
        SILENCE_S,
    )
    parser.option(
        "--restore-to LOW-HIGH", "restoring locks to this range of MHz instead of resetting"
    )
    parser.option(
        "--keep-gap SECONDS",
        f"gaps between segments up to this long keep the clock (default {KEPT_GAP_S:g})",
        number(float, 0.0),
        KEPT_GAP_S,
    )


@dataclass(frozen=True)
class Prepared:
    """All that is decided before a clock is locked."""

    plan: ClockPlan
    devices: MappedDevices
    clocks: dict[tuple[str, float], SupportedClock]
    changes: tuple[ClockChange, ...]
    restore_to: ClockRange | None


@dataclass(frozen=True)
class Timing:
    """What says when clocks change: the time from ``start_at`` on, or the lines of a FIFO, which
    may be silent for ``silence_s``.
    """

    start_at: float | None
    fifo: int | None
    silence_s: float


def run(args: argparse.Namespace) -> int:
    if args.events is not None and args.start_at is not None:
        raise UsageError("--events follows the tasks, not the time; leave --start-at out")
    start_at = None if args.start_at is None else start_time(args.start_at, time.time())
    restore_to = None if args.restore_to is None else clock_range(args.restore_to)
    instance, path = instance_of_schedule(args.files, args.format, args.seed)
    plan = feasible_plan(instance, path, args.json)
    if plan is None:
        return exits.NOT_VERIFIED
    with ExitStack() as stack:
        fifo = None
        if args.events is not None:
            fifo = stack.enter_context(open_fifo(Path(args.events)))
        session = stack.enter_context(gpu_session())
        ready = prepare(session, plan, args.map, restore_to, args.keep_gap)
        head = document_of(instance, path, ready, args)
        if not args.execute:
            emit_json(head) if args.json else show_dry_run(head)
            return exits.DONE
        if not args.json:
            show_dry_run(head, brief=True)
        try:
            timing = Timing(start_at, fifo, args.silence)
            done = execute(session, ready, f"gpu apply {path}", timing, args.json)
        except GpuError as error:
            if error.code != NO_PERMISSION:
                raise
            raise UsageError(f"{error}. {permission_remedy(os.geteuid(), sys.argv[1:])}") from None
    if args.json:
        emit_json({**head, **outcome_of(done)})
    else:
        show_summary(done)
    if not done.restored:
        return exits.USAGE
    return exits.DONE if done.interrupted is None else exits.INTERRUPTED


def feasible_plan(instance: Any, path: str, json: bool) -> ClockPlan | None:
    """The plan of a schedule; None where the verifier refuses it, which is shown."""
    from optbench.plugins.schedule_shape import read_decision, shape_of
    from optbench.views.clock_plan import clock_plan

    shape = shape_of(instance)
    decision = read_decision(path, instance)
    verdict = shape.verdict_of(instance, decision)
    if not verdict.feasible:
        show_violations(instance.name, path, verdict.violations, json)
        return None
    plan = clock_plan(instance, decision)
    if not plan.clocked:
        raise UsageError(
            f"{path!r} says no clock: no mode of its tasks has one. Pools with a profile, or modes "
            "with clock=..., have clocks"
        )
    return plan


def prepare(
    session: GpuSession,
    plan: ClockPlan,
    named: list[str],
    restore_to: ClockRange | None,
    kept_gap_s: float,
) -> Prepared:
    """Choose devices and clocks, or say why that is not possible."""
    seen = session.devices()
    devices = map_devices(plan, parse_map(named, plan), seen, session.find, session.unreadable)
    for device in devices.all:
        check_controllable(device)
        if restore_to is not None:
            check_supported(device, restore_to)
    clocks = supported_clocks(plan, devices)
    return Prepared(
        plan, devices, clocks, clock_changes(plan, devices, clocks, kept_gap_s), restore_to
    )


def execute(
    session: GpuSession,
    ready: Prepared,
    purpose: str,
    timing: Timing,
    quiet: bool,
) -> FollowedPlan:
    """Lock the clocks as time goes on, and restore them."""
    from optbench.hardware.clock_control.following import PlanFollower, follow_clock, follow_events
    from optbench.hardware.clock_control.interruptions import noting_signals

    with (
        noting_signals() as stop,
        controlled_clocks(session, ready.devices.all, purpose, ready.restore_to, warn) as control,
    ):
        follower = PlanFollower(
            control,
            stop,
            show_change if not quiet else lambda change: None,
            warn,
            devices=ready.devices.all,
        )
        if timing.fifo is None:
            follow_clock(follower, ready.changes, timing.start_at)
        else:
            follow_events(
                follower, ready.plan, ready.devices, ready.clocks, timing.fifo, timing.silence_s
            )
    follower.result.outcomes = control.outcomes
    return follower.result


def permission_remedy(user: int, words: Sequence[str]) -> str:
    """What a user can do whom the driver does not let lock clocks, as a command where there is
    one.
    """
    if user != 0:
        return f'Run: sudo -E env "PATH=$PATH" optbench {shlex.join(words)}'
    return (
        "This process is root already: its container lacks CAP_SYS_ADMIN (start it with `--cap-add "
        "SYS_ADMIN`), or the GPU is a virtual one whose host alone sets clocks"
    )


def start_time(text: str, now: float) -> float:
    """``--start-at`` as seconds of the wall clock."""
    if text.startswith("+"):
        try:
            return now + seconds(text[1:])
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--start-at: {error}") from None
    try:
        found = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--start-at {text!r} is no time; write 2027-01-31T22:00 (this host's time zone unless "
            "one is given, as in 2027-01-31T21:00Z) or +90s"
        ) from None
    if found < now:
        raise UsageError(
            f"--start-at {text!r} was {now - found:,.0f} s ago; give a time to come, or leave it "
            "out to begin now"
        )
    return found


def clock_range(text: str) -> ClockRange:
    """``LOW-HIGH`` in MHz."""
    match = re.fullmatch(r"(\d{1,6})-(\d{1,6})", text.strip())
    if match is None:
        raise UsageError(f"--restore-to {text!r} is no range; write LOW-HIGH in MHz, as 210-1410")
    return ClockRange(int(match[1]), int(match[2]))


def document_of(
    instance: Any, path: str, ready: Prepared, args: argparse.Namespace
) -> dict[str, Any]:
    """What is going to be done, as the JSON object."""
    target = ready.restore_to
    clocks = [
        {"uuid": uuid, "fraction": each.fraction, "mhz": each.mhz, "deviation": each.deviation}
        for (uuid, _), each in ready.clocks.items()
    ]
    segments = [
        {
            "task": each.task,
            "start_s": each.start_s,
            "end_s": each.end_s,
            "pool": each.pool,
            "devices": list(each.places),
            "clock": each.clock,
        }
        for each in ready.plan.clocked
    ]
    changes = [
        {"at_s": each.at_s, "uuid": each.device.uuid, "task": each.task, "mhz": each.mhz}
        for each in ready.changes
    ]
    return {
        "instance": instance.name,
        "instance_hash": instance.hash,
        "schedule": path,
        "executed": bool(args.execute),
        "colouring": COLOURING,
        "map": {
            pool: [
                {
                    "index": d.index,
                    "uuid": d.uuid,
                    "name": d.name,
                    "top_mhz": max(d.clocks_mhz, default=None),
                }
                for d in own
            ]
            for pool, own in ready.devices.pools.items()
        },
        "doubts": list(ready.devices.doubts),
        "segments": segments,
        "clocks": clocks,
        "changes": changes,
        "events": args.events,
        "between": between_words(args.keep_gap, target, args.events is not None),
        "restore_to": None if target is None else [target.low_mhz, target.high_mhz],
        "tasks_without_clock": len(ready.plan.segments) - len(ready.plan.clocked),
    }


def outcome_of(done: FollowedPlan) -> dict[str, Any]:
    """What was done, as a part of the JSON object."""
    applied = [
        {
            "at_s": each.at_s,
            "late_s": each.late_s,
            "call_s": each.call_s,
            "uuid": each.device.uuid,
            "task": each.task,
            "mhz": each.mhz,
        }
        for each in done.applied
    ]
    return {
        "applied": applied,
        "latest_s": done.latest_s,
        "refused_events": done.refused_events,
        "interrupted": done.interrupted,
        "restored": done.restored,
        "devices": [{"uuid": e.uuid, "state": e.state, "words": e.words} for e in done.outcomes],
    }
