"""``optbench schema``: the published JSON Schemas."""

from __future__ import annotations

import argparse

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import emit_json
from optbench.cli.terminal.parser import Parser, UsageError
from optbench.errors import nearest

DESCRIPTION = (
    "Print the JSON Schema (draft 2020-12) of one of optbench's files, or of the files of a shape "
    "of your own."
)
EXAMPLES = ("optbench schema instance", "optbench schema result > result.schema.json")
KINDS = ("instance", "schedule", "result")


def configure(parser: Parser) -> None:
    parser.positional("kind", "instance, schedule or result; or the name of a shape")
    parser.flag("--decision", "of a shape: the schema of its decisions")


def run(args: argparse.Namespace) -> int:
    from optbench.model.files.schemas import schema

    if args.kind in KINDS:
        if args.decision:
            raise UsageError("--decision goes with the name of a shape; see `schema schedule`")
        emit_json(schema(args.kind))
        return exits.DONE
    from optbench.plugins.shape_search import declared_shapes, shape_named

    names = [*KINDS, *(each.name for each in declared_shapes())]
    if args.kind not in names:
        raise UsageError(f"unknown kind {args.kind!r}; {nearest(args.kind, names)}")
    emit_json(shape_named(args.kind).schema(args.decision))
    return exits.DONE
