"""``optbench gpu VERB``: the host's GPUs: what they are, what they draw, and their clocks."""

from __future__ import annotations

import argparse
from importlib import import_module
from types import ModuleType

from optbench.cli.terminal.parser import Parser, add_json

# Each is a module of gpu_verbs/ with DESCRIPTION, EXAMPLES, configure(parser) and run(args).
SUB_VERBS = {
    "list": ("list_gpus", "devices, clocks, power, energy counter, why a clock is not higher"),
    "watch": ("watch_gpus", "a live view of power, clocks and utilisation"),
    "record": ("record_gpus", "write readings to a Parquet file, with energy and a plot"),
    "calibrate": ("calibrate", "a profile of power and speed, measured on the own devices"),
    "cores": ("training_cores", "figures of this machine's cores for graph networks, as devices"),
    "apply": ("apply_clocks", "lock clocks as a schedule says, and always restore them"),
    "restore": ("restore_clocks", "restore the clocks that a killed process left locked"),
}
DESCRIPTION = "Measure and control the GPUs of this host through NVIDIA's driver."
EXAMPLES = ("optbench gpu list", "optbench gpu list --json")


def configure(parser: Parser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, title="actions", parser_class=Parser
    )
    for name, (_, summary) in SUB_VERBS.items():
        module = module_of(name)
        examples = "examples:\n" + "\n".join(f"  {line}" for line in module.EXAMPLES)
        below = actions.add_parser(
            name, help=summary, description=module.DESCRIPTION, epilog=examples
        )
        module.configure(below)
        # A default here would override `optbench gpu --json list`.
        add_json(below, default=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    code: int = module_of(args.action).run(args)
    return code


def module_of(name: str) -> ModuleType:
    """The module of a sub-verb."""
    return import_module(f"optbench.cli.verbs.gpu_verbs.{SUB_VERBS[name][0]}")
