"""``optbench pareto``: the front between two metrics, every point with its proof."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import (
    BAD,
    DIM,
    GOOD,
    emit_json,
    escape,
    figure,
    percent,
    show,
    table_of,
)
from optbench.cli.terminal.parser import (
    Parser,
    UsageError,
    add_seed,
    add_time_limit,
    number,
    seconds,
    setting,
    settings_of,
)
from optbench.cli.terminal.targets import add_target, instance_of
from optbench.html.quantities import duration

if TYPE_CHECKING:
    from optbench.fronts.points import Front, FrontPoint, FrontProgress

DESCRIPTION = (
    "Least y under a limit on x, for limits over the whole range of x: every point "
    "verified and bounded."
)
EXAMPLES = (
    "optbench pareto gpu_dag:tasks=6,transfers=false --points 5 --time-limit 5s --html front.html",
    (
        "optbench pareto gpu_dag:tasks=5 --x energy_j --y flow_time_s --points 3 --time-limit 4s "
        "--json -o front.json"
    ),
)
UNTIL_COMPLETION = "completion"


def configure(parser: Parser) -> None:
    add_target(parser)
    parser.option(
        "-s --solver SOLVER", "a solver that supports limits (default cpsat)", default="cpsat"
    )
    parser.repeated("-p --param KEY=VALUE", "a parameter of the solver", setting)
    parser.option(
        "--x METRIC", "the metric that is limited (default makespan_s)", default="makespan_s"
    )
    parser.option(
        "--y METRIC", "the metric that is minimised (default energy_j)", default="energy_j"
    )
    parser.option("--points N", "points, both ends included (default 10)", number(int, 2), 10)
    add_time_limit(parser, 60.0, "time per point; the two ends take up to twice that")
    cheapest = "the time of every task's cheapest mode"
    idle = f"horizon of idle energy: 1h, or 'completion' (default: {cheapest})"
    parser.option("--horizon TIME", idle, horizon)
    parser.flag("--asleep", "devices that are not busy sleep, whatever their pool says")
    add_seed(parser, "of the generated instance and of the solver")
    parser.option("--threads N", "default 1", number(int, 1), 1)
    parser.option("-o --output FILE", "write the front as JSON")
    parser.option("--html FILE", "write a page with the plot")
    parser.option("--csv FILE", "write the points as CSV")
    parser.flag("-q --quiet", "no progress")


def horizon(text: str) -> float | str:
    """A duration, or None for the word 'completion'."""
    return text if text == UNTIL_COMPLETION else seconds(text)


def run(args: argparse.Namespace) -> int:
    files = {"-o": args.output, "--html": args.html, "--csv": args.csv}
    for option, path in files.items():
        output.check_writable(option, path)
    on_stdout = [path for path in files.values() if path == output.STDOUT]
    if len(on_stdout) + args.json > 1:
        raise UsageError(
            "--json and a file on stdout (-), or two of them, would mix; give one of them a path"
        )
    front = _front(args)
    written = _write(args, front)
    if args.json:
        emit_json(front.to_dict())
    elif not on_stdout:
        show_front(front, written)
    if front.termination == "interrupted":
        return exits.INTERRUPTED
    return exits.DONE if front.points else exits.NO_SOLUTION


def _front(args: argparse.Namespace) -> Front:
    from optbench.cli.terminal.work import interruptible
    from optbench.fronts.front_search import pareto

    instance = instance_of(args.target, args.format, args.seed)
    names = ("x", "y", "points", "seed", "threads", "asleep")
    settings = {name: getattr(args, name) for name in names}
    settings |= {"time_limit_s": args.time_limit, "horizon_s": args.horizon}
    params: dict[str, Any] = settings_of(args.param)
    with FrontLine(args.solver, quiet=args.quiet or args.json) as progress:
        settings["on_progress"] = progress
        return interruptible(partial(pareto, instance, args.solver, **settings, **params))


class FrontLine(LiveLine):
    """Print a line on stderr for every finished point, and the current one's progress at
    intervals.
    """

    waiting = "looking for a first schedule"

    def describe(self, now: FrontProgress) -> Step:
        """``point 2 of 8 under 120: energy_j 1.2e6, gap 3 % so far``."""
        from optbench.model.measures import gap

        under = "" if now.limit is None else f" under {figure(now.limit)}"
        so_far = "" if now.finished else " so far"
        distance = percent(gap(now.objective, now.bound))
        point = f"point {now.number} of {now.points}{under}: {now.metric} {figure(now.objective)}"
        done = now.number - (not now.finished)
        return Step(f"{point}, gap {distance}{so_far}", done, now.points, is_result=now.finished)

    def has_more(self) -> bool:
        return False


def _write(args: argparse.Namespace, front: Front) -> list[str]:
    """Write the requested files; return their paths."""
    written = []
    if args.output:
        from optbench.model.files.strict_json import render

        written.append(output.save(render(front.to_dict()), args.output))
    if args.html:
        from optbench.fronts.front_page import render_front

        written.append(output.save(render_front(front), args.html))
    if args.csv:
        written.append(output.save(_csv(front), args.csv))
    return [path for path in written if path != output.STDOUT]


def _csv(front: Front) -> str:
    text = io.StringIO()
    rows = front.to_dict()["points"]
    writer = csv.DictWriter(
        text, list(rows[0]) if rows else ["limit", "x", "y"], lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def show_front(front: Front, written: list[str]) -> None:
    """Show the front as a table."""
    from optbench.cli.terminal.result_lines import threads
    from optbench.fronts.front_page import declaration, verdict

    how = f"{front.solver}, {threads(front.threads)}, seed {front.seed}"
    show(f"\n[bold]{escape(front.instance)}[/]  [{DIM}]{escape(how)}[/]")
    show(f"[{DIM}]{escape(declaration(front))}[/]")
    if not front.points:
        reason = (
            "proven infeasible"
            if front.infeasible
            else "no schedule found in time; give it more (--time-limit)"
        )
        show(f"[{BAD}]no front[/]: {reason}")
        return
    columns: dict[str, Callable[[FrontPoint], str]] = {
        f"{front.x} ≤": lambda point: figure(point.limit),
        front.x: lambda point: figure(point.x),
        front.y: lambda point: figure(point.y),
        "bound": lambda point: figure(point.bound),
        "gap": lambda point: f"[{GOOD}]proven[/]" if point.proven else percent(point.gap),
        "above constant": lambda point: percent(0.0 if point.proven else point.gap_above),
        "bound from": lambda point: escape(point.bound_source or "-"),
        "time": lambda point: duration(point.wall_s),
    }
    show("", table_of(front.points, columns, left=("bound from",)), "")
    show(escape(verdict(front)))
    for path in written:
        show(f"written to [bold]{escape(path)}[/]")
