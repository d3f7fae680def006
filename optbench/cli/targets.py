"""TARGET arguments: an instance file of any known format, or a problem with its parameters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optbench.cli.parser import UsageError

if TYPE_CHECKING:
    from optbench.model.instance import Instance

TARGET_HELP = "an instance file of any known format, or a problem: NAME:key=value,... or NAME[key=value,...]"


def add_target(parser: argparse.ArgumentParser, name: str = "target") -> None:
    parser.add_argument(name, metavar=name.upper(), help=TARGET_HELP)
    parser.add_argument("--format", metavar="FORMAT", help="format of the file, where its content fits more than one")


def instance_of(target: str, format: str | None, seed: int) -> Instance:
    """The instance that a TARGET names."""
    from optbench.api import load_target
    from optbench.model import formats

    if not target.strip():
        raise UsageError("TARGET is empty; give an instance file or a problem such as jobshop:jobs=6,machines=4")
    return load_target(target, seed) if format is None else formats.load(target, format)
