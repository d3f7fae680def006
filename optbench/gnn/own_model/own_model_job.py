"""What the processes of a training need of a user's module: ``own_model.json`` beside the job."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from optbench.errors import FileFormatError
from optbench.files import write_whole
from optbench.gnn.runtime.training_job import fingerprint
from optbench.shapes.protocol.plain_data import from_plain

MODEL, COMPUTED = "own_model.json", "computed.json"


@dataclass(frozen=True)
class OwnModelSettings:
    """``model`` is FILE.py:NAME, whose file is found from the folder in which a process runs; it is
    made with these sizes. ``fusions`` are the plan's, of which those with kernels are executed.
    """

    model: str
    features: int
    hidden: int
    classes: int
    fusions: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        return Path(self.model.rpartition(":")[0])


def write_own_model(folder: Path, settings: OwnModelSettings) -> None:
    write_whole(folder / MODEL, json.dumps(asdict(settings), indent=1))


def read_own_model(folder: Path) -> OwnModelSettings:
    found: OwnModelSettings = from_plain(
        OwnModelSettings, json.loads((folder / MODEL).read_text()), MODEL
    )
    return found


def own_model_fingerprint(folder: Path) -> str:
    """The hash of settings, arrays and code, by which processes and checkpoints know their job."""
    settings = read_own_model(folder)
    if not settings.file.is_file():
        raise FileFormatError(f"model {settings.file}: no such file")
    # Machines may keep the same files in different places.
    words = {**asdict(settings), "model": settings.model.rpartition(":")[2]}
    code = [settings.file.read_bytes()]
    for path in imported_files(settings.file):
        name = path.relative_to(settings.file.resolve().parent).as_posix()
        code += [name.encode(), path.read_bytes()]
    return fingerprint(folder, json.dumps(words).encode(), *code)


def imported_files(file: Path) -> list[Path]:
    """The files below the model's folder that it imports, itself or through others; nothing runs.

    Imports by a name that the code computes are not seen.
    """
    first = file.resolve()
    found, pending = {first}, [first]
    while pending:
        path = pending.pop()
        with suppress(SyntaxError, ValueError):
            fresh = set(_imports_of(path, first.parent)) - found
            found |= fresh
            pending += fresh
    return sorted(found - {first})


def _imports_of(path: Path, folder: Path) -> Iterator[Path]:
    """Files below the folder that one file imports, with those of the packages around them."""
    package = path.relative_to(folder).parent.parts
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = list[tuple[str, ...]]()
        if isinstance(node, ast.Import):
            names = [tuple(each.name.split(".")) for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            names = [(*base, each.name) for each in node.names]
        for parts in names:
            for end in range(1, len(parts) + 1):
                place = folder.joinpath(*parts[:end])
                both = (place / "__init__.py", place.with_name(f"{place.name}.py"))
                yield from (each for each in both if each.is_file())
