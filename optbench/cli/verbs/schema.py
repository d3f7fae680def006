"""``optbench schema``: the published JSON Schemas."""

from __future__ import annotations

import argparse

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import emit_json
from optbench.cli.terminal.parser import Parser

DESCRIPTION = "Print the JSON Schema (draft 2020-12) of one of optbench's files."
EXAMPLES = ("optbench schema instance", "optbench schema result > result.schema.json")
KINDS = ("instance", "schedule", "result")


def configure(parser: Parser) -> None:
    parser.positional("kind", "instance, schedule or result", choices=KINDS)


def run(args: argparse.Namespace) -> int:
    from optbench.model.files.schemas import schema

    emit_json(schema(args.kind))
    return exits.DONE
