"""``optbench VERB ...``: reads the command line, runs one verb, turns every error into one message and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from types import ModuleType

from optbench import __version__
from optbench.cli.terminal import exits
from optbench.cli.terminal.output import emit, emit_json
from optbench.cli.terminal.parser import Parser, UsageError, add_json
from optbench.cli.verbs import (
    audit,
    bound,
    catalogue,
    claims,
    compiling,
    convert,
    data,
    doctor,
    init,
    new,
    pareto,
    quickstart,
    report,
    run_study,
    schema,
    simulate,
    solve,
    sync,
    train,
    tune,
    ui,
    verify,
)
from optbench.compiling.compile_meter import announcing, say_nothing, to_stderr
from optbench.errors import ContradictionError, OptbenchError
from optbench.workspace import activate

VERBS: dict[str, ModuleType] = {
    "solve": solve,
    "verify": verify,
    "bound": bound,
    "simulate": simulate,
    "audit": audit,
    "pareto": pareto,
    "run": run_study,
    "train": train,
    "tune": tune,
    "sync": sync,
    "ui": ui,
    "report": report,
    "claims": claims,
    "convert": convert,
    "list": catalogue,
    "data": data,
    "schema": schema,
    "init": init,
    "compile": compiling,
    "new": new,
    "doctor": doctor,
    "quickstart": quickstart,
}
DESCRIPTION = "Declare a GPU-scheduling problem once; solve it, verify it, bound it."
EPILOG = """\
verbs:
{verbs}

A TARGET is an instance file of any known format, or a problem with its parameters:
  optbench solve jobshop:jobs=6,machines=4 -s cpsat --time-limit 10s
First steps: `optbench quickstart`, `optbench list`, `optbench VERB --help`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the command ``optbench``; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign is no reason to lose a result
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            return run(words)
    except ContradictionError as error:
        return fail(f"contradiction: {error}", exits.INTERNAL, words)
    except OptbenchError as error:
        return fail(str(error), exits.USAGE, words)
    except KeyboardInterrupt:
        return fail("interrupted", exits.INTERRUPTED, words)
    except OSError as error:
        if os.environ.get("OPTBENCH_DEBUG"):
            raise
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}", exits.USAGE, words)
    except Exception as error:  # the outermost frame: whatever is left is ours to mend, not the user's
        if os.environ.get("OPTBENCH_DEBUG"):
            raise
        return fail(f"internal error: {type(error).__name__}: {error}. Set OPTBENCH_DEBUG=1 to see where.", exits.INTERNAL, words)


def run(words: Sequence[str]) -> int:
    """Parse the words and run the verb they name."""
    parser, verbs = build_parser()
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words:
        emit(parser.format_help())
        return exits.USAGE
    args, extra = parser.parse_known_args(words)
    if isinstance(getattr(args, "names", None), list):  # argparse closes a list of names at the first option
        args.names += [word for word in extra if not word.startswith("-")]
        extra = [word for word in extra if word.startswith("-")]
    if extra:
        verbs.get(args.verb or "", parser).refuse_extra(extra)
    if args.verb is None:
        parser.error("which verb?")
    activate()
    with announcing(say_nothing if getattr(args, "quiet", False) else to_stderr):
        code: int = VERBS[args.verb].run(args)
    return code


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser, and the parser of each verb."""
    listed = "\n".join(f"  {name:<12}{module.SUMMARY}" for name, module in VERBS.items())
    parser = Parser(prog="optbench", description=DESCRIPTION, epilog=EPILOG.format(verbs=listed), usage="optbench VERB [options]")
    parser.add_argument("--version", action=Version, help="show the version and leave")
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", help=argparse.SUPPRESS, parser_class=Parser, prog="optbench")
    verbs = {}
    for name, module in VERBS.items():
        examples = "examples:\n" + "\n".join(f"  {line}" for line in module.EXAMPLES)
        verbs[name] = subparsers.add_parser(name, description=module.DESCRIPTION, epilog=examples)
        module.configure(verbs[name])
        add_json(verbs[name])
    return parser, verbs


class Version(argparse.Action):
    """``--version``."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        emit(f"optbench {__version__}")
        parser.exit(0)


def show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """One line, without the place in the code."""
    sys.stderr.write(f"optbench: {category.__name__}: {message}\n")


def fail(message: str, code: int, words: Sequence[str]) -> int:
    """One message on stderr, and for machines the same as JSON on stdout."""
    try:
        sys.stderr.write(f"optbench: {message}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        pass
    if "--json" in words:
        emit_json({"error": message})
    return code


__all__ = ["UsageError", "main"]

if __name__ == "__main__":
    sys.exit(main())
