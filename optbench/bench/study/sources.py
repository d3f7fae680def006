"""Where instances come from, and a note of what each source came to, so that nothing is made twice.

The note of a source lies in the store's folder of instances under a key of all that decides the instance: for a problem its
name, typed parameters, the hash of its code and of the files that its parameters name, and the seed; for a file its content.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from optbench import __version__
from optbench.bench.study.canonical import digest
from optbench.bench.study.code import code_hash, contents_of, file_hash
from optbench.bench.study.declared import known_fields
from optbench.data import DataFile, data_path, data_sets
from optbench.errors import OptbenchError
from optbench.plugins import specs
from optbench.plugins.discovery import load_problem, names

KEY_DIGITS = 32


@dataclass(frozen=True)
class Made:
    """An instance of a study, or why there is none."""

    target: str
    seed: int
    name: str
    instance_hash: str | None
    levels: int = 1
    error: str | None = None


def source_key(target: str, seed: int) -> str | None:
    """The same key, the same instance; None where the target is none, as making it will explain."""
    content: dict[str, Any]
    try:
        path = file_of(target)
        if path is not None:
            content = {"file": file_hash(path), "name": path.name}  # the name is part of the instance; seeds are not
        else:
            name = problem_name(target)
            problem = load_problem(target)
            params = specs.values_of(problem)
            code = [code_hash("problem", name), contents_of(params)]
            content = {"problem": name, "params": params, "code": code, "seed": seed}
        return digest({"version": __version__, "target": target, "content": content})[:KEY_DIGITS]
    except (OptbenchError, OSError, TypeError):
        return None


def file_of(target: str) -> Path | None:
    """The file behind a target: an instance file or a public instance; None for problems."""
    if is_public(target):
        return _public_path(target, os.environ.get("OPTBENCH_DATA", ""), os.environ.get("OPTBENCH_CACHE", ""))
    path = Path(target)
    return path if generator_of(target) is None and path.is_file() else None


@cache
def _public_path(target: str, *_: str) -> Path:
    """Looked up, and its checksum verified, once per place where data may lie."""
    return data_path(target)


def generator_of(target: str) -> str | None:
    """The problem that makes instances of a target; None for files and public instances."""
    name = problem_name(target)
    return name if name in names("problem") else None


def problem_name(target: str) -> str:
    """``gpu_dag`` of ``gpu_dag:tasks=20``."""
    return target.partition(":")[0].partition("[")[0].strip()


def is_public(target: str) -> bool:
    """Whether a target names a file of a public data set, such as jobshop/ft06."""
    return "/" in target and target.partition("/")[0] in data_sets() and not Path(target).is_file()


@cache
def public_files() -> Mapping[str, DataFile]:
    """Instances of public sets by their short names (``rcpsp/j30_1_1``)."""
    return {file.name: file for entry in data_sets().values() for file in entry.files}


def recall(folder: Path, key: str) -> Made | None:
    """What was noted of a source; None where nothing was, or its instance is gone."""
    try:
        made = known_fields(Made, json.loads(_note(folder, key).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return made if made.instance_hash and (folder / f"{made.instance_hash}.pickle").is_file() else None


def note_made(folder: Path, key: str, made: Made) -> None:
    """Note what a source came to, once its instance is in the folder; failures are not noted, for they may pass."""
    if made.instance_hash is None:
        return
    path = _note(folder, key)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(asdict(made)), encoding="utf-8")
    os.replace(temporary, path)


def _note(folder: Path, key: str) -> Path:
    return folder / f"source-{key}.json"
