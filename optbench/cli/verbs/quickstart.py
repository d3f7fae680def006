"""``optbench quickstart``: the main job of optbench/quickstart.py."""

from __future__ import annotations

import argparse
from pathlib import Path

from optbench.cli import outputs
from optbench.cli.parser import add_time_limit

SUMMARY = "a first GPU task graph: solve it two ways, verify, bound, draw"
DESCRIPTION = "Declare a small GPU task graph, solve it by CP-SAT and HiGHS, verify and bound both results, and draw them."
EXAMPLES = ("optbench quickstart", "optbench quickstart --time-limit 5s -o night.html")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", default="quickstart.html", help="the page (default quickstart.html)")
    add_time_limit(parser, 20.0, "time for each solver")


def run(args: argparse.Namespace) -> int:
    outputs.check_writable("-o", args.output)
    from optbench.quickstart import run as quickstart

    return quickstart(Path(args.output), args.time_limit, as_json=args.json)
