"""The instances of a study: each is made once, in a subprocess, and the runner reads it as data."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, OptbenchError
from optbench.execute.base import Executor, Job, JobOutcome
from optbench.execute.tasks import INSTANCE
from optbench.execute.validate_answer import clean
from optbench.sandbox.job_folder import remove_folder
from optbench.shapes.protocol.shape_facts import ShapeFacts
from optbench.shapes.protocol.shaped_instance import document_hash
from optbench.store.run_store import (
    INSTANCES,
    Store,
    read_foreign_document,
    read_foreign_instance,
)
from optbench.study.code_version import definition_digest
from optbench.study.declared import CellBudget, Study
from optbench.study.instance_sources import MadeInstance, read_note, source_keys, write_note

OnMade = Callable[[MadeInstance, int], None]


def make_instances(
    study: Study,
    store: Store,
    executor: Executor,
    folder: Path,
    stop: threading.Event,
    on_made: OnMade | None = None,
) -> list[MadeInstance]:
    """Return every instance of the study, in the study's order; instances that were made before are
    read from the store.

    ``on_made`` is called for each instance that had to be made, with their number. After ``stop``
    some are missing.
    """
    notes = store.folder / INSTANCES
    keys = source_keys(study.problems, study.seeds, study.sources)
    made = {
        key: found for key in set(keys.values()) if (found := read_note(notes, key)) is not None
    }
    missing = {key: pair for pair, key in keys.items() if key not in made}
    jobs = [
        Job(
            key,
            "instance",
            {"target": target, "seed": seed},
            CellBudget(),
            folder / f"instance-{k}",
        )
        for k, (key, (target, seed)) in enumerate(missing.items())
    ]
    folders = {job.key: job.folder for job in jobs}
    for outcome in executor.run(jobs, stop.is_set):
        key = outcome.key
        made[key] = _made(*missing[key], outcome, folders[key], store)
        remove_folder(folders[key])
        with store.writing():
            write_note(notes, key, made[key])
        if on_made is not None:
            on_made(made[key], len(jobs))
    every = [
        replace(made[keys[pair]], target=pair[0], seed=pair[1])
        for pair in keys
        if keys[pair] in made
    ]
    refuse_ambiguous(every)
    return every


def _made(target: str, seed: int, outcome: JobOutcome, folder: Path, store: Store) -> MadeInstance:
    answer = outcome.answer or {}
    if outcome.reason is not None or "refusal" in answer:
        return MadeInstance(
            target,
            seed,
            target,
            None,
            error=clean(str(outcome.reason or answer.get("message", "refused"))),
        )
    try:
        if "shape" in answer:
            return _made_of_shape(target, seed, answer, folder, store)
        instance = read_foreign_instance(folder / INSTANCE)
    except (OptbenchError, OSError, ValueError) as error:
        return MadeInstance(target, seed, target, None, error=clean(str(error)))
    store.add_instance(instance)
    return MadeInstance(target, seed, instance.name, instance.hash, instance.objective.num_levels)


def _made_of_shape(
    target: str, seed: int, answer: Mapping[str, Any], folder: Path, store: Store
) -> MadeInstance:
    """Take an instance whose shape this process does not load: its canonical form, as data."""
    facts = ShapeFacts.from_dict(answer["shape"])
    facts = replace(facts, definition=definition_digest(facts.files))
    stored = read_foreign_document(folder / INSTANCE)
    document = stored.get("document")
    if not isinstance(document, dict) or stored.get("home") != facts.home:
        raise FileFormatError(f"the instance of {target} is no canonical form of {facts.name!r}")
    instance_hash = document_hash(document)
    content = json.dumps(stored, allow_nan=False).encode()
    store.add_shaped_instance(instance_hash, facts.of_cell, content)
    name, levels = clean(str(answer.get("instance", ""))), answer.get("levels")
    if levels != facts.levels:
        raise FileFormatError(f"{name}: {levels!r} levels; its shape has {facts.levels}")
    return MadeInstance(target, seed, name, instance_hash, levels, shape=facts)


def refuse_ambiguous(made: Sequence[MadeInstance]) -> None:
    """Refuse a study in which two definitions of a shape give the same instance."""
    first: dict[str, MadeInstance] = {}
    for each in made:
        if each.instance_hash is None or each.shape is None:
            continue
        other = first.setdefault(each.instance_hash, each)
        assert other.shape is not None
        if other.shape.definition != each.shape.definition:
            raise OptbenchError(
                f"{other.target} and {each.target} give the same instance of shape "
                f"{each.shape.name!r}, which each declares in files of its own; give one of the "
                "shapes another name"
            )
