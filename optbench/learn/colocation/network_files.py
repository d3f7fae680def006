"""Checkpoints of trained networks in safetensors: tensors by name, and a JSON text in the header.

A checkpoint belongs to public facts, by their hash: its low-rank bases and the columns of its
networks are those of their known types. Nothing but tensors and that text is read from a file.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import save_file

from optbench.compiling.compile_meter import announce
from optbench.errors import FileFormatError
from optbench.files import replacing
from optbench.learn.colocation.code_network import CodeNetwork
from optbench.learn.colocation.estimator_settings import KINDS, EstimatorSettings, Kind
from optbench.learn.colocation.first_sight import FirstSight, new_network
from optbench.learn.colocation.low_rank import LowRank
from optbench.learn.colocation.network_rows import NetworkRows, check_enough, train
from optbench.learn.colocation.refinement import Refinement, new_refinement_network
from optbench.learn.colocation.residuals import Calibration
from optbench.learn.colocation.row_parts import RowPart, alone_part, ratio_part
from optbench.learn.colocation.row_tables import KnownRows
from optbench.learn.tensor_file import read_tensor_file
from optbench.shapes.colocation.colocation_process import PublicFacts

FORMAT = "optbench-colocation-networks-1"
PARTS = ("alone", "ratio")


def facts_hash(facts: PublicFacts) -> str:
    """The hash of what networks are trained on: types and public throughputs."""
    digest = hashlib.sha256()
    types = [(t.name, t.family, t.batch_size, t.gpus) for t in facts.job_types]
    digest.update(json.dumps([[g.name for g in facts.gpu_types], types]).encode())
    for table in (facts.alone_per_s, facts.beside_per_s):
        there = ~np.isnan(table)
        digest.update(np.packbits(there).tobytes())
        digest.update(np.where(there, table, 0.0).astype("<f8").tobytes())
    return digest.hexdigest()


def save_networks(
    path: Path, model: NetworkRows, facts: PublicFacts, provenance: Mapping[str, Any]
) -> None:
    """Write the file atomically; ``provenance`` is for information."""
    arrays: dict[str, Any] = {}
    about: dict[str, Any] = {
        "format": FORMAT,
        "facts": facts_hash(facts),
        "provenance": dict(provenance),
    }
    for name in PARTS:
        part = _part(model, name)
        first = part.first
        for k, network in enumerate((*first.networks, *part.networks)):
            for key, value in network.state_dict().items():
                arrays[f"{name}.network{k}.{key}"] = value.numpy()
        for k, basis in enumerate((*first.bases, *part.residuals)):
            for key in ("mean", "loadings", "variance"):
                arrays[f"{name}.basis{k}.{key}"] = np.ascontiguousarray(getattr(basis, key))
        about[name] = {
            "kinds": [first.kind, part.kind],
            "folds": len(first.networks),
            "context": part.context,
            "most_tokens": part.most_tokens,
            "first": asdict(first.calibration),
            "second": asdict(part.calibration),
        }
    with replacing(path) as fresh:
        save_file(arrays, str(fresh), metadata={"optbench": json.dumps(about)})


def load_networks(path: Path, facts: PublicFacts) -> NetworkRows:
    """Read a file that was written for these public facts; an error names what is wrong with it."""
    about, arrays = read_tensor_file(
        path, FORMAT, "optbench train gogh", "of networks for co-location"
    )
    found, wanted = about.get("facts"), facts_hash(facts)
    if found != wanted:
        raise FileFormatError(
            f"{path}: its networks were trained on other public facts (hash {str(found)[:12]}); "
            f"this instance has {wanted[:12]}. Its seed counts, too: `optbench train gogh --on "
            "PROBLEM --seed N`; or leave out the checkpoint"
        )
    rows = KnownRows.of(facts)
    reader = _Reader(path, arrays, about)
    return NetworkRows(
        rows,
        reader.part("alone", alone_part(rows)),
        reader.part("ratio", ratio_part(rows)),
    )


@dataclass(frozen=True)
class HashedFacts:
    """Public facts as the key of a cache: equal where networks trained on them are."""

    facts: PublicFacts = field(compare=False)
    hash: str

    @classmethod
    def of(cls, facts: PublicFacts) -> HashedFacts:
        return cls(facts, facts_hash(facts))


@dataclass(frozen=True)
class TrainedNetworks:
    """Which networks: all that they depend on, the training's code aside."""

    known: HashedFacts
    kinds: tuple[Kind, Kind]
    settings: EstimatorSettings
    seed: int

    @property
    def file_name(self) -> str:
        """The name of their file: a hash of all that they depend on, the training's code too."""
        parts = [FORMAT, self.known.hash, self.kinds, asdict(self.settings), self.seed]
        parts_text = json.dumps([*parts, code_hash()])
        return f"{hashlib.sha256(parts_text.encode()).hexdigest()[:32]}.safetensors"


@lru_cache(maxsize=1)
def code_hash() -> str:
    """The hash of the code that trains: of all modules of this package."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def trained_or_kept(folders: Sequence[Path], wanted: TrainedNetworks) -> NetworkRows:
    """Load networks that were trained before from one of some folders; else train them, with an
    announcement, and keep them in the last folder if it can be written.

    Files appear whole or not at all, so that processes need not wait for each other: two that train
    the same networks write the same file. One that cannot be read is replaced."""
    facts = wanted.known.facts
    for path in (folder / wanted.file_name for folder in folders):
        with suppress(FileFormatError):
            return load_networks(path, facts)
    check_enough(KnownRows.of(facts))
    announce("training the networks of gogh on what is public of the instance, about ten seconds")
    began = time.perf_counter()
    model = train(facts, wanted.kinds, wanted.settings, wanted.seed)
    spent = f"trained in {time.perf_counter() - began:.1f} s"
    provenance = {"settings": asdict(wanted.settings), "seed": wanted.seed}
    try:
        folders[-1].mkdir(parents=True, exist_ok=True)
        save_networks(folders[-1] / wanted.file_name, model, facts, provenance)
    except (OSError, SafetensorError):
        announce(f"{spent}; {folders[-1]} cannot be written, so the next process trains again")
    else:
        announce(f"{spent}, and kept in {folders[-1]} for the next run on the same facts")
    return model


def _part(model: NetworkRows, name: str) -> Refinement:
    return model.alone_part if name == "alone" else model.ratio_part


class _Reader:
    """Makes the parts of a model from the tensors of a file."""

    def __init__(self, path: Path, arrays: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        self._path, self._arrays, self._about = path, arrays, about

    def part(self, name: str, rows: RowPart) -> Refinement:
        about = self._about.get(name)
        try:
            kinds = [kind for kind in about["kinds"] if kind in KINDS]  # type: ignore[index]
            folds, context = int(about["folds"]), int(about["context"])  # type: ignore[index]
            most = int(about["most_tokens"])  # type: ignore[index]
            both = [_calibration(about[key]) for key in ("first", "second")]  # type: ignore[index]
        except (KeyError, TypeError, ValueError) as error:
            raise self._wrong(f"its header does not describe the part {name!r} ({error})") from None
        if len(kinds) != 2 or folds < 1:
            raise self._wrong(f"part {name!r} names the kinds {kinds} and {folds} folds")
        bases = [self._basis(f"{name}.basis{k}", rows) for k in range(folds + 2)]
        first, second = [], []
        for k in range(folds):
            first.append(self._filled(f"{name}.network{k}", new_network(rows, bases[k], kinds[0])))
            blank = new_refinement_network(rows, bases[k], kinds[1], context)
            second.append(self._filled(f"{name}.network{folds + k}", blank))
        sight = FirstSight(rows, kinds[0], tuple(first), tuple(bases[:folds]), both[0])
        residuals = (bases[folds], bases[folds + 1])
        return Refinement(sight, kinds[1], tuple(second), residuals, both[1], most, context)

    def _basis(self, name: str, rows: RowPart) -> LowRank:
        mean, loadings, variance = (
            self._array(f"{name}.{key}") for key in ("mean", "loadings", "variance")
        )
        j = rows.num_columns
        if mean.shape != (j,) or loadings.shape[:1] != (j,) or variance.shape != (j,):
            raise self._wrong(f"{name!r} has {mean.shape} columns; the public facts have {j}")
        return LowRank(mean, loadings, variance)

    def _filled(self, name: str, network: CodeNetwork) -> CodeNetwork:
        state = {}
        for key, weight in network.state_dict().items():
            found = self._array(f"{name}.{key}")
            if found.shape != tuple(weight.shape):
                raise self._wrong(
                    f"layer {name}.{key} has the shape {found.shape}; it must be "
                    f"{tuple(weight.shape)}"
                )
            state[key] = torch.tensor(found)
        network.load_state_dict(state)
        return network

    def _array(self, name: str) -> Any:
        found = self._arrays.get(name)
        if found is None:
            raise self._wrong(f"tensor {name!r} is missing")
        if not np.isfinite(found).all():
            raise self._wrong(f"tensor {name!r} holds a number that is not finite")
        return found

    def _wrong(self, words: str) -> FileFormatError:
        return FileFormatError(f"{self._path}: {words}")


def _calibration(about: Mapping[str, Any]) -> Calibration:
    pairs = {}
    for name in ("share", "factor", "error_before", "error_after"):
        one, other = about[name]
        pairs[name] = (float(one), float(other))
    return Calibration(**pairs)
