"""``optbench gpu restore``: restore the clocks that a killed process left locked."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from optbench.cli.terminal import exits
from optbench.cli.terminal.applying import show_outcomes, warn
from optbench.cli.terminal.output import emit, emit_json, escape, show
from optbench.cli.terminal.parser import Parser
from optbench.hardware.calibration.cpufreq_journal import restore_cpu_clocks
from optbench.hardware.calibration.cpufreq_levels import cpu_root
from optbench.hardware.clock_control.restoring import forget_journal, restore_journals
from optbench.hardware.clock_control.state_folder import readable_folders
from optbench.hardware.clock_control.systemd_units import (
    NAME,
    UNIT_FOLDER,
    UNITS,
    risks_of_units,
    systemd_unit,
    write_units,
)

DESCRIPTION = (
    "Restore the clocks of GPUs by the journals that `optbench gpu apply` and `gpu calibrate` "
    "keep, where the process and its watchdog were both killed, or the host restarted. Devices "
    "of a process that runs are left to it. A journal whose device cannot be restored is kept, "
    "and the exit code is 2. The range of cpufreq that a killed calibration of processors left is "
    "put back too."
)
EXAMPLES = (
    "optbench gpu restore",
    "sudo optbench gpu restore",
    "optbench gpu restore --print-unit service",
    'sudo "$(command -v optbench)" gpu restore --write-units /etc/systemd/system',
    "optbench gpu restore --forget GPU-7c1e0c1a-5a54-43cf-ba2d-0f2a9c3c2f5e",
)
ENABLE = (
    "enable them with: systemctl daemon-reload && systemctl enable --now "
    f"{NAME}.service {NAME}.timer"
)


def configure(parser: Parser) -> None:
    parser.option(
        "--print-unit KIND",
        "print a systemd unit that runs this command: service (at boot), or timer (every 30 s)",
        choices=UNITS,
    )
    parser.option("--write-units FOLDER", f"write both units into a folder, as {UNIT_FOLDER}")
    parser.option("--forget UUID", "remove the journal of a device that is gone for good")


def run(args: argparse.Namespace) -> int:
    if args.print_unit is not None or args.write_units is not None:
        for risk in risks_of_units():
            warn(f"root is going to run this command: {risk}")
    if args.write_units is not None:
        written = [str(path) for path in write_units(Path(args.write_units))]
        if args.json:
            emit_json({"written": written})
        else:
            show(*(f"written: {escape(path)}" for path in written), ENABLE)
        return exits.DONE
    if args.print_unit is not None:
        emit(systemd_unit(args.print_unit))
        return exits.DONE
    folders = readable_folders()
    if args.forget is not None:
        outcomes = [forget_journal(folders[0], args.forget)]
    else:
        outcomes = [each for folder in folders for each in restore_journals(folder)]
        outcomes += [each for folder in folders for each in restore_cpu_clocks(folder, cpu_root())]
    if args.json:
        devices = [asdict(each) for each in outcomes]
        emit_json({"folders": [str(folder) for folder in folders], "devices": devices})
    elif outcomes:
        show_outcomes(outcomes)
    else:
        show(f"nothing to restore: no journal in {' or '.join(map(str, folders))}")
    return exits.USAGE if any(each.kept for each in outcomes) else exits.DONE
