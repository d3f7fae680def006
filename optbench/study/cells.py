"""A cell: one solver configuration on one instance with one seed, and the key of its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from optbench import __version__
from optbench.shapes.protocol.shape import Sense
from optbench.shapes.protocol.shape_facts import CellShape, cell_shape
from optbench.study.canonical import digest
from optbench.study.declared import CellBudget, known_fields, without_readings

# The label of the cell that bounds an instance once, for all solvers.
BOUNDS = "bounds"
KEY_DIGITS = 32


@dataclass(frozen=True)
class Cell:
    """``kind`` "bound" has no solver: its record holds the certified bounds of the instance.

    ``label`` and ``target`` are the study's names and not part of the key; ``code`` is the hash of
    the solver's files, and of files that its parameters name: of a path in ``params`` only the file
    name counts. ``shape`` is None for a schedule; the files that declare a user's shape are part of
    the key, so that its cells run anew when its ``verify`` changes.
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
    shape: CellShape | None = None
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self._key())

    def _key(self) -> str:
        content = {
            "version": __version__,
            "kind": self.kind,
            "instance": self.instance_hash,
            "solver": self.solver,
            "params": {
                name: value.name if isinstance(value, PurePath) else value
                for name, value in self.params.items()
            },
            "code": self.code,
            "seed": self.seed,
            "budget": self.budget.content,
        }
        if self.shape is not None and self.shape.definition:
            content["definition"] = self.shape.definition
        return digest(content)[:KEY_DIGITS]

    @property
    def sense(self) -> Sense:
        """Whether the objective is minimised or maximised."""
        return "min" if self.shape is None else self.shape.sense

    @property
    def title(self) -> str:
        """``solver | instance | seed``."""
        return f"{self.label} | {self.instance} | {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; schedules, the first shape, are not named."""
        out = asdict(self)
        shape, out["budget"] = out.pop("shape"), without_readings(out["budget"])
        return out if shape is None else {**out, "shape": shape}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cell:
        """Read a cell from a record, with its stored key: the version may have changed since."""
        known = {"budget": CellBudget.from_dict(data["budget"])}
        cell = known_fields(cls, {**data, **known, "shape": cell_shape(data.get("shape"))})
        if data.get("key"):
            object.__setattr__(cell, "key", data["key"])
        return cell


def derived_seed(seed: int, repetition: int) -> int:
    """Return the solver's seed: the instance's for the first repetition, else drawn from both."""
    return (
        seed
        if repetition == 0
        else int(np.random.SeedSequence((seed, repetition)).generate_state(1)[0])
    )
