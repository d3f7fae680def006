"""``optbench gpu calibrate``: a profile of power and speed from the user's own devices."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import DIM, emit_json, escape, figure, percent, show, table
from optbench.cli.terminal.parser import Parser, UsageError, number, seconds
from optbench.errors import OptbenchError
from optbench.html.quantities import duration

if TYPE_CHECKING:
    from optbench.hardware.calibration.calibration_target import CalibrationTarget
    from optbench.hardware.calibration.clock_sweep import Calibration, SweepProgress
    from optbench.hardware.calibration.sweep_plan import SweepPlan, SweepSettings

DESCRIPTION = (
    "Measure power and time per unit of work at several clocks and numbers of devices, fit the "
    "laws P(f) = alpha f^3 + beta f + gamma and T(n, f) = (alpha + beta / f + gamma n) / n, and "
    'write a profile for `m.pool(..., profile="my-a100.json")`. The load is a program that prints '
    "lines `units=U seconds=S`; ours works with torch. Clocks are reset at the end, also after an "
    "error, a signal or a crash. Without a GPU, processors are calibrated where the machine exposes "
    "their energy. Points that were throttled, unsteady or noisy are not fitted, and named."
)
EXAMPLES = (
    "optbench gpu calibrate -o my-a100.json --dry-run",
    "sudo -E env PATH=$PATH optbench gpu calibrate --device 0,1 -o my-a100.json",
    "optbench gpu calibrate --workload './load {device} {size} --for {seconds}' -o my-a100.json",
    "optbench gpu calibrate --kind inference --kernel copy --merge -o my-a100.json",
    "optbench gpu calibrate --device cpu --size 500 -o my-cpu.json",
)
KERNELS = ("matmul", "copy", "training")
CPU = "cpu"
# Our own load imports torch and warms up before it works.
OWN_START_S = 8.0


def configure(parser: Parser) -> None:
    parser.section("what is measured")
    devices = "indices or UUIDs with commas between, or `cpu` (default: the first GPU, else cpu)"
    parser.option("--device DEVICES", devices, words, ())
    parser.option("--workload CMD", "a command with {device}, {size}, {seconds}", default=None)
    kernel = "of our own load: matmul, copy, training (default: as --kind, else matmul)"
    parser.option("--kernel NAME", kernel, choices=KERNELS)
    sizes = "width of the matrices of our load; MB of its copies (default 1000)"
    parser.option("--size N", sizes, number(int, 1), 1000)
    parser.option("--kind NAME", "kind of work in the profile (default training)", str, "training")
    clocks = "MHz, or fractions of the top clock, with commas between"
    parser.option("--clocks LIST", clocks, numbers, ())
    parser.option("--levels N", "clocks spread over --span (default 8)", number(int, 1), 8)
    parser.option("--span LOW..HIGH", "as fractions of the top clock (default 0..1)", span, (0, 1))
    counts = "numbers of devices that work together (default 1, 2, 4, ... up to all)"
    parser.option("--counts LIST", counts, counts_of, ())
    parser.section("how well")
    rounds = "least and most runs of each point (default 2..12)"
    parser.option("--rounds N..M", rounds, rounds_of, (2, 12))
    precision = "rounds are added until every interval is this narrow (default 0.5%%)"
    parser.option("--precision SHARE", precision, share, 0.005)
    parser.option("--noise SHARE", "scatter that is refused (default 3%%)", share, 0.03)
    parser.option("--measure TIME", "steady time of a run (default 8s)", seconds, 8.0)
    parser.option("--settle TIME", "left out before it (default 1s)", seconds, 1.0)
    parser.option("--idle TIME", "of the idle power (default 10s)", seconds, 10.0)
    parser.option("--period TIME", "between two readings (default 20ms)", seconds, 0.02)
    parser.option("--run-limit TIME", "longest run of the load (default 10m)", seconds, 600.0)
    parser.flag("--leave-out", "fit without the points that are refused")
    parser.option("--seed N", "of the order of the runs", number(int, 0), 0)
    parser.section("the profile")
    parser.option("-o --output FILE", "the profile; beside it a page with the fits")
    parser.flag("--merge", "add the law to FILE, a profile of the same device and clocks")
    parser.option("--name NAME", "of the profile (default: that of the device)")
    parser.option("--sleep-w WATTS", "power of a sleeping device", number(float, 0.0))
    parser.option("--board-w WATTS", "power of the board, instead of its limit", number(float, 0.0))
    parser.option("--memory-gb GB", "memory, instead of what the device says", number(float, 0.0))
    parser.section("otherwise")
    parser.flag("--dry-run", "show what would be done, and how long it takes; nothing is set")
    parser.flag("-q --quiet", "no progress")


def words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def numbers(text: str) -> tuple[float, ...]:
    """``600,900,1200`` or ``0.5,0.75,1``."""
    try:
        found = tuple(float(word) for word in words(text))
    except ValueError:
        found = ()
    if not found or not all(0 < each < math.inf for each in found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of clocks; write 600,900,1200 (MHz) or 0.5,0.75,1"
        )
    return found


def counts_of(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(word) for word in words(text)}))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of counts; write 1,2") from None


def span(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    try:
        found = float(low), float(high)
    except ValueError:
        found = (1.0, 0.0)
    if not dots or not 0 <= found[0] < found[1] <= 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a span; write two fractions of the top clock, such as 0.4..1"
        )
    return found


def rounds_of(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    try:
        found = int(low), int(high if dots else low)
    except ValueError:
        found = (0, 0)
    if not 1 <= found[0] <= found[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds; write 3 or 2..12")
    return found


def share(text: str) -> float:
    """``0.5%`` or ``0.005``."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; write 0.5% or 0.005")
    return value


def run(args: argparse.Namespace) -> int:
    from optbench.hardware.calibration.sweep_plan import plan_sweep

    if args.output is None and not args.dry_run:
        raise UsageError("where should the profile go? Give -o my-device.json, or --dry-run")
    if args.output == output.STDOUT and args.json:
        raise UsageError("--json and -o - would mix; give the profile a path")
    output.check_writable("-o", args.output)
    settings = settings_of(args)
    with SweepLine("calibrate", args.quiet or args.json or args.dry_run) as progress:
        with target_of(args.device, progress.say) as target:
            plan = plan_sweep(target, settings)
            if not args.dry_run:
                return calibrate(args, target, plan, progress)
            document = plan_json(args, target, plan)
    emit_json(document) if args.json else show_plan(document)
    return exits.DONE


def calibrate(
    args: argparse.Namespace, target: CalibrationTarget, plan: SweepPlan, progress: SweepLine
) -> int:
    """Measure, and write the profile with its page; nothing is written before the end."""
    from optbench.hardware.calibration.calibrated_profile import (
        GivenFigures,
        check_merge,
        merged,
        profile_document,
        render_profile,
    )
    from optbench.hardware.calibration.clock_sweep import ClockSweep

    given = GivenFigures(args.name, args.sleep_w, args.board_w, args.memory_gb)
    old = existing(args.output) if args.merge else None
    if old is not None:
        check_merge(old, given.of_name(target), plan.fractions(target), args.output)
    found = ClockSweep(target, plan, progress).calibrate()
    document = profile_document(target, found, args.kind, given)
    if old is not None:
        document = merged(old, document, args.output)
    written = [output.save(render_profile(document), args.output)]
    if args.output != output.STDOUT:
        from optbench.html.calibration_page import render_calibration

        page = Path(args.output).with_suffix(".html")
        written.append(output.save(render_calibration(document), str(page)))
    if args.json:
        emit_json({**result_json(found), "written": written, "profile": document})
    elif args.output != output.STDOUT:
        show_result(found, document, args.kind, written)
    return exits.DONE


def existing(path: str) -> dict[str, Any] | None:
    """The profile to which a law is added; None where there is none yet."""
    from optbench.power.profiles import parse_profile

    if not Path(path).is_file():
        return None
    text = Path(path).read_text(encoding="utf-8")
    parse_profile(text, path)
    found: dict[str, Any] = json.loads(text)
    return found


def settings_of(args: argparse.Namespace) -> SweepSettings:
    from optbench.hardware.calibration.sweep_plan import SweepSettings

    if args.workload is not None and args.kernel is not None:
        raise UsageError("--kernel is of our own load; with --workload it has no meaning")
    kernel = args.kernel or (args.kind if args.kind in KERNELS else KERNELS[0])
    own = (
        f"{shlex.quote(sys.executable)} -m optbench.hardware.calibration.torch_load "
        f"{{device}} {{size}} --kernel {kernel} --seconds {{seconds}}"
    )
    return SweepSettings(
        workload=args.workload or own,
        size=args.size,
        clocks=args.clocks,
        span=args.span,
        levels=args.levels,
        counts=args.counts,
        rounds=args.rounds,
        precision=args.precision,
        noise=args.noise,
        measure_s=args.measure,
        settle_s=args.settle,
        idle_s=args.idle,
        period_s=args.period,
        run_limit_s=args.run_limit,
        leave_out=args.leave_out,
        seed=args.seed,
        start_s=0.5 if args.workload else OWN_START_S,
    )


@contextmanager
def target_of(devices: Sequence[str], say: Any) -> Iterator[CalibrationTarget]:
    """GPUs where there are some, else processors."""
    from optbench.hardware.calibration.cpu_target import CpuTarget
    from optbench.hardware.calibration.gpu_target import GpuTarget, chosen_gpus
    from optbench.hardware.cpu_energy.powercap_zones import CpuEnergyError
    from optbench.hardware.gpus.nvml_session import GpuUnavailableError, gpu_session

    if tuple(devices) == (CPU,):
        yield CpuTarget()
        return
    try:
        with gpu_session() as session:
            gpus = chosen_gpus(session, devices)
            if gpus:
                yield GpuTarget(session, gpus, say)
                return
            why = "the NVIDIA driver lists no GPU"
            if session.unreadable:
                why = str(session.unreadable[0])
    except GpuUnavailableError as error:
        why = error.reason
    if devices:
        raise OptbenchError(
            f"--device {','.join(devices)}: {why}; `--device cpu` calibrates the processors"
        )
    try:
        target = CpuTarget()
    except CpuEnergyError as error:
        raise OptbenchError(
            f"nothing can be calibrated here. GPUs: {why}. Processors: {error.reason}; "
            f"{error.remedy}. A shipped profile needs no measurement: `optbench list profiles`"
        ) from None
    say(f"no GPU: {why}; the processors are calibrated")
    yield target


class SweepLine(LiveLine):
    """What is measured now, and the results of runs."""

    waiting = "starting"
    refresh_hz = 2.0

    def describe(self, now: SweepProgress) -> Step:
        left = f"about {duration(now.total - now.done)} left"
        words = now.words if now.is_result else f"{now.words}, {left}"
        return Step(words, now.done, now.total, is_result=now.is_result)

    def has_more(self) -> bool:
        return False


def plan_json(
    args: argparse.Namespace, target: CalibrationTarget, plan: SweepPlan
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
        "kind": args.kind,
        "command": shlex.join(command),
        "power_window_s": plan.window_s,
        "rounds": [least, most],
        "runs_of_a_round": len(plan.points),
        "seconds_of_a_run": plan.load_s() + settings.start_s,
        "seconds": [plan.duration_s(least), plan.duration_s(most)],
        "wanted_precision": settings.precision,
        "output": args.output,
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


def result_json(found: Calibration) -> dict[str, Any]:
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
    found: Calibration, document: dict[str, Any], kind: str, written: Sequence[str]
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
        show(
            f"[{DIM}]the widest interval is ±{percent(found.half_width)}, wanted was ±{wanted}: "
            f"more rounds (--rounds), longer ones (--measure) or a wider span would narrow it[/]"
        )
    for reason in found.left_out:
        show(f"left out: {escape(reason)}")
    show(f"[{DIM}]{len(found.runs)} runs, {duration(found.spent_s)}[/]")
    for path in written:
        show(f"written to [bold]{escape(path)}[/]")
