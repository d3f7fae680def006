"""``optbench VERB ...`` runs one verb and turns every error into one message and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from types import ModuleType

from optbench import __version__
from optbench.cli.terminal import exits
from optbench.cli.terminal.output import emit, emit_json
from optbench.cli.terminal.parser import Parser, UsageError, add_json
from optbench.compiling.compile_meter import announcing, no_announcement, to_stderr
from optbench.errors import ContradictionError, OptbenchError, PluginCrashError
from optbench.workspace import activate


@dataclass(frozen=True)
class Verb:
    """A verb: its module in ``optbench.cli.verbs``, imported when the verb is run, and its
    summary.
    """

    module_name: str
    summary: str

    @property
    def module(self) -> ModuleType:
        """The module, with DESCRIPTION, EXAMPLES, ``configure(parser)`` and ``run(args)``."""
        return import_module(f"optbench.cli.verbs.{self.module_name}")


VERBS: dict[str, Verb] = {
    "solve": Verb("solve", "solve one instance; every result is verified and bounded"),
    "verify": Verb(
        "verify_schedule", "check a schedule: every constraint by name, every metric recomputed"
    ),
    "bound": Verb("bound", "certified lower bounds: value, source and proof"),
    "simulate": Verb("simulate", "run a policy online in the event kernel"),
    "audit": Verb(
        "audit",
        "from a cluster's log: the energy that could be saved, certified, and the policy to use",
    ),
    "pareto": Verb("pareto", "the front between two metrics, with a certified lower bound"),
    "run": Verb("run_study", "run what is missing of a study; the same command resumes it"),
    "train": Verb("train", "train a learned solver"),
    "tune": Verb("tune", "search for better parameters, by a study's [tune] section"),
    "sync": Verb("sync", "send missing and changed runs to MLflow"),
    "ui": Verb("ui", "MLflow's pages on the runs of this workspace; Optuna's with --optuna"),
    "report": Verb("report", "one page on a study: ranking, differences, proofs"),
    "claims": Verb(
        "claims", "the ledger of claims: the paper's figure, ours, the bound, the verdict"
    ),
    "clean": Verb("clean", "what studies keep on disk, and freeing a part of it"),
    "convert": Verb("convert", "write an instance in another format"),
    "gpu": Verb("gpu", "the GPUs of this host: what they are, what they draw, and their clocks"),
    "list": Verb(
        "catalogue", "problems, solvers and studies with their parameters, profiles of devices"
    ),
    "data": Verb("data", "public instances: list, fetch, path"),
    "schema": Verb("schema", "JSON Schema of an instance, a schedule or a result"),
    "init": Verb("init", "make a workspace: problems/, solvers/, studies/ with a working example"),
    "compile": Verb("compiling", "compile the event kernel and the searches now, once per machine"),
    "new": Verb("new", "write a small working solver, problem or study, with its test"),
    "doctor": Verb("doctor", "versions, cores, GPUs, folders; what is missing, with the remedy"),
    "quickstart": Verb(
        "quickstart", "a first study in half a minute: solved, verified, bounded, compared"
    ),
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
            # A character that the terminal cannot show must not lose a result.
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            return run(words)
    except ContradictionError as error:
        return fail(f"contradiction: {error}", exits.INTERNAL, words)
    except PluginCrashError as error:
        return fail(str(error), exits.INTERNAL, words)
    except OptbenchError as error:
        return fail(str(error), exits.USAGE, words)
    except KeyboardInterrupt:
        return fail("interrupted", exits.INTERRUPTED, words)
    except OSError as error:
        if os.environ.get("OPTBENCH_DEBUG"):
            raise
        where = f"{error.filename}: " if error.filename else ""
        return fail(f"{where}{error.strerror or error}", exits.USAGE, words)
    except Exception as error:
        # The outermost frame: any exception that arrives here is an internal error.
        if os.environ.get("OPTBENCH_DEBUG"):
            raise
        return fail(
            f"internal error: {type(error).__name__}: {error}. Set OPTBENCH_DEBUG=1 to see where.",
            exits.INTERNAL,
            words,
        )


def run(words: Sequence[str]) -> int:
    """Parse the arguments and run the verb that they name."""
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    parser, verbs = build_parser(words[:1])
    if not words:
        emit(parser.format_help())
        return exits.USAGE
    args, extra = parser.parse_known_args(words)
    # Argparse ends a list of names at the first option.
    if isinstance(getattr(args, "names", None), list):
        args.names += [word for word in extra if not word.startswith("-")]
        extra = [word for word in extra if word.startswith("-")]
    if extra:
        verbs.get(args.verb or "", parser).refuse_extra(extra)
    if args.verb is None:
        parser.error("which verb?")
    activate()
    with announcing(no_announcement if getattr(args, "quiet", False) else to_stderr):
        code: int = VERBS[args.verb].module.run(args)
    return code


def build_parser(wanted: Iterable[str] = tuple(VERBS)) -> tuple[Parser, dict[str, Parser]]:
    """The parser, and the parser of each verb; only the verbs in ``wanted`` are imported and have
    options.
    """
    listed = "\n".join(f"  {name:<12}{verb.summary}" for name, verb in VERBS.items())
    parser = Parser(
        prog="optbench",
        description=DESCRIPTION,
        epilog=EPILOG.format(verbs=listed),
        usage="optbench VERB [options]",
    )
    parser.add_argument("--version", action=Version, help="show the version and leave")
    subparsers = parser.add_subparsers(
        dest="verb", metavar="VERB", help=argparse.SUPPRESS, parser_class=Parser, prog="optbench"
    )
    wanted = set(wanted)
    verbs = {}
    for name, verb in VERBS.items():
        if name not in wanted:
            verbs[name] = subparsers.add_parser(name)
            continue
        examples = "examples:\n" + "\n".join(f"  {line}" for line in verb.module.EXAMPLES)
        verbs[name] = subparsers.add_parser(
            name, description=verb.module.DESCRIPTION, epilog=examples
        )
        verb.module.configure(verbs[name])
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
