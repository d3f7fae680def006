"""An instance of any shape but the schedules': data of the shape's own, with a name and a hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from optbench.rendering import RenderedInstance
from optbench.shapes.protocol.shape import Shape


def document_hash(document: Mapping[str, Any]) -> str:
    """Return the hash of a canonical form, whatever the instance is called."""
    nameless = {**document, "name": ""}
    text = json.dumps(nameless, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class ShapedInstance(RenderedInstance, kind="shaped_instance"):
    """``data`` belongs to the shape and is not changed; ``problem`` is the spec that made it, and
    ``origin`` what the problem has beside the data, such as names: no part of hash and files.

    ``level`` is None for the whole objective; for one level of it, ``held`` has the values that the
    levels before it may not exceed, or none where they are free."""

    shape: Shape
    name: str
    data: Any
    problem: str | None = field(default=None)
    level: int | None = field(default=None)
    held: tuple[float, ...] = field(default=())
    origin: Any = field(default=None)

    @cached_property
    def hash(self) -> str:
        """The hash of the canonical form without the name, and of the level."""
        document = self.shape.write(self)
        if self.level is not None:
            document = {**document, "level": self.level, "held": list(self.held)}
        return document_hash(document)

    @property
    def formulation(self) -> Any:
        """The formulation, made once.

        Until Python 3.12 ``cached_property`` holds one lock for all instances: a ``model`` that
        never returns would keep every other one waiting."""
        if "formulation" not in self.__dict__:
            self.__dict__["formulation"] = self.shape.formulate(self)
        return self.__dict__["formulation"]

    @property
    def has_formulation(self) -> bool:
        """Whether the formulation has been made."""
        return "formulation" in self.__dict__

    @property
    def features(self) -> frozenset[str]:
        return self.shape.features(self)
