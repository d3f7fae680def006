"""``optbench train SOLVER --on PROBLEM -o CHECKPOINT``: train the network of a learned solver."""

from __future__ import annotations

import argparse
import csv
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.backend import add_backend
from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import DIM, emit_json, escape, figure, length, show, table
from optbench.cli.terminal.parser import (
    Parser,
    UsageError,
    add_seed,
    number,
    setting,
    settings_of,
)
from optbench.cli.terminal.training_pool import (
    pool_figures,
    refuse_nothing_to_distribute,
    training_pool,
)

if TYPE_CHECKING:
    from optbench.plugins.training import Trainable, TrainingResult

DESCRIPTION = (
    "Train a learned solver on instances of a problem (seeds 1000 and up) and write its "
    "checkpoint, with a record of the training. After an interruption or a kill the same "
    "command continues; curves go to CHECKPOINT.curves.csv and to MLflow."
)
EXAMPLES = (
    (
        "optbench train chsac_af --on geo_dc:days=0.05 -p decisions=2000 -p calibrate=2 -p "
        "budgets_s=[1000,2000] -o a.safetensors"
    ),
    (
        "optbench train chsac_af --on geo_dc:days=0.05 -p mode=paper -p decisions=800 -p envs=4 -o "
        "b.safetensors --no-track"
    ),
)
PATIENCE = (
    "optbench: stopping; what a training of minutes has reached is kept, and the same command "
    "continues (press Ctrl-C again to exit at once)\n"
)


def configure(parser: Parser) -> None:
    parser.positional("solver", "a solver that can be trained (chsac_af, gogh, learned_prices)")
    turns = "the problem to train on; given several times, environments take them in turn"
    parser.repeated("--on PROBLEM", turns, required=True)
    parser.option("-o --output CHECKPOINT", "the file to write", Path, required=True)
    parser.repeated("-p --param KEY=VALUE", "how to train (mode=paper, gamma=0.9)", setting)
    add_seed(parser, "default 0")
    shared = "workers that share its rollouts (default 1; on a cluster, its cores)"
    parser.option("-n --jobs N", shared, number(int, 1))
    add_backend(parser)
    parser.flag("--fresh", "start again instead of continuing an earlier training")
    parser.flag("--no-track", "send nothing to MLflow")
    parser.flag("-q --quiet", "no progress")


class TrainingProgress(LiveLine):
    """Show the progress of a training; a context manager."""

    waiting = "making instances"

    def describe(self, done: int, total: int, point: dict[str, float]) -> Step:
        """``120 of 450 rounds, reward -0.6, latency_s 1520, about 35.0 s left``."""
        names = ("reward", "latency_s", "loss")
        said = [f"{name} {figure(point[name])}" for name in names if name in point]
        left = self.spent_s() / max(1, done) * (total - done)
        parts = [f"{done} of {total} rounds", *said, f"about {length(left)} left"]
        return Step(", ".join(parts), done, total)


def run(args: argparse.Namespace) -> int:
    from optbench.cli.terminal.place import announce_store
    from optbench.cli.terminal.training_ledger import TrainingLedger
    from optbench.cli.terminal.work import interruptible
    from optbench.plugins import specs
    from optbench.plugins.discovery import load_problem
    from optbench.plugins.training import TrainingRun

    name, solver = _trainable(args.solver)
    if not args.output.parent.is_dir():
        raise UsageError(
            f"--output {str(args.output)!r}: the folder {str(args.output.parent)!r} does not exist"
        )
    if args.output.is_dir():
        inside = str(args.output / "mine.safetensors")
        raise UsageError(
            f"--output {str(args.output)!r} is a folder; give a file, such as {inside!r}"
        )
    from optbench.compiling.kernel_table import prepare

    refuse_nothing_to_distribute(name, solver, args)
    if not args.no_track:
        announce_store(True)
    compile_s = prepare(solver.needs_in_training or solver.needs)
    settings = specs.build(solver.settings, f"training of {name}", settings_of(args.param))
    with TrainingProgress(name, quiet=args.quiet or args.json) as progress:

        def work(stop: threading.Event) -> tuple[TrainingResult, dict[str, Any]]:
            problems = [load_problem(spec) for spec in args.on]
            with training_pool(solver, args, stop) as pool:
                began = time.monotonic()
                given = TrainingRun(
                    problems, args.output, settings, args.on, args.seed, args.fresh, progress,
                    stop, pool,
                )  # fmt: skip
                with TrainingLedger(given) as ledger:
                    done = ledger.kept(solver.train(given))
                return done, pool_figures(pool, time.monotonic() - began)

        done, workers = interruptible(work, patience=PATIENCE)
    return _finish(args, name, done, {"compile_s": round(compile_s, 3), **workers})


def _finish(args: argparse.Namespace, name: str, done: TrainingResult, more: dict[str, Any]) -> int:
    """Write the curves, send them to MLflow, and show what the training came to."""
    curves = args.output.with_name(f"{args.output.name}.curves.csv")
    write_curves(curves, done)
    tracked = None
    if not args.no_track and not done.interrupted:
        from optbench.track.training_runs import track_training

        tracked = track_training(name, done.about, done.history, args.output)
    told = {
        **done.about,
        "checkpoint": str(args.output),
        "curves": str(curves),
        "interrupted": done.interrupted,
        "mlflow_run": tracked,
        **more,
    }
    if args.json:
        emit_json(told)
    else:
        show_training(name, told, done.resumes)
    return exits.INTERRUPTED if done.interrupted else exits.DONE


def _trainable(spec: str) -> tuple[str, Trainable]:
    from optbench.plugins.discovery import load_class, load_solver, names
    from optbench.plugins.training import Trainable

    name, solver = load_solver(spec)
    if not isinstance(solver, Trainable):
        able = [
            each for each in names("solver") if issubclass(load_class("solver", each), Trainable)
        ]
        raise UsageError(
            f"solver {name!r} is not trained; those that are: {', '.join(able) or 'none'}"
        )
    return name, solver


def write_curves(path: Path, done: TrainingResult) -> None:
    """One row per point; a figure that a point does not have is empty."""
    columns = list(dict.fromkeys(name for point in done.history for name in point))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(done.history)


def show_training(name: str, told: dict[str, Any], resumes: bool) -> None:
    """Show a training in tables."""
    again = "stopped; the same command continues" if resumes else "stopped, nothing is written"
    end = again if told["interrupted"] else "trained"
    show(f"\n[bold]{escape(name)}[/]  [{DIM}]{end}: {escape(told['checkpoint'])}[/]")
    figures = (
        "decisions",
        "gradient_steps",
        "generations",
        "plays",
        "validation_loss",
        "training_s",
        "calibration_s",
        "workers",
        "calls_s",
        "waited_for_calls_s",
        "speed_up",
    )
    rows = [(key.replace("_", " "), escape(str(told[key]))) for key in figures if key in told]
    rows += [
        (f"price at {figure(budget)} s", f"{figure(price)} W")
        for budget, price in told.get("prices_w", {}).items()
    ]
    energy = told["energy"]
    how = " (estimated)" if energy["estimated"] else ""
    rows.append(("energy of the training", f"{figure(energy['energy_j'])} J{how}"))
    show("", table(("", "value"), rows, right=("value",)))
