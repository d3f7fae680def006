"""Checkpoints of the network in safetensors: weights by name, settings and provenance in the header.
Nothing else is ever read from such a file: it holds tensors and a JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import FileFormatError
from optbench.files import replacing

from .network_settings import NetworkSettings
from .seen_arrays import CLASS_COLUMNS, PAIR_COLUMNS, SET_COLUMNS, TASK_COLUMNS, WHOLE_COLUMNS
from .stream_readouts import SHAPES, StreamReadouts

FORMAT = "optbench-hgnn-1"
STREAMS = "streams."
# What the weights of the first layers belong to; a file of other columns is refused.
COLUMNS = {
    "task": TASK_COLUMNS,
    "class": CLASS_COLUMNS,
    "pair": PAIR_COLUMNS,
    "set": SET_COLUMNS,
    "whole": WHOLE_COLUMNS,
}
Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class NetworkCheckpoint:
    """Weights of a network of these settings; ``table`` holds mean answers over the training
    instances, for comparison; ``streams`` are the read-outs for arriving work.
    """

    settings: NetworkSettings
    weights: Weights
    streams: StreamReadouts | None = None
    table: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


def write_network(path: Path, checkpoint: NetworkCheckpoint) -> None:
    """Write the file atomically."""
    from safetensors.numpy import save_file

    about = {
        "format": FORMAT,
        "settings": asdict(checkpoint.settings),
        "columns": COLUMNS,
        "table": checkpoint.table,
        "provenance": checkpoint.provenance,
    }
    arrays = {name: np.ascontiguousarray(each) for name, each in checkpoint.weights.items()}
    if checkpoint.streams is not None:
        arrays |= {STREAMS + name: getattr(checkpoint.streams, name) for name in SHAPES}
    with replacing(path) as fresh:
        save_file(arrays, str(fresh), metadata={"optbench": json.dumps(about)})


def read_network(path: Path) -> NetworkCheckpoint:
    """Read a file, once for as long as it is unchanged; an error names what is wrong with it."""
    return _read(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=4)
def _read(path: Path, _modified_ns: int) -> NetworkCheckpoint:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("optbench", "null"))
            names = file.keys()
            weights = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        make = f"optbench train hgnn --on PROBLEM -o {path}"
        raise FileFormatError(f"{path}: there is no such checkpoint; `{make}` makes one") from None
    except (OSError, SafetensorError, ValueError) as error:
        raise FileFormatError(f"{path}: not a readable safetensors file ({error})") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FileFormatError(
            f"{path}: a safetensors file, but not one that `optbench train hgnn` has written "
            f"({FORMAT})"
        )
    for name, columns in COLUMNS.items():
        if tuple(about["columns"].get(name, ())) != columns:
            raise FileFormatError(
                f"{path}: its network reads other features of {name} rows than this version; "
                "train it anew"
            )
    try:
        settings = NetworkSettings(**about["settings"])
    except TypeError as error:
        raise FileFormatError(
            f"{path}: its settings are not those of a network ({error})"
        ) from None
    check_weights(path, settings, weights)
    streams = {name: weights.pop(STREAMS + name, None) for name in SHAPES}
    found = None
    if all(each is not None for each in streams.values()):
        for name, each in streams.items():
            if each.shape != SHAPES[name]:
                raise FileFormatError(
                    f"{path}: {STREAMS + name!r} is of shape {each.shape}; it must be {SHAPES[name]}"
                )
        found = StreamReadouts(**streams)
    return NetworkCheckpoint(settings, weights, found, about["table"], about["provenance"])


def check_weights(path: Path, settings: NetworkSettings, weights: Weights) -> None:
    """Refuse weights that are not finite, or whose width is not that of the settings."""
    for name, values in weights.items():
        if values.dtype != np.float32 or not np.isfinite(values).all():
            raise FileFormatError(f"{path}: layer {name!r} holds a weight that is not finite")
    first = weights.get("task_in.0.weight")
    shape = (settings.hidden, len(TASK_COLUMNS))
    if first is None or first.shape != shape:
        has = "missing" if first is None else f"of shape {first.shape}"
        raise FileFormatError(f"{path}: layer 'task_in.0.weight' is {has}; it must be {shape}")
