"""The options that say which engine does the work: this machine, or a Ray cluster."""

from __future__ import annotations

import argparse

from optbench.cli.terminal.parser import Parser, UsageError
from optbench.execute.backends import ADDRESS_HELP, BACKENDS, NAME_HELP


def add_backend(parser: Parser) -> None:
    """Add ``--backend`` and ``--address``."""
    parser.option("--backend NAME", NAME_HELP, choices=BACKENDS, default=BACKENDS[0])
    parser.option("--address HOST:PORT", ADDRESS_HELP)


def uses_ray(args: argparse.Namespace) -> bool:
    """Whether the command runs on a cluster; an address without one is refused."""
    is_local = args.backend == BACKENDS[0]
    if is_local and args.address is not None:
        raise UsageError(f"--address {args.address} is for --backend ray; leave it out, or add it")
    return not is_local
