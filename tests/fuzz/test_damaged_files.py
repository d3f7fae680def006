"""Damaged files of every format: read as valid instances, or refused with one message that names
the file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.formats.format_registry import FORMATS, load_import
from optbench.model.files.instance_json import instance_to_json
from tests.fuzz.damage import damaged
from tests.fuzz.survival import attempt
from tests.sample_files.inputs import arrivals, originals, shop

ORIGINALS = originals() | {"arrivals": instance_to_json(arrivals())}
FILES_PER_FORMAT = 150


@pytest.mark.parametrize("name", ORIGINALS)
@pytest.mark.filterwarnings("error")
def test_damage_is_survived(name: str, tmp_path: Path) -> None:
    owner = shop(flexible=False) if name == "schedule" else None
    path = tmp_path / "file"
    data = ORIGINALS[name].encode()
    path.write_bytes(data)
    assert attempt(path, owner).message is None, "the undamaged file must be read"
    entry = FORMATS.get(name)
    whole = load_import(path) if entry is not None and entry.importer is not None else None
    shows = 0
    for seed in range(FILES_PER_FORMAT):
        done, changed = damaged(data, seed)
        path.write_bytes(changed)
        print(
            f"{name}, seed {seed}: {done}"
        )  # pytest shows the last of these when a file is not survived
        refused = attempt(path, owner).message is not None
        if whole is None or refused:
            shows += refused
        else:  # a record leaves out what it cannot read, and says so
            again = load_import(path)
            shows += (again.report, again.instance.hash) != (whole.report, whole.instance.hash)
    assert shows > FILES_PER_FORMAT // 3, "damage that hardly ever shows tests nothing"


def test_same_seed_same_damage() -> None:
    data = ORIGINALS["psplib"].encode()
    assert damaged(data, 5) == damaged(data, 5)
    assert len({damaged(data, seed) for seed in range(50)}) > 40
