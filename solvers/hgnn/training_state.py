"""Files with the state of an interrupted training: tensors in groups and a JSON text, nothing else.

A tensor is named ``group.row.name``, where rows are those of the optimiser, of targets or of
instances; ``group.name`` where there is one row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from optbench.errors import FileFormatError
from optbench.files import replacing

Rows = dict[int, dict[str, Tensor]]


def named(group: str, rows: Mapping[int, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors of rows under the names of the file."""
    return {f"{group}.{k}.{name}": t for k, row in rows.items() for name, t in row.items()}


def rows_of(group: str, tensors: Mapping[str, Tensor]) -> Rows:
    """Return the rows of a group; the inverse of ``named``."""
    out: Rows = {}
    for name, value in part_of(group, tensors).items():
        row, _, entry = name.partition(".")
        out.setdefault(int(row), {})[entry] = value
    return out


def part_of(group: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a group by their names in it."""
    begin = f"{group}."
    return {name[len(begin) :]: t for name, t in tensors.items() if name.startswith(begin)}


def write_state(path: Path, tensors: Mapping[str, Tensor], text: dict[str, Any]) -> None:
    """Write the file atomically."""
    from safetensors.torch import save_file

    copies = {name: value.detach().clone().contiguous() for name, value in tensors.items()}
    with replacing(path) as fresh:
        save_file(copies, str(fresh), metadata={"state": json.dumps(text)})


def read_state(path: Path, keys: Iterable[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the text, which has to have these keys."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            text = json.loads((file.metadata() or {})["state"])
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
        missing = sorted(set(keys) - text.keys())
    except (OSError, SafetensorError, KeyError, ValueError, AttributeError) as error:
        raise FileFormatError(
            f"{path}: not the state of a training ({error}); --fresh begins anew"
        ) from None
    if missing:
        raise FileFormatError(
            f"{path}: the state of a training of another version, without {', '.join(missing)}; "
            "--fresh begins anew"
        )
    return tensors, text
