"""The instances of a study: each made once, in a process of its own, and read by the runner as data."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from optbench.errors import OptbenchError
from optbench.execute.base import Executor, Job, JobOutcome
from optbench.execute.tasks import INSTANCE
from optbench.execute.validate_answer import clean
from optbench.sandbox.job_folder import remove
from optbench.store.run_store import INSTANCES, Store, read_foreign_instance
from optbench.study.declared import CellBudget, Study
from optbench.study.instance_sources import Made, note_made, recall, source_keys

OnMade = Callable[[Made, int], None]


def make_instances(
    study: Study, store: Store, executor: Executor, folder: Path, stop: threading.Event, on_made: OnMade | None = None
) -> list[Made]:
    """Every instance of the study, once for all solvers, in the study's order; those that were made before are known.

    ``on_made`` is told of each that had to be made, and how many there are of them. After ``stop`` some are missing.
    """
    notes = store.folder / INSTANCES
    keys = source_keys(study.problems, study.seeds, study.sources)
    made = {key: found for key in set(keys.values()) if (found := recall(notes, key)) is not None}
    missing = {key: pair for pair, key in keys.items() if key not in made}
    jobs = [
        Job(key, "instance", {"target": target, "seed": seed}, CellBudget(), folder / f"instance-{k}")
        for k, (key, (target, seed)) in enumerate(missing.items())
    ]
    folders = {job.key: job.folder for job in jobs}
    for outcome in executor.run(jobs, stop.is_set):
        key = outcome.key
        made[key] = _made(*missing[key], outcome, folders[key], store)
        remove(folders[key])
        with store.writing():
            note_made(notes, key, made[key])
        if on_made is not None:
            on_made(made[key], len(jobs))
    return [replace(made[keys[pair]], target=pair[0], seed=pair[1]) for pair in keys if keys[pair] in made]


def _made(target: str, seed: int, outcome: JobOutcome, folder: Path, store: Store) -> Made:
    answer = outcome.answer or {}
    if outcome.reason is not None or "refusal" in answer:
        return Made(target, seed, target, None, error=clean(str(outcome.reason or answer.get("message", "refused"))))
    try:
        instance = read_foreign_instance(folder / INSTANCE)
    except (OptbenchError, OSError, ValueError) as error:
        return Made(target, seed, target, None, error=clean(str(error)))
    store.add_instance(instance)
    return Made(target, seed, instance.name, instance.hash, instance.objective.num_levels)
