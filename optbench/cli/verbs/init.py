"""``optbench init``: make a workspace."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import DIM, GOOD, emit_json, escape, show
from optbench.cli.terminal.parser import Parser

DESCRIPTION = (
    "Make a folder a workspace: your own plug-ins live there beside the built-in ones. "
    "Nothing is overwritten."
)
EXAMPLES = ("optbench init", "optbench init my-lab --compile")


def configure(parser: Parser) -> None:
    parser.positional("dir", "the folder (default: this one)", "?", default=".")
    parser.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        help=(
            "compile solvers now, about a minute, once per machine (default: ask on a terminal, "
            "else at first use)"
        ),
    )


def run(args: argparse.Namespace) -> int:
    from optbench.scaffold import init

    written = init(args.dir)
    if args.json:
        compile_s = compile_where_wanted(args.compile)
        files = [str(path) for path in written]
        emit_json(
            {
                "workspace": str(Path(args.dir).resolve()),
                "files": files,
                "compile_s": round(compile_s, 3),
            }
        )
        return exits.DONE
    show_made(args, written)
    compile_where_wanted(args.compile)
    return exits.DONE


def compile_where_wanted(wanted: bool | None) -> float:
    """Compile everything if the option or the user at the terminal says so; return the seconds."""
    from optbench.cli.verbs.compiling import compile_now

    if wanted is None:
        wanted = (
            sys.stdin.isatty() and sys.stderr.isatty() and has_to_compile() and ask_to_compile()
        )
    return compile_now([]) if wanted else 0.0


def has_to_compile() -> bool:
    from optbench.compiling.kernel_table import KERNELS, are_compiled

    return not are_compiled(KERNELS)


def ask_to_compile() -> bool:
    """Ask at the terminal whether to compile now."""
    sys.stderr.write(
        "compile the solvers now? It takes about a minute, once per machine; otherwise at first "
        "use [Y/n] "
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def show_made(args: argparse.Namespace, written: list[Path]) -> None:
    """Show the files that were written."""
    if not written:
        show(f"{escape(args.dir)} is already a workspace; nothing was written")
        return
    show(f"[{GOOD}]made a workspace[/] in [bold]{escape(args.dir)}[/]:")
    show("\n".join(f"  {escape(str(path))}" for path in written))
    enter = "" if Path(args.dir).resolve() == Path.cwd() else f"cd {escape(args.dir)}; "
    show(f"[{DIM}]next: {enter}optbench list; optbench new solver my_rule[/]")
