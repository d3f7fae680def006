"""``optbench gpu record``: readings of devices in a Parquet file, and their energy."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from optbench.cli.terminal import exits
from optbench.cli.terminal.gpu_devices import add_devices, chosen_devices, period
from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import BAD, DIM, check_writable, emit_json, escape, save, show
from optbench.cli.terminal.parser import Parser, seconds
from optbench.cli.terminal.work import interruptible
from optbench.hardware.gpus.energy_words import energy_words, milliseconds
from optbench.hardware.gpus.nvml_session import GpuSession, gpu_session

if TYPE_CHECKING:
    from optbench.hardware.gpus.recorder import RecordingEnd

DESCRIPTION = (
    "Write readings of power, energy counter, clocks, temperature and utilisation to a Parquet "
    "file, and print the energy of each device: by the counter, by integration, and the "
    "difference. Ctrl-C, or a device that stops answering, ends the recording early: the file is "
    "whole and says so. Without --seconds, Ctrl-C is the end."
)
EXAMPLES = (
    "optbench gpu record -o power.parquet --seconds 60",
    "optbench gpu record -o power.parquet --every 20ms --seconds 10m --devices 0,1 --plot p.svg",
)
STOPPING = "optbench: stopping; the recording is kept (press Ctrl-C again to leave at once)\n"


class RecordingLine(LiveLine):
    """How far a recording is; refreshed once a second, because it shares a core with sampling."""

    waiting: ClassVar[str] = "first readings"
    refresh_hz: ClassVar[float] = 1

    def describe(self, passed_s: float, seconds: float | None, *_: object) -> Step:
        of = "" if seconds is None else f" of {seconds:g} s"
        return Step(f"{passed_s:.1f} s{of} recorded", passed_s, seconds)


def configure(parser: Parser) -> None:
    parser.option("-o --output FILE", "the Parquet file to write", required=True)
    parser.option("--every TIME", "period of the readings (default 50ms)", period, 0.05)
    parser.option("--seconds TIME", "how long: 30s, 10m (default: until Ctrl-C)", seconds)
    add_devices(parser)
    parser.option("--plot FILE", "write power and clocks over time as SVG")
    parser.flag("-q --quiet", "no progress on stderr")


def run(args: argparse.Namespace) -> int:
    check_writable("--output", args.output)
    check_writable("--plot", args.plot)
    with gpu_session() as session:
        end = interruptible(lambda stop: recorded(args, session, stop), patience=STOPPING)
    plot = None
    if args.plot is not None:
        from optbench.hardware.gpus.recording_file import read_recording
        from optbench.html.recording_chart import recording_chart

        plot = save(recording_chart(read_recording(args.output)), args.plot)
    if args.json:
        emit_json({"file": args.output, "plot": plot, **document(end)})
    else:
        show_end(args, end)
    return exit_code(end)


def recorded(args: argparse.Namespace, session: GpuSession, stop: threading.Event) -> RecordingEnd:
    """Record, with a progress line."""
    from optbench.hardware.gpus.recorder import record

    devices = chosen_devices(session, args.devices)
    with RecordingLine("recording", quiet=args.quiet or args.json) as line:
        tick = ticking(line, args.seconds)
        path = Path(args.output)
        return record(
            session, devices, path, args.every, args.seconds, stop, tick, lambda e: line.say(str(e))
        )


def ticking(line: RecordingLine, seconds: float | None) -> Callable[[float], None]:
    """Tell the line at most once a second."""
    due_s = 0.0

    def tick(passed_s: float) -> None:
        nonlocal due_s
        if passed_s >= due_s:
            due_s = passed_s + 1.0
            line(passed_s, seconds)

    return tick


def document(end: RecordingEnd) -> dict[str, Any]:
    """The file's metadata, with the energies in words."""
    found = asdict(end.info)
    for gpu, energy in zip(found["gpus"], end.energies, strict=True):
        gpu["energy"]["words"] = list(energy_words(energy))
    return found


def exit_code(end: RecordingEnd) -> int:
    if end.errors:
        return exits.USAGE
    return exits.INTERRUPTED if end.info.ended == "interrupted" and end.info.seconds else exits.DONE


def show_end(args: argparse.Namespace, end: RecordingEnd) -> None:
    """Show the energies, and what went wrong."""
    info = end.info
    rows = sum(each.num_readings for each in end.energies)
    share = info.processor_s / info.span_s if info.span_s > 0 else 0.0
    show(
        f"{rows:,} readings every {milliseconds(info.period_s)} over {info.span_s:.1f} s in "
        f"[bold]{escape(args.output)}[/]"
        f"  [{DIM}]{info.missed_ticks} ticks missed, {100 * share:.2g} % of a core[/]"
    )
    for gpu, energy in zip(info.gpus, end.energies, strict=True):
        figure, *more = energy_words(energy)
        show(f"GPU {gpu.index} {escape(gpu.name)}: [bold]{escape(figure)}[/]")
        for words in more:
            show(f"  [{DIM}]{escape(words)}[/]")
        if gpu.power_window_s:
            show(f"  [{DIM}]power is read as a mean over {gpu.power_window_s:g} s[/]")
    if info.ended == "interrupted":
        show(f"stopped after {info.span_s:.1f} s; what was recorded until then is kept")
    for error in end.errors:
        show(f"[{BAD}]{escape(str(error))}[/]", "what was recorded until then is kept")
