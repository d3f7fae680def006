"""``optbench gpu calibrate``: a profile of power and speed from the user's own devices."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.output import emit_json
from optbench.cli.terminal.parser import Parser, UsageError, number, seconds
from optbench.cli.terminal.sweep_lines import (
    SweepLine,
    plan_json,
    result_json,
    show_plan,
    show_result,
)
from optbench.cli.terminal.sweep_options import (
    clock_list,
    count_list,
    rounds,
    share,
    span,
    word_list,
)
from optbench.errors import OptbenchError

if TYPE_CHECKING:
    from optbench.hardware.calibration.calibration_target import CalibrationTarget
    from optbench.hardware.calibration.sweep_plan import SweepPlan, SweepSettings

DESCRIPTION = (
    "Measure power and time per unit of work at several clocks and numbers of devices, fit the "
    "laws P(f) = alpha f^3 + beta f + gamma and T(n, f) = (alpha + beta / f + gamma n) / n, and "
    'write a profile for `m.pool(..., profile="my-a100.json")`. The load is a program that prints '
    "lines `units=U seconds=S`; ours works with torch. Clocks are reset at the end, also after an "
    "error, a signal or a crash. Without a GPU, processors are calibrated where the machine "
    "exposes their energy. Points that were throttled, unsteady or noisy are not fitted, and named."
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
    parser.option("--device DEVICES", devices, word_list, ())
    parser.option("--workload CMD", "a command with {device}, {size}, {seconds}", default=None)
    kernel = "of our own load: matmul, copy, training (default: as --kind, else matmul)"
    parser.option("--kernel NAME", kernel, choices=KERNELS)
    sizes = "width of the matrices of our load; MB of its copies (default 1000)"
    parser.option("--size N", sizes, number(int, 1), 1000)
    parser.option("--kind NAME", "kind of work in the profile (default training)", str, "training")
    clocks = "MHz, or fractions of the top clock, with commas between"
    parser.option("--clocks LIST", clocks, clock_list, ())
    parser.option("--levels N", "clocks spread over --span (default 8)", number(int, 1))
    parser.option("--span LOW..HIGH", "as fractions of the top clock (default 0..1)", span)
    unset = "set no clock (needs no root); the law then holds at the clock that the device chooses"
    parser.flag("--current-clock", unset)
    counts = "numbers of devices that work together (default 1, 2, 4, ... up to all)"
    parser.option("--counts LIST", counts, count_list, ())
    parser.section("how well")
    runs = "least and most runs of each point (default 2..12)"
    parser.option("--rounds N..M", runs, rounds, (2, 12))
    precision = "rounds are added until every interval is this narrow (default 0.5%%)"
    parser.option("--precision SHARE", precision, share, 0.005)
    parser.option("--noise SHARE", "scatter that is refused (default 3%%)", share, 0.03)
    parser.option("--measure TIME", "steady time of a run (default 8s)", seconds, 8.0)
    parser.option("--settle TIME", "left out before it (default 1s)", seconds, 1.0)
    parser.option("--idle TIME", "of the idle power (default 10s)", seconds, 10.0)
    parser.option("--period TIME", "between two readings (default 20ms)", seconds, 0.02)
    parser.option("--run-limit TIME", "longest run of the load (default 10m or more)", seconds)
    retries = "repeats of a refused run, each with twice the time (default 1)"
    parser.option("--retries N", retries, number(int, 0), 1)
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


def run(args: argparse.Namespace) -> int:
    from optbench.hardware.calibration.sweep_plan import plan_sweep

    if args.output is None and not args.dry_run:
        raise UsageError("where should the profile go? Give -o my-device.json, or --dry-run")
    if args.output == output.STDOUT and args.json:
        raise UsageError("--json and -o - would mix; give the profile a path")
    output.check_writable("-o", args.output)
    output.check_writable("-o (its page)", page_path(args.output))
    settings = settings_of(args)
    quiet = args.quiet or args.json or args.dry_run
    with (
        SweepLine("calibrate", quiet) as progress,
        target_of(args.device, not args.current_clock, progress.say) as target,
    ):
        plan = plan_sweep(target, settings)
        if not args.dry_run:
            return calibrate(args, target, plan, progress)
        document = plan_json(target, plan, args.kind, args.output)
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
    page = page_path(args.output)
    if page is not None:
        from optbench.html.calibration_page import render_calibration

        written.append(output.save(render_calibration(document), page))
    if args.json:
        emit_json({**result_json(found), "written": written, "profile": document})
    elif args.output != output.STDOUT:
        show_result(found, document, args.kind, written)
    return exits.DONE


def page_path(profile: str | None) -> str | None:
    """The page beside a profile; none beside standard output."""
    if profile is None or profile == output.STDOUT:
        return None
    page = str(Path(profile).with_suffix(".html"))
    if page == profile:
        raise UsageError(f"-o {profile!r} is where the page would go; name the profile .json")
    return page


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
    if args.clocks and (args.span is not None or args.levels is not None):
        raise UsageError("--clocks names the clocks; --span and --levels spread them: give either")
    kernel = args.kernel or (args.kind if args.kind in KERNELS else KERNELS[0])
    own = (
        f"{shlex.quote(sys.executable)} -m optbench.hardware.calibration.torch_load "
        f"{{device}} {{size}} --kernel {kernel} --seconds {{seconds}}"
    )
    return SweepSettings(
        workload=args.workload or own,
        size=args.size,
        clocks=args.clocks,
        span=args.span or (0.0, 1.0),
        levels=args.levels or 8,
        counts=args.counts,
        rounds=args.rounds,
        precision=args.precision,
        noise=args.noise,
        measure_s=args.measure,
        settle_s=args.settle,
        idle_s=args.idle,
        period_s=args.period,
        run_limit_s=args.run_limit,
        retries=args.retries,
        leave_out=args.leave_out,
        seed=args.seed,
        start_s=0.5 if args.workload else OWN_START_S,
    )


@contextmanager
def target_of(
    devices: Sequence[str], set_clocks: bool, say: Callable[[str], None]
) -> Iterator[CalibrationTarget]:
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
                yield GpuTarget(session, gpus, say, set_clocks)
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
