"""A cell: one solver configuration on one instance with one seed, and the key of its content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from optbench import __version__
from optbench.bench.study.declared import CellBudget, canonical

# What bounds an instance once, for all solvers.
BOUNDS = "bounds"
KEY_DIGITS = 32


@dataclass(frozen=True)
class Cell:
    """``kind`` "bound" has no solver: its record holds the certified bounds of the instance.

    ``label`` and ``target`` are the study's words and no part of the key; ``code`` is the hash of the solver's files.
    """

    kind: Literal["solve", "bound"]
    target: str
    instance: str
    instance_hash: str
    instance_seed: int
    label: str
    solver: str
    params: Mapping[str, Any]
    code: str
    seed: int
    budget: CellBudget
    repetition: int = 0
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self._key())

    def _key(self) -> str:
        content = {
            "version": __version__,
            "kind": self.kind,
            "instance": self.instance_hash,
            "solver": self.solver,
            "params": dict(self.params),
            "code": self.code,
            "seed": self.seed,
            "budget": asdict(self.budget),
        }
        return hashlib.sha256(canonical(content).encode()).hexdigest()[:KEY_DIGITS]

    @property
    def title(self) -> str:
        """``solver | instance | seed``."""
        return f"{self.label} | {self.instance} | {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cell:
        """A cell from a record; its key is computed anew only if it has none, for the version may be another by now."""
        values = {key: value for key, value in data.items() if key != "key"}
        cell = cls(**{**values, "budget": CellBudget(**data["budget"])})
        if data.get("key"):
            object.__setattr__(cell, "key", data["key"])
        return cell


def derived_seed(seed: int, repetition: int) -> int:
    """The seed of a solver: the instance's own first, so that one number repeats a cell; drawn from both for repetitions."""
    return seed if repetition == 0 else int(np.random.SeedSequence((seed, repetition)).generate_state(1)[0])
