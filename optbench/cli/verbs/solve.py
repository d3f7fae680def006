"""``optbench solve``: solve one instance with one solver and show the verified result."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from optbench.cli.terminal import exits, output
from optbench.cli.terminal.output import emit_json
from optbench.cli.terminal.parser import (
    Parser,
    UsageError,
    add_seed,
    add_time_limit,
    number,
    setting,
    settings_of,
)
from optbench.cli.terminal.targets import add_target, instance_of, require_schedules

if TYPE_CHECKING:
    from optbench.blaming import Blame
    from optbench.bounds.explain import Explanation
    from optbench.model.instance import Instance
    from optbench.model.result import Result

DESCRIPTION = (
    "Solve one instance. The schedule is verified, the objective bounded, and the gap "
    "between them shown."
)
EXAMPLES = (
    "optbench solve jobshop:jobs=6,machines=4 -s cpsat --time-limit 5s -o schedule.json",
    "optbench solve gpu_dag:tasks=8 -s cpsat --threads 2 --time-limit 10s --html schedule.html",
)

DEFAULT_TIME_S = 60.0
# The linear programmes that explain an instance of thousands of tasks take about this long.
EXPLAIN_S = 30.0
# Of each measured metric where ``--measure`` has no number.
MEASURED_READINGS = 5
# Of a smaller gap nobody asks whose fault it is.
LEAST_BLAMED = 0.01


def configure(parser: Parser) -> None:
    add_target(parser)
    parser.option(
        "-s --solver --policy SOLVER",
        "see `optbench list TARGET` (default cpsat; highs for models, MPS and LP files)",
    )
    parser.repeated("-p --param KEY=VALUE", "a parameter of the solver", setting)
    add_time_limit(parser, DEFAULT_TIME_S, "time for solving", unless="; none with --work-limit")
    units = "limit in the solver's own units: the same on any machine"
    parser.option("--work-limit N", units, number(float, 1e-9))
    add_seed(parser, "of the generated instance and of the solver (default 0)")
    other = "of the generated instance, where it differs from the solver's"
    parser.option("--instance-seed N", other, number(int, 0))
    parser.option("--threads N", "default 1", number(int, 1), 1)
    parser.option("--warm-start FILE", "a schedule to start from; the result is never worse")
    parser.option("-o --output FILE", "write the schedule")
    drawn = "write a page: Gantt chart, power curve, search; of other shapes their pictures"
    parser.option("--html FILE", drawn)
    more = "where the gap comes from, what one more GPU is worth, and whether bound "
    more += f"or schedule is to blame (up to {2 * EXPLAIN_S:g} s)"
    parser.flag("--explain", more)
    parser.flag("--bank", "use and keep bounds in the workspace's .optbench/ (not for comparisons)")
    readings = "take N readings of the decision's measured metrics, where its shape has some "
    readings += f"(default {MEASURED_READINGS})"
    parser.option("--measure N", readings, number(int, 1), nargs="?", const=MEASURED_READINGS)
    parser.option("--files FOLDER", "where tables and weights that come with the result are put")
    parser.flag("-q --quiet", "no progress")


def run(args: argparse.Namespace) -> int:
    output.check_writable("-o", args.output)
    output.check_writable("--html", args.html)
    if args.json and output.STDOUT in (args.output, args.html):
        raise UsageError("--json and a file on stdout (-) would mix; give one of them a path")
    # A time limit that ends before the work limit would make the result depend on the machine.
    if args.time_limit is None and args.work_limit is None:
        args.time_limit = DEFAULT_TIME_S
    seed = args.seed if args.instance_seed is None else args.instance_seed
    instance = instance_of(args.target, args.format, seed)
    if args.explain or args.bank:
        require_schedules(instance, "--explain and --bank")
    if args.measure is not None:
        _require_measured(instance)
    result = _write_files(args, instance, _write_schedule(args, instance, _solve(args, instance)))
    if args.measure is not None and result.verified:
        result = _measured(args, instance, result)
    explanation = _explain(args, instance, result) if args.explain else None
    blamed = _blame(args, instance, result) if explanation is not None else None
    if args.html:
        output.save(_page(instance, result, explanation), args.html)
    if args.json:
        from optbench.model.files.result_json import result_to_dict

        document = result_to_dict(result)
        if args.explain:
            document["explain"] = None if explanation is None else explanation.to_dict()
            if blamed is not None:
                document["explain"]["blame"] = blamed.to_dict()
        emit_json(document)
    elif output.STDOUT not in (args.output, args.html):
        from optbench.cli.terminal.result_lines import show_result

        show_result(instance, result, args.html, explanation, blamed)
    return exit_code(result)


def _require_measured(instance: Instance) -> None:
    """Refuse --measure before the work starts, where there is nothing to measure."""
    from optbench.errors import with_article
    from optbench.plugins.schedule_shape import shape_of

    shape = shape_of(instance)
    if not any(metric.has_readings for metric in shape.metrics.values()):
        raise UsageError(f"--measure: {with_article(shape.name)} has no measured metrics")


def _solve(args: argparse.Namespace, instance: Instance) -> Result:
    import optbench.api as api
    from optbench.cli.terminal.live_line import SolveProgress
    from optbench.cli.terminal.metering import metered
    from optbench.cli.terminal.place import announce_store
    from optbench.cli.terminal.work import interruptible
    from optbench.compiling.compile_meter import compiled_s
    from optbench.plugins.discovery import load_solver
    from optbench.plugins.schedule_shape import read_decision, shape_of
    from optbench.workspace import bank_file

    shape = shape_of(instance)
    named = args.solver
    if named is None:
        from optbench.plugins.solver_choice import usual_solver

        named = usual_solver(instance)
    name, solver = load_solver(named, settings_of(args.param))
    if args.bank:
        announce_store()
    start = read_decision(args.warm_start, instance) if args.warm_start else None
    levels = tuple(shape.label(instance, k) for k in range(shape.num_levels(instance)))
    with SolveProgress(name, args.time_limit, levels, quiet=args.quiet or args.json) as progress:
        work = partial(
            api.solve,
            instance,
            solver,
            time_limit_s=args.time_limit,
            work_limit=args.work_limit,
            seed=args.seed,
            threads=args.threads,
            warm_start=start,
            on_progress=progress,
            bank=bank_file() if args.bank else None,
        )
        with metered() as meter:
            result = interruptible(work)
        energy = meter.so_far().to_dict()
        # Making the instance may also have compiled code.
        return replace(result, solver=name, compile_s=round(compiled_s(), 3), energy=energy)


def _write_schedule(args: argparse.Namespace, instance: Instance, result: Result) -> Result:
    if not args.output or result.schedule is None:
        return result
    from optbench.model.files.strict_json import render
    from optbench.plugins.schedule_shape import shape_of

    text = render(shape_of(instance).write_decision(instance, result.schedule))
    return replace(result, schedule_file=output.save(text, args.output))


def _write_files(args: argparse.Namespace, instance: Instance, result: Result) -> Result:
    """Write the tables that come with a decision, where its shape has some."""
    from optbench.files import write_whole
    from optbench.plugins.schedule_shape import shape_of

    if result.schedule is None:
        return result
    texts = shape_of(instance).decision_files(instance, result.schedule)
    if not texts:
        return result
    folder = _folder(args, instance, result)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / name, text)
    paths = {Path(name).stem: str(folder / name) for name in texts}
    return replace(result, files=paths)


def _measured(args: argparse.Namespace, instance: Instance, result: Result) -> Result:
    """The result with readings; what is remarkable about them goes to stderr."""
    from optbench.plugins.shape_files import measure

    measured = measure(instance, result.schedule, args.measure, _folder(args, instance, result))
    for remark in measured.provenance.get("remarks", ()):
        sys.stderr.write(f"optbench: {remark}\n")
    return replace(result, measured=measured, files={**result.files, **measured.files})


def _folder(args: argparse.Namespace, instance: Instance, result: Result) -> Path:
    """The folder of files that come with a result, another for each thing that is trained."""
    if args.files is not None:
        return Path(args.files).absolute()
    from optbench.cli.terminal.place import announce_store
    from optbench.workspace import store

    announce_store()
    label = "".join(c if c.isalnum() or c in "-_." else "-" for c in result.instance)
    words = [label, result.instance_hash[:8], result.solver, str(result.seed)]
    trained = getattr(getattr(instance, "origin", None), "fingerprint", None)
    words += [] if trained is None else [trained]
    return store() / "solved" / "-".join(words)


def _page(instance: Instance, result: Result, explanation: Explanation | None) -> str:
    """The page of a result: schedules, or the pictures of another shape."""
    from optbench.html import schedule_page
    from optbench.html.decision_page import page_of_decision
    from optbench.shapes.protocol.shaped_instance import ShapedInstance

    if isinstance(instance, ShapedInstance):
        return page_of_decision(result, instance)
    return schedule_page.render(instance, [result], explained=[explanation])


def _explain(args: argparse.Namespace, instance: Instance, result: Result) -> Explanation | None:
    """The explanation of a verified result; without one, stderr states the reason."""
    from optbench.bounds.explain import explain
    from optbench.cli.terminal.work import interruptible
    from optbench.errors import UnsupportedError

    schedule = result.schedule
    if schedule is None or not result.verified:
        sys.stderr.write("optbench: no verified schedule to explain\n")
        return None
    if result.termination == "interrupted":
        return None
    bound = result.bound[0] if isinstance(result.bound, tuple) else result.bound
    if not (args.quiet or args.json):
        sys.stderr.write(f"explaining the gap (up to {EXPLAIN_S:g} s)\n")
    try:
        return interruptible(
            lambda stop: explain(instance, schedule, time_limit_s=EXPLAIN_S, best_bound=bound)
        )
    except UnsupportedError as error:
        sys.stderr.write(f"optbench: {error}\n")
        return None


def _blame(args: argparse.Namespace, instance: Instance, result: Result) -> Blame | None:
    """Whether the bound or the schedule is to blame for a gap that is worth asking about; where
    nobody can be blamed, stderr states the reason and the result stands.
    """
    from optbench.blaming import blame
    from optbench.cli.terminal.work import interruptible
    from optbench.errors import UnsupportedError
    from optbench.model.measures import gap

    levels = (result.objective, result.bound)
    value, bound = (level[0] if isinstance(level, tuple) else level for level in levels)
    share = gap(value, bound)
    if share is None or bound is None or share < LEAST_BLAMED or result.schedule is None:
        return None
    schedule = result.schedule
    if not (args.quiet or args.json):
        sys.stderr.write(f"blaming bound or schedule (up to {EXPLAIN_S:g} s)\n")
    try:
        return interruptible(
            lambda stop: blame(
                instance,
                schedule,
                result.solver,
                bound,
                time_limit_s=EXPLAIN_S,
                threads=args.threads,
                seed=args.seed,
            )
        )
    except UnsupportedError as error:
        sys.stderr.write(f"optbench: {error}\n")
        return None


def exit_code(result: Result) -> int:
    """The exit code of a result."""
    if result.status == "error" or result.termination == "crashed":
        return exits.INTERNAL
    if result.termination == "interrupted":
        return exits.INTERRUPTED
    if result.schedule is not None:
        return exits.DONE if result.verified else exits.NOT_VERIFIED
    return exits.NOT_VERIFIED if result.violations else exits.NO_SOLUTION
