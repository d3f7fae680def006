"""What the processes of a training need of a user's module: ``own_model.json`` beside the job."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from optbench.errors import FileFormatError
from optbench.files import write_whole
from optbench.gnn.runtime.training_job import ARRAYS, SETTINGS
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
    """The hash of settings, code and arrays, by which a checkpoint knows its job."""
    settings = read_own_model(folder)
    if not settings.file.is_file():
        raise FileFormatError(f"model {settings.file}: no such file")
    made = hashlib.sha256()
    arrays = [folder / f"{name}.npy" for name in ARRAYS]
    # Machines may keep the same file in different places.
    words = {**asdict(settings), "model": settings.model.rpartition(":")[2]}
    made.update(json.dumps(words).encode())
    for path in (folder / SETTINGS, settings.file, *arrays):
        with path.open("rb") as file:
            made.update(hashlib.file_digest(file, "sha256").digest())
    return made.hexdigest()
