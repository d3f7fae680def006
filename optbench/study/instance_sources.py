"""Sources of instances, and a stored note of the instance of each source, so that none is made
twice.

The note of a source is stored in the store's folder of instances under a key of everything that
determines the instance: for a problem its name, typed parameters, the hashes of its code and of the
files that its parameters name, and the seed; for a file its content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from optbench import __version__
from optbench.data.registry import data_path, data_sets
from optbench.errors import FileFormatError, OptbenchError
from optbench.files import write_whole
from optbench.plugins import specs
from optbench.plugins.discovery import load_problem, names, problem_named_by
from optbench.shapes.protocol.shape_facts import ShapeFacts
from optbench.study.canonical import digest
from optbench.study.code_version import code_hash, contents_of, definition_digest, file_hash
from optbench.study.declared import known_fields

KEY_DIGITS = 32


@dataclass(frozen=True)
class MadeInstance:
    """An instance of a study, or the reason why it could not be made; ``shape`` is None for a
    schedule.
    """

    target: str
    seed: int
    name: str
    instance_hash: str | None
    levels: int = 1
    error: str | None = None
    shape: ShapeFacts | None = None

    @property
    def file_name(self) -> str:
        """The name of its file in the store."""
        if self.shape is None:
            return f"{self.instance_hash}.pickle"
        return self.shape.of_cell.file_name(str(self.instance_hash))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; schedules, the first shape, are not named."""
        out = asdict(self)
        return {key: value for key, value in out.items() if key != "shape" or value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MadeInstance:
        found = data.get("shape")
        shape = None if found is None else ShapeFacts.from_dict(found)
        return known_fields(cls, {**data, "shape": shape})


def source_keys(
    targets: Iterable[str], seeds: Sequence[int], known: Mapping[str, str] | None = None
) -> dict[tuple[str, int], str]:
    """Return a key per target and seed; ``known`` are digests made by another process."""
    generated, known = set(names("problem")), known or {}
    out: dict[tuple[str, int], str] = {}
    for target in targets:
        base = known[target] if target in known else source_digest(target)
        for seed in seeds:
            # A file does not depend on the seed.
            key = digest([base, seed]) if specs.name_of(target) in generated else base
            out[target, seed] = key[:KEY_DIGITS]
    return out


def source_digest(target: str) -> str:
    """Return a digest of what determines a target's instances except the seed; it never fails."""
    name = problem_named_by(target)
    try:
        content = _of_file(target) if name is None else _of_problem(target, name)
    except (OptbenchError, OSError, TypeError) as error:
        content = {"unknown": str(error)}
    return digest({"version": __version__, "target": target, "content": content})


def _of_problem(target: str, name: str) -> dict[str, Any]:
    params = specs.values_of(load_problem(target))
    return {
        "problem": name,
        "params": params,
        "code": code_hash("problem", name),
        "files": contents_of(params),
    }


def _of_file(target: str) -> dict[str, Any]:
    path = data_path(target) if is_public(target) else Path(target)
    return {"file": file_hash(path), "name": path.name}  # the name is part of the instance


def is_public(target: str) -> bool:
    """Whether a target names a file of a public data set, such as jobshop/ft06."""
    return "/" in target and target.partition("/")[0] in data_sets() and not Path(target).is_file()


def read_note(folder: Path, key: str) -> MadeInstance | None:
    """Return the instance noted for a source; None where it is missing, empty or outdated."""
    try:
        data = json.loads(_note_file(folder, key).read_text("utf-8"))
        if data.get("shape") is not None and "facts" not in data["shape"]:
            return None
        made = MadeInstance.from_dict(data)
        if not made.instance_hash or not (folder / made.file_name).stat().st_size:
            return None
    except (OSError, ValueError, TypeError, AttributeError, FileFormatError):
        return None
    return made if _is_declared_alike(made) else None


def _is_declared_alike(made: MadeInstance) -> bool:
    """Whether the files that declare a user's shape are those of the time of the note."""
    return made.shape is None or definition_digest(made.shape.files) == made.shape.definition


def write_note(folder: Path, key: str, made: MadeInstance) -> None:
    """Note the instance of a source; failures are not noted, as they may be temporary."""
    if made.instance_hash is None:
        return
    write_whole(_note_file(folder, key), json.dumps(made.to_dict()))


def _note_file(folder: Path, key: str) -> Path:
    return folder / f"source-{key}.json"
