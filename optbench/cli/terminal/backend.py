"""The options that say which engine does the work: this machine, or a Ray cluster."""

from __future__ import annotations

import argparse

from optbench.cli.terminal.parser import Parser, UsageError

LOCAL, RAY = "local", "ray"


def add_backend(parser: Parser) -> None:
    """Add ``--backend`` and ``--address``."""
    engines = "local (this machine, the default) or ray (the nodes of a running Ray cluster)"
    parser.option("--backend ENGINE", engines, default=LOCAL, choices=(LOCAL, RAY))
    where = "the cluster's address (default: $RAY_ADDRESS, else the one on this machine)"
    parser.option("--address HOST:PORT", where)


def uses_ray(args: argparse.Namespace) -> bool:
    """Whether the command runs on a cluster; an address without one is refused."""
    if args.backend == LOCAL and args.address is not None:
        raise UsageError(
            f"--address {args.address!r} belongs to --backend ray; give both, or neither"
        )
    return bool(args.backend == RAY)
