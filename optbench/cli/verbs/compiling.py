"""``optbench compile``: compile kernels now instead of at the first use of a solver."""

from __future__ import annotations

import argparse

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import DIM, GOOD, emit_json, escape, length, show
from optbench.cli.terminal.parser import Parser

DESCRIPTION = (
    "Compile the kernels of solvers, policies and bounds into the user's cache folder "
    "($OPTBENCH_CACHE, or the platform's). Without this command the first use of each compiles "
    "it before its clock starts. Kernels that are compiled already are kept."
)
EXAMPLES = ("optbench compile", "optbench compile random_rules cpsat")


def configure(parser: Parser) -> None:
    parser.positional("names SOLVER", "only what these need (default: everything)", "*", default=[])
    parser.flag("-q --quiet", "no progress")


def run(args: argparse.Namespace) -> int:
    compile_s = compile_now(args.names)
    from optbench.compiling.kernel_cache import kernels_folder

    if args.json:
        emit_json({"compile_s": round(compile_s, 3), "folder": str(kernels_folder())})
    elif compile_s:
        show(
            f"[{GOOD}]compiled[/] in {length(compile_s)}; [{DIM}]{escape(str(kernels_folder()))}[/]"
        )
    else:
        show(f"everything was compiled already; [{DIM}]{escape(str(kernels_folder()))}[/]")
    return exits.DONE


def compile_now(solvers: list[str]) -> float:
    """Compile everything, or the kernels of these solvers and the bounds; return the seconds."""
    from optbench.compiling.kernel_table import BOUNDING, KERNELS, prepare
    from optbench.plugins.discovery import kernels_of

    if not solvers:
        return prepare(KERNELS)
    return prepare(BOUNDING.union(*(kernels_of(name) for name in solvers)))
