"""Checkpoints of a network in safetensors: weights by name, settings and provenance in the header.
Nothing else is ever read from such a file: it holds tensors and a JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optbench.errors import FileFormatError
from optbench.files import replacing
from optbench.learn.tensor_file import read_tensor_file
from optbench.model.features import FEATURES
from optbench.model.instance import Instance

from .answers import WHOLE_ANSWERS
from .hierarchical_design import HierarchicalDesign
from .network_design import NetworkDesign, Weights
from .stream_readouts import SHAPES, StreamReadouts

STREAMS = "streams."

# Features that say how work enters and what is paid for: prices for waiting that were learned
# without them say nothing where they are.
ENTRANCE = frozenset({"access", "open_end", "per_unit"})


@dataclass(frozen=True, eq=False)
class NetworkCheckpoint:
    """Weights of a network of these settings; ``table`` holds mean answers over the training
    instances, for comparison; ``streams`` are the read-outs for arriving work.
    """

    settings: Any
    weights: Weights
    streams: StreamReadouts | None = None
    table: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> frozenset[str] | None:
        """The features of the instances that it was trained on; None in a file that has none."""
        return self._stated("features")

    def streams_for(self, instance: Instance) -> StreamReadouts | None:
        """Return the read-outs for arriving work, unless it enters or is paid for in a way that
        the streams of their training did not have. A file that states none counts as trained on
        all.
        """
        stated = self._stated("stream_features")
        known = stated is None or instance.features & ENTRANCE <= stated
        return self.streams if known else None

    def _stated(self, name: str) -> frozenset[str] | None:
        stated = self.provenance.get(name)
        return None if stated is None else frozenset(stated)


def suited(checkpoints: Sequence[NetworkCheckpoint], instance: Instance) -> NetworkCheckpoint:
    """Return the checkpoint of fewest features among those trained on all features of an instance;
    where there is none, the last, the most general one. A file that states none counts as trained
    on all.
    """
    everything = frozenset(FEATURES)
    stated = [everything if each.features is None else each.features for each in checkpoints]
    able = [(len(has), k) for k, has in enumerate(stated) if instance.features <= has]
    return checkpoints[min(able)[1]] if able else checkpoints[-1]


def write_network(
    path: Path, checkpoint: NetworkCheckpoint, design: type[NetworkDesign] = HierarchicalDesign
) -> None:
    """Write the file atomically."""
    from safetensors.numpy import save_file

    about = {
        "format": design.file_format,
        "settings": asdict(checkpoint.settings),
        "columns": dict(design.columns),
        "table": checkpoint.table,
        "provenance": checkpoint.provenance,
    }
    arrays = {name: np.ascontiguousarray(each) for name, each in checkpoint.weights.items()}
    if checkpoint.streams is not None:
        arrays |= {STREAMS + name: getattr(checkpoint.streams, name) for name in SHAPES}
    with replacing(path) as fresh:
        save_file(arrays, str(fresh), metadata={"optbench": json.dumps(about)})


def read_network(path: Path, design: type[NetworkDesign] = HierarchicalDesign) -> NetworkCheckpoint:
    """Read a file, once for as long as it is unchanged; an error names what is wrong with it."""
    kind: Any = design
    return _read(path, path.stat().st_mtime_ns if path.exists() else 0, kind)


@lru_cache(maxsize=4)
def _read(path: Path, _modified_ns: int, design: Any) -> NetworkCheckpoint:
    about, weights = _parts(path, design)
    settings = _settings(path, about.get("settings"), design)
    streams = {name: weights.pop(STREAMS + name, None) for name in SHAPES}
    check_weights(path, design(settings).shapes(), weights)
    found = None
    if any(each is not None for each in streams.values()):
        given = {STREAMS + name: each for name, each in streams.items() if each is not None}
        check_weights(path, {STREAMS + name: shape for name, shape in SHAPES.items()}, given)
        found = StreamReadouts(**{name: each for name, each in streams.items() if each is not None})
    table, provenance = about.get("table", {}), about.get("provenance", {})
    if not _is_provenance(provenance) or not _is_table(table):
        raise FileFormatError(f"{path}: its table of means or its provenance is damaged")
    return NetworkCheckpoint(settings, weights, found, table, provenance)


def _parts(
    path: Path, design: type[NetworkDesign]
) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """Return header and tensors of a file of this design."""
    command = f"optbench train {design.solver}"
    make, kind = f"{command} --on PROBLEM -o {path}", f"that `{command}` has written"
    about, weights = read_tensor_file(path, design.file_format, make, kind)
    columns = about.get("columns")
    for name, expected in design.columns.items():
        if not isinstance(columns, dict) or tuple(columns.get(name, ())) != expected:
            raise FileFormatError(
                f"{path}: its network reads other features of {name} rows than this version; "
                "train it anew"
            )
    return about, weights


def _settings(path: Path, given: Any, design: type[NetworkDesign]) -> Any:
    """Return the settings, whose values are of the types of the defaults."""
    kinds = {each.name: type(each.default) for each in fields(design.settings_type)}
    fits = isinstance(given, dict) and given.keys() == kinds.keys()
    if not fits or not all(type(given[name]) in (kind, int) for name, kind in kinds.items()):
        raise FileFormatError(
            f"{path}: its settings are not those of a network of {design.solver} ({given!r})"
        )
    return design.settings_type(**given)


def _is_provenance(given: Any) -> bool:
    """Whether this is an object whose features, if it states them, are names."""
    if not isinstance(given, dict):
        return False
    stated = [given.get(name, []) for name in ("features", "stream_features")]
    return all(isinstance(names, list) for names in stated) and all(
        isinstance(name, str) for names in stated for name in names
    )


def _is_table(table: Any) -> bool:
    """Whether this is a table of means, or empty."""
    if table == {}:
        return True
    if not isinstance(table, dict) or not isinstance(table.get("device"), dict):
        return False
    whole = table.get("whole")
    values = [*whole, *table["device"].values()] if isinstance(whole, list) else [None]
    numbers = all(isinstance(each, (int, float)) and np.isfinite(each) for each in values)
    return numbers and isinstance(whole, list) and len(whole) == WHOLE_ANSWERS


def check_weights(path: Path, shapes: dict[str, tuple[int, ...]], weights: Weights) -> None:
    """Refuse weights that are missing, too many, of another shape or type, or not finite."""
    for name in sorted(shapes.keys() | weights.keys()):
        if name not in weights:
            raise FileFormatError(f"{path}: layer {name!r} is missing; train it anew")
        values = weights[name]
        if name not in shapes:
            raise FileFormatError(f"{path}: layer {name!r} does not belong to its settings")
        if values.shape != shapes[name]:
            raise FileFormatError(
                f"{path}: layer {name!r} is of shape {values.shape}; it must be {shapes[name]}"
            )
        if values.dtype != np.float32 or not np.isfinite(values).all():
            raise FileFormatError(
                f"{path}: layer {name!r} holds a weight that is not a finite float32"
            )
