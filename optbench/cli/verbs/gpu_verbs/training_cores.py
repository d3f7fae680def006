"""``optbench gpu cores``: figures of a core of this machine for the training of a graph network."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.output import emit_json, figure, percent, show
from optbench.cli.terminal.parser import Parser, UsageError, number
from optbench.cli.terminal.targets import add_target, instance_of

DESCRIPTION = (
    "Measure training steps of a gnn_training TARGET on one core and on two cores of this machine, "
    "fit the rates, launch time and link of the cost model, and write a file of devices with the "
    "relative speeds of TARGET's own: `gnn_training:devices=FILE.json` reads it. Steps are those "
    "of TARGET's network on subgraphs of its graph. Measure while the machine has no other work."
)
EXAMPLES = (
    "optbench gpu cores gnn_training:graph=cora,parts=2,devices=2:1 -o cores.json",
    "optbench gpu cores gnn_training:graph=mesh,network=sage,parts=3,devices=4:2:1 -o cores.json",
)


def configure(parser: Parser) -> None:
    add_target(parser)
    parser.option("--fusions NAMES", "fusions that the steps execute, with + between", str, "")
    parser.option(
        "--repeats N", "readings of each step, the least counts (default 3)", number(int, 1), 3
    )
    parser.option("-o --output FILE", "the file of devices")
    parser.flag("-q --quiet", "no progress")


def run(args: argparse.Namespace) -> int:
    from optbench.shapes.gnn_training.fusion_names import fusion_numbers, wrong_fusions

    if args.output is None:
        raise UsageError("where should the devices go? Give -o cores.json")
    if args.output == output.STDOUT and args.json:
        raise UsageError("--json and -o - would mix; give the file a path")
    output.check_writable("-o", args.output)
    data = training_data(args.target, args.format)
    wrong = wrong_fusions(data, args.fusions)
    if wrong is not None:
        raise UsageError(f"--{wrong}")
    # Words that are refused do not wait for PyTorch.
    from optbench.gnn.calibration.core_fit import fit_core
    from optbench.gnn.calibration.device_file import device_document
    from optbench.gnn.calibration.step_samples import measured_samples
    from optbench.gnn.runtime.measured_step import relative_speeds
    from optbench.shapes.protocol.measurements import MeasuringMachine

    if not (args.quiet or args.json):
        print("optbench: steps on one core and on two are measured", file=sys.stderr, flush=True)
    samples = measured_samples(data, fusion_numbers(data, args.fusions), args.repeats)
    found = fit_core(samples)
    machine = MeasuringMachine.here(args.repeats)
    about = {"machine": machine.system, "cores": machine.cores, "target": args.target}
    if args.fusions:
        about["fusions"] = args.fusions
    document = device_document(found, relative_speeds(data).tolist(), samples, about)
    saved = output.save(json.dumps(document, indent=1) + "\n", args.output)
    if args.json:
        emit_json({"file": saved, "largest_error": found.largest_error, **document})
    else:
        core = found.core
        show(
            f"core: {figure(core.gflops)} Gflop/s, {figure(core.gb_per_s)} GB/s, launch "
            f"{figure(1e6 * core.launch_s)} us"
        )
        if found.gb_per_s is not None and found.latency_s is not None:
            show(f"link: {figure(found.gb_per_s)} GB/s, latency {figure(1e6 * found.latency_s)} us")
        else:
            show("link: not measured, this process may use one core only")
        show(f"samples are estimated within {percent(found.largest_error)}; written to {saved}")
    return exits.DONE


def training_data(target: str, format: str | None) -> Any:
    """The data of a gnn_training target."""
    instance: Any = instance_of(target, format, 0)
    shape = getattr(getattr(instance, "shape", None), "name", "schedules")
    if shape != "gnn_training":
        raise UsageError(
            f"TARGET {target!r} is of shape {shape!r}; cores are fitted for gnn_training, such as "
            "gnn_training:graph=cora,parts=2,devices=2:1"
        )
    return instance.data
