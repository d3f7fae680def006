"""``optbench simulate``: run a policy online in the event kernel, verify and bound its schedule."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.output import (
    BAD,
    DIM,
    emit_json,
    escape,
    figure,
    length,
    percent,
    show,
    table,
)
from optbench.cli.terminal.parser import (
    Parser,
    UsageError,
    add_seed,
    number,
    seconds,
    setting,
    settings_of,
)
from optbench.cli.terminal.targets import add_target, instance_of, with_remarks
from optbench.html.quantities import duration
from optbench.model.measures import metric_unit
from optbench.plugins.schedule_shape import shape_of
from optbench.units import DAY_S

if TYPE_CHECKING:
    from optbench.model.instance import Instance
    from optbench.process_simulation import ProcessSimulation
    from optbench.shapes.protocol.shape import AnyInstance
    from optbench.simulation import Simulation

DESCRIPTION = (
    "Run a policy online in the event kernel. Its schedule is verified and its objective bounded."
)
EXAMPLES = (
    "optbench simulate gpu_dag:tasks=40 --policy fcfs",
    "optbench simulate gpu_dag:tasks=40 --policy fcfs --horizon 10m --json",
)
COUNTS = ("arrivals", "completed", "in_progress", "queue_end")
# Keys of ``--json`` for every family; they are null where a family has no such value.
ELSEWHERE = ("reference", "regret")
# Metrics that stand beside them, too, where a shape has them.
OF_METRICS = ("energy_j", "slo_violation", "load")
# Keys that stand after all others.
LAST = ("termination", "clairvoyant")
# Beside the name of a policy that uses work before it arrives.
CLAIRVOYANT = f"  [{BAD}]clairvoyant[/]"
# Shorter waits are not mentioned.
FELT_S = 0.1


def configure(parser: Parser) -> None:
    add_target(parser)
    parser.option(
        "--policy -s --solver POLICY",
        "see `optbench list solvers` (default fcfs; of other shapes the first that takes them)",
    )
    parser.repeated("-p --param KEY=VALUE", "a parameter of the policy", setting)
    parser.option("--arrivals FILE", "recorded arrivals, where the problem takes them")
    end = "end of the simulation: 10m, 2h, 7d (default: the problem's own, or when all is done)"
    parser.option("--horizon TIME", end, seconds)
    add_seed(parser, "of the generated instance and of the policy (default 0)")
    limit = "stop the policy after this time: 10s, 2m (default: none)"
    parser.option("--time-limit TIME", limit, seconds)
    parser.option("--threads N", "default 1", number(int, 1), 1)


def run(args: argparse.Namespace) -> int:
    from optbench.cli.terminal.work import interruptible
    from optbench.compiling.compile_meter import compiled_s
    from optbench.plugins.author_errors import is_built_in
    from optbench.plugins.discovery import load_class
    from optbench.plugins.specs import name_of
    from optbench.simulation import Simulation, simulate

    instance = instance_with(args)
    settings = {"seed": args.seed, "threads": args.threads, "horizon_s": args.horizon}
    settings["time_limit_s"] = args.time_limit
    policy = usual(instance) if args.policy is None else args.policy
    work = partial(simulate, instance, policy, params=settings_of(args.param), **settings)
    # A built-in policy runs in compiled code, of which nothing can be kept.
    keeps = not is_built_in(load_class("solver", name_of(policy)))
    patience = "optbench: stopping (press Ctrl-C again to leave at once)\n"
    done = replace(interruptible(work, keeps, patience), compile_s=round(compiled_s(), 3))
    if args.json:
        emit_json(document(done))
    elif isinstance(done, Simulation):
        show_simulation(done, instance.num_tasks)
    else:
        if args.policy is None:
            show(f"without -s: {escape(policy)}")
        show_played(done, instance)
    return exit_code(done)


def usual(instance: AnyInstance) -> str:
    """The policy where none is named."""
    from optbench.model.instance import Instance

    if isinstance(instance, Instance):
        return "fcfs"
    from optbench.plugins.solver_choice import usual_policy

    return usual_policy(instance)


def instance_with(args: argparse.Namespace) -> Instance:
    """The instance of the target, with the given arrivals and horizon if it is a problem."""
    from optbench.plugins import discovery, specs
    from optbench.plugins.given import instance_made_by
    from optbench.simulation import names_problem
    from optbench.study.grids import spec_text

    if args.format is not None or not names_problem(args.target):
        if args.arrivals is not None:
            raise UsageError(
                f"--arrivals {args.arrivals!r}: {args.target} has its own tasks; give a problem "
                "such as geo_dc"
            )
        return instance_of(args.target, args.format, args.seed)
    problem = discovery.load_problem(args.target)
    name, given = specs.parse(args.target)
    known, more = specs.values_of(problem), {}
    if args.arrivals is not None:
        if "arrivals" not in known:
            raise UsageError(
                f"--arrivals {args.arrivals!r}: problem {name!r} takes no recorded arrivals; "
                "geo_dc does, and `optbench convert` "
                "makes an instance of other records"
            )
        more["arrivals"] = args.arrivals
    if args.horizon is not None and "days" in known and not known.get("drain"):
        more["days"] = repr(args.horizon / DAY_S)
    if not more:
        return instance_of(args.target, None, args.seed)
    made = discovery.load_problem(args.target, more)
    instance: Instance
    instance, report = instance_made_by(made, args.seed)
    if report is not None:
        with_remarks(instance, report)
    return replace(instance, problem=spec_text(name, {**given, **more}))


def document(done: Simulation | ProcessSimulation) -> dict[str, Any]:
    """The object that ``--json`` prints; keys that this family does not have are null."""
    from dataclasses import asdict, fields

    values = {
        field.name: getattr(done, field.name)
        for field in fields(done)
        if field.name not in ("schedule", "decision", "bounds", *LAST)
    }
    return {
        **values,
        "bounds": [asdict(bound) for bound in done.bounds],
        **{name: getattr(done, name, None) for name in ELSEWHERE},
        **{name: done.metrics[name] for name in OF_METRICS if name in done.metrics.keys() - values},
        **{name: getattr(done, name) for name in LAST},
    }


def exit_code(done: Simulation | ProcessSimulation) -> int:
    """The exit code of a simulation."""
    if done.termination == "interrupted":
        return exits.INTERRUPTED
    if done.end == "stopped" and not done.violations:
        return exits.NO_SOLUTION
    if not done.verified:
        return exits.NOT_VERIFIED
    return exits.NO_SOLUTION if done.end in ("dead_end", "stopped") else exits.DONE


ENDS = {
    "complete": "everything done",
    "horizon": "stopped at the horizon",
    "dead_end": "no remaining task can ever start",
    "stopped": "the policy was stopped",
}


def show_simulation(done: Simulation, num_tasks: int) -> None:
    """Show a simulation in tables."""
    compiled = f", compiled for {length(done.compile_s)} before, once per machine"
    if done.compile_s < FELT_S:
        compiled = ""
    show(
        (
            f"\n[bold]{escape(done.instance)}[/]  [{DIM}]{num_tasks:,} tasks, "
            f"{escape(done.policy)}, "
            f"seed {done.seed}[/]{CLAIRVOYANT * done.clairvoyant}"
        ),
        f"{ENDS[done.end]} at {figure(done.now_s)} s; simulated in "
        f"{duration(done.wall_s)}{compiled}",
    )
    show_objective(done)
    show("", table(("", "value", "unit"), value_rows(done), right=("value",)))


def show_objective(done: Simulation | ProcessSimulation) -> None:
    """Show violations, and the objective with its bound."""
    for violation in done.violations:
        show(f"[{BAD}]violates[/] {escape(violation)}")
    if done.objective is not None or done.bound is not None:
        row = (done.objective_name, figure(done.objective), figure(done.bound), percent(done.gap))
        show(
            "",
            table(("objective", "value", "bound", "gap"), [row], right=("value", "bound", "gap")),
        )


def show_played(done: ProcessSimulation, instance: AnyInstance) -> None:
    """Show what a policy has reached in the process of another shape than schedules."""
    by = f"{escape(done.policy)}, seed {done.seed}[/]{CLAIRVOYANT * done.clairvoyant}"
    prepared = f", prepared for {length(done.prepare_s)} before" * (done.prepare_s >= FELT_S)
    show(
        f"\n[bold]{escape(done.instance)}[/]  [{DIM}]{escape(done.shape)}, {by}",
        f"{ENDS[done.end]} after {done.actions:,} actions; simulated in "
        f"{duration(done.wall_s)}{prepared}",
    )
    show_objective(done)
    known = shape_of(instance).metrics
    units = {name: known[name].unit if name in known else "" for name in done.metrics}
    rows = [(name, figure(value), units[name]) for name, value in done.metrics.items()]
    if done.regret is not None:
        rows.append((f"regret against {done.reference}", percent(done.regret), ""))
    rows += [(f"decision {name}", f"{x:.2g}", "ms") for name, x in (done.decision_ms or {}).items()]
    if rows:
        show("", table(("", "value", "unit"), rows, right=("value",)))


def value_rows(done: Simulation) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and unit of what a simulation measured."""
    for name in COUNTS:
        yield name.replace("_", " "), figure(getattr(done, name)), ""
    yield "energy", figure(done.energy_j), "J"
    yield "energy per unit of work", figure(done.j_per_unit), "J"
    if done.lost_j:
        yield "energy of lost work", figure(done.lost_j), "J"
    for what, spread in done.latency_s.items():
        yield from ((f"{what} {name}", figure(value), "s") for name, value in spread.items())
    for name, value in done.metrics.items():
        if not is_shown_above(name):
            is_gap = name.startswith("gap_")
            yield name, (percent if is_gap else figure)(value), "" if is_gap else metric_unit(name)
    for name, value in (done.decision_ms or {}).items():
        yield f"decision {name}", f"{value:.2g}", "ms"


def is_shown_above(metric: str) -> bool:
    """Whether the lines above the metrics already show this one."""
    first, _, rest = metric.partition("_")
    told = (*COUNTS, "energy_j", "j_per_unit", "makespan")
    return metric in told or (first in ("sojourn", "service") and rest != "censored_s")
