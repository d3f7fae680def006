"""The main job: declare a night of training on a small GPU cluster, solve it two ways, verify, bound, and draw it.

``python -m optbench.quickstart`` or ``optbench quickstart``. ``night_batch`` is the part to read first.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import optbench as ob
from optbench.bench import page
from optbench.cli import exits
from optbench.cli.output import BAD, DIM, GOOD, emit_json, escape, figure, length, percent, show, table
from optbench.cli.progress import Progress
from optbench.cli.report import best_bounds
from optbench.cli.work import interruptible
from optbench.model.files import result_to_dict
from optbench.model.instance import Instance
from optbench.model.measures import check_bound
from optbench.model.result import Bound, Result

SOLVERS = ("cpsat", "highs")
THREADS = 2
# Name, seconds of data preparation, units of training, GPUs it can be spread over, GB of data, due after seconds.
PIPELINES = (
    ("vision", 1500, 90_000, (1, 2), 120, 5400),
    ("speech", 900, 60_000, (1, 2), 80, 7200),
    ("language", 2400, 160_000, (1, 2, 4), 200, 10800),
    ("ranking", 1200, 40_000, (1, 2), 60, 9000),
)
NEXT = (
    (__file__, "how this was declared"),
    ("optbench list", "problems and solvers"),
    ("optbench solve gpu_dag:tasks=12 --html schedule.html", "another instance"),
    ("optbench init my-lab", "your own problems and solvers"),
    ("docs/cli.md", "every verb, with examples"),
)


def night_batch() -> Instance:
    """Four training pipelines and a report, on ten devices that may not draw more than 1 kW together."""
    m = ob.Model("night batch", tick_s=300)  # time in steps of five minutes

    # Hardware: power, speed and clocks of the GPUs come from shipped profiles; GPUs sleep when they are not busy.
    cpu = m.pool("cpu", count=2, idle_w=40)
    a100 = m.pool("a100", count=4, profile="A100-PCIe", clocks=(0.6, 0.8, 1.0), sleeps=True)
    l4 = m.pool("l4", count=4, profile="L4", clocks=(0.6, 1.0), sleeps=True)
    for sender, receiver in ((cpu, a100), (cpu, l4), (a100, l4)):
        m.link(sender, receiver, bandwidth_gbit_s=10, latency_ms=1, energy_j_per_gb=20)

    # Work: prepare data on a CPU, train on one or more GPUs of either kind, evaluate, and report when all is done.
    evaluations = []
    for name, prepare_s, units, gpus, data_gb, due_s in PIPELINES:
        prep = m.task(f"{name}/prep", modes=[m.mode(cpu, time_s=prepare_s, energy_j=110.0 * prepare_s)])
        train = m.task(f"{name}/train", kind="training", units=units, gpus=gpus, memory_gb=16, data_gb={prep: data_gb})
        test = m.task(f"{name}/eval", kind="inference", units=units / 4, data_gb={train: 4}, deadline_s=due_s)
        evaluations.append(test)
    m.task("all/report", modes=[m.mode(cpu, time_s=300, energy_j=30_000)], after=evaluations)

    # Limits: a power cap, and everything done within three hours. Aim: joules, plus what a second of the night and a
    # second of lateness are worth in joules.
    m.limit(power_w=1000, makespan_s=3 * 3600)
    m.minimize(energy_j=1.0, makespan_s=200.0, tardiness_s=500.0)
    return m.build()


def run(page_file: Path, time_limit_s: float, as_json: bool = False) -> int:
    """Solve, verify, bound and draw; the exit code says whether everything held."""
    instance = night_batch()
    if not as_json:
        devices = int(instance.pools.count.sum())
        show(f"\n[bold]{instance.name}[/]: {instance.num_tasks} tasks, {devices} devices, minimise {instance.objective.label}")
    floors = ob.bound(instance)
    results = []
    for solver in SOLVERS:
        results.append(_solve(instance, solver, time_limit_s, quiet=as_json))
        if results[-1].termination == "interrupted":
            break
    held = all(_verified(instance, result) for result in results if result.schedule is not None)
    check_agreement(results, floors)
    page.write(page_file, instance, results, "Night batch: four training pipelines under a power cap of 1 kW")
    if as_json:
        emit_json(
            {
                "page": str(page_file),
                "verified": held,
                "bounds": [asdict(floor) for floor in floors],
                "results": list(map(result_to_dict, results)),
            }
        )
    else:
        _show(results, floors)
        _show_next(page_file)
    if any(result.termination == "interrupted" for result in results):
        return exits.INTERRUPTED
    if not held:
        return exits.NOT_VERIFIED
    return exits.DONE if all(result.schedule is not None for result in results) else exits.NO_SOLUTION


def _solve(instance: Instance, solver: str, time_limit_s: float, quiet: bool) -> Result:
    """What a user writes is the call of ob.solve; the rest is progress and Ctrl-C."""
    with Progress(solver, time_limit_s, (instance.objective.label,), quiet) as progress:

        def work(stop: threading.Event) -> Result:
            return ob.solve(instance, solver, time_limit_s=time_limit_s, threads=THREADS, on_progress=progress, stop=stop)

        return interruptible(work)


def _verified(instance: Instance, result: Result) -> bool:
    """Check the schedule once more, from the instance alone: feasible, and worth what the result says."""
    assert result.schedule is not None
    verdict = ob.verify(instance, result.schedule)
    return verdict.feasible and verdict.objective == result.objective


def check_agreement(results: Sequence[Result], floors: Sequence[Bound]) -> None:
    """No bound, whoever proved it, may exceed the objective of any schedule."""
    known = [*floors, *(bound for result in results for bound in result.bounds)]
    for result in results:
        for bound in known:
            if isinstance(result.objective, float):
                check_bound(result.objective, bound.value, bound.source, f"{result.solver} on {result.instance}")


def _show(results: Sequence[Result], floors: Sequence[Bound]) -> None:
    rows = []
    for result in results:
        bound = best_bounds(result.bounds).get(0)
        state = f"[{GOOD}]yes[/]" if result.verified else f"[{BAD}]no[/]"
        rows.append(
            (
                f"[bold]{result.solver}[/]",
                state,
                figure(result.objective),
                figure(bound.value if bound else None),
                percent(result.gap),
                f"{bound.source} ({bound.proof})" if bound else "-",
                figure(result.metrics.get("energy_j")),
                figure(result.metrics.get("makespan_s")),
                length(result.wall_s),
            )
        )
    without = ", ".join(f"{figure(floor.value)} by {floor.source} ({floor.proof})" for floor in floors)
    columns = ("solver", "verified", "objective", "bound", "gap", "bound from", "energy_j", "makespan_s", "time")
    show("", table(columns, rows, right=("objective", "bound", "gap", "energy_j", "makespan_s", "time")))
    show(f"\nBounds that no solver is needed for: {escape(without)}")


def _show_next(page_file: Path) -> None:
    show(f"Gantt chart and power curve: [bold]{escape(str(page_file))}[/]\n\n[{DIM}]where to look next[/]")
    width = max(len(place) for place, _ in NEXT)
    show("\n".join(f"  {escape(place):<{width}}   [{DIM}]{words}[/]" for place, words in NEXT))


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m optbench.quickstart`` takes what ``optbench quickstart`` takes."""
    from optbench.cli.main import main as command_line

    return command_line(["quickstart", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
