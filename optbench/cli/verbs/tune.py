"""``optbench tune STUDY``: search for better parameters, by the study's [tune] section."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal import exits
from optbench.cli.terminal.backend import add_backend, uses_ray
from optbench.cli.terminal.output import emit_json
from optbench.cli.terminal.parser import Parser, number

if TYPE_CHECKING:
    from optbench.study.declared import Study
    from optbench.tune.search import TuneRun
    from optbench.tune.worker_crews import TuneEngine

DESCRIPTION = (
    "Search for better parameters of a solver or a problem, then compare them with the defaults "
    "on seeds that the search has not seen, and write them to a file that run, solve, simulate "
    "and pareto accept (-p params=FILE). Trials are ordinary cells of the local store. After an "
    "interruption or a kill the same command continues; a second process joins the search."
)
EXAMPLES = (
    "optbench tune gpu_dag_tune --trials 3 -n 2",
    "optbench tune gpu_dag_tune --trials 3 --json",
)
PATIENCE = (
    "optbench: stopping; finished trials are kept, the same command continues (press "
    "Ctrl-C again to exit at once)\n"
)


def configure(parser: Parser) -> None:
    parser.positional("study", "name of a study with a [tune] section, or its file")
    parser.option("--trials N", "number of trials in all (default: the study's)", number(int, 1))
    shared = "workers (default 1; on a cluster, as many as its cores take)"
    parser.option("-n --jobs N", shared, number(int, 1))
    add_backend(parser)
    where = "where trials are kept: postgresql://..., sqlite:///FILE, or a journal (the default)"
    parser.option("--storage URL", where)
    parser.flag("--no-track", "send nothing to MLflow")
    parser.flag("-q --quiet", "no progress")


def run(args: argparse.Namespace) -> int:
    from optbench.cli.terminal.tuning import document, show_tuned

    done = _search(args)
    told = document(done)
    if args.json:
        emit_json(told)
    else:
        show_tuned(done, told)
    return exit_code(done)


def _search(args: argparse.Namespace) -> TuneRun:
    from optbench.cli.terminal.place import announce_store
    from optbench.cli.terminal.tuning import SearchProgress
    from optbench.cli.terminal.work import interruptible
    from optbench.study.study_file import load_study
    from optbench.tune.search import run_tune

    study = load_study(args.study)
    announce_store(not args.no_track)
    settings = {"trials": args.trials, "storage": args.storage, "track": not args.no_track}
    with (
        _engine(args, study) as engine,
        SearchProgress(study.name, quiet=args.quiet or args.json) as progress,
    ):
        search = partial(run_tune, study, engine=engine, on_progress=progress, **settings)
        return interruptible(search, patience=PATIENCE)


@contextmanager
def _engine(args: argparse.Namespace, study: Study) -> Iterator[TuneEngine]:
    from optbench.tune.worker_crews import OneMachine

    if not uses_ray(args):
        yield OneMachine(args.jobs or 1)
        return
    from optbench.execute.ray_cluster.connection import connected
    from optbench.tune.nodes.ray_crew import RayNodes
    from optbench.tune.search_task import task_of

    with connected(args.address) as cluster:
        yield RayNodes.for_task(cluster, task_of(study), args.jobs)


def exit_code(done: TuneRun) -> int:
    """The exit code of a search: 3 where no trial satisfies the constraints."""
    if done.interrupted:
        return exits.INTERRUPTED
    found: Any = done.validation
    return exits.NO_SOLUTION if found is None or found.chosen is None else exits.DONE
