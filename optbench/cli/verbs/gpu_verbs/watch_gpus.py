"""``optbench gpu watch``: a live view of the devices; lines where there is no terminal."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.gpu_devices import add_devices, chosen_devices, period
from optbench.cli.terminal.output import emit_json, escape, show
from optbench.cli.terminal.parser import Parser, seconds
from optbench.cli.terminal.work import interruptible
from optbench.hardware.gpus.energy_words import energy_words
from optbench.hardware.gpus.nvml_session import GpuSession, gpu_session

if TYPE_CHECKING:
    from optbench.cli.terminal.gpu_view import WatchedGpu
    from optbench.hardware.gpus.sampling_loop import SamplingResult

DESCRIPTION = (
    "A live view of the GPUs: power with its course, energy since the start, clock, temperature, "
    "utilisation, and why a clock is not higher. Ctrl-C ends it. Where there is no terminal, a "
    "line per device and second is printed; with --json, one document at the end."
)
EXAMPLES = ("optbench gpu watch", "optbench gpu watch --seconds 30s --devices 0")


def configure(parser: Parser) -> None:
    parser.option("--every TIME", "period of the readings (default 250ms)", period, 0.25)
    parser.option("--seconds TIME", "how long: 30s, 10m (default: until Ctrl-C)", seconds)
    add_devices(parser)


def run(args: argparse.Namespace) -> int:
    with gpu_session() as session:
        watched, result = interruptible(lambda stop: watch(args, session, stop), patience="")
    if args.json:
        document = {"ended": result.ended, "span_s": result.span_s}
        emit_json(document | {"gpus": [as_json(each) for each in watched]})
    else:
        for each in watched:
            show(f"{escape(each.name)}: {escape(energy_words(each.energy.account())[0])}")
    for error in result.lost.values():
        sys.stderr.write(f"optbench: {error}\n")
    return exits.USAGE if result.lost else exits.DONE


def watch(
    args: argparse.Namespace, session: GpuSession, stop: threading.Event
) -> tuple[list[WatchedGpu], SamplingResult]:
    """Read until the end, and show on the way."""
    from optbench.cli.terminal.gpu_view import WatchedGpu, view_of
    from optbench.hardware.gpus.energy_integral import EnergyIntegral
    from optbench.hardware.gpus.sampling_loop import sample

    watched = []
    for device in chosen_devices(session, args.devices):
        reader, reason = session.reader(device), device.missing.get("energy_counter")
        energy = EnergyIntegral(args.every, reader.power_window_s, reason)
        watched.append(WatchedGpu(reader, energy))
    with view_of(watched, silent=args.json) as view:
        readers = [each.reader for each in watched]
        result = sample(readers, args.every, args.seconds, stop, view)
    return watched, result


def as_json(watched: WatchedGpu) -> dict[str, Any]:
    """A device, the last power that was read, and the energy of the time watched."""
    from optbench.hardware.gpus.recorder import energy_document

    device, moment, error = watched.reader.device, watched.moment, watched.error
    return {
        "index": device.index,
        "uuid": device.uuid,
        "name": device.name,
        "power_w": None if moment is None else moment.power_w,
        "power_window_s": watched.reader.power_window_s,
        "energy": energy_document(watched.energy.account()),
        "lost": None if error is None else f"{error.call}: {error.words}",
    }
