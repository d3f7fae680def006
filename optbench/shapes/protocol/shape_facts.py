"""What a study knows of an instance whose shape it does not import: plain data.

A user's shape is a user's code, which the runner of a study never loads. Its name, sense, metrics
and words are read in a process of its own and kept as data; a ``DescribedShape`` has them, and
nothing that runs code of the shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, cast

from optbench.errors import FileFormatError, UnsupportedError
from optbench.model.verify import Verdict
from optbench.shapes.protocol.shape import Metric, Sense, Shape
from optbench.shapes.protocol.shaped_instance import ShapedInstance
from optbench.typed_values import is_number

# Digits of a definition's digest in the name of a stored instance.
SHOWN_DIGITS = 16
# A shape with more metrics, or with longer words, is not described but refused.
MOST_METRICS, LONGEST = 200, 2000
# So is an objective of more levels.
MOST_LEVELS = 20


@dataclass(frozen=True)
class CellShape:
    """The part of a shape that a cell's record needs. ``definition`` is the digest of the files
    that declare a user's shape; it is empty for a shape of optbench, which counts by its version.
    """

    name: str
    sense: Sense = "min"
    definition: str = ""
    levels: int = 1

    def file_name(self, instance_hash: str) -> str:
        """Return the name under which the store keeps an instance: one per definition."""
        mark = f"-{self.definition[:SHOWN_DIGITS]}" if self.definition else ""
        return f"{instance_hash}{mark}.json"


@dataclass(frozen=True)
class ShapeFacts:
    """``home`` is the class, as ``module:Class``; ``files`` are those that declare it; ``size`` and
    ``objective`` are words of one instance; ``answers_to`` holds the shape's name and capabilities.
    """

    name: str
    sense: Sense
    decision: str
    objective: str
    size: str
    home: str
    answers_to: tuple[str, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    definition: str = ""
    levels: int = 1
    # Numbers that describe the instance, and what they are.
    facts: Mapping[str, float] = field(default_factory=dict)
    fact_words: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_cell(self) -> CellShape:
        return CellShape(self.name, self.sense, self.definition, self.levels)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, instance: ShapedInstance, files: tuple[str, ...]) -> ShapeFacts:
        """Describe the shape of an instance, in a process that may run its code."""
        shape = instance.shape
        home = f"{type(shape).__module__}:{type(shape).__qualname__}"
        return cls(
            shape.name,
            shape.sense(instance),
            shape.decision,
            shape.objective_label(instance),
            shape.describe(instance),
            home,
            (shape.name, *sorted(shape.capabilities)),
            {name: metric for name, metric in shape.metrics.items() if not metric.measured},
            files,
            levels=shape.num_levels(instance),
            facts=shape.facts_of(instance),
            fact_words=shape.fact_words,
        )

    @classmethod
    def from_dict(cls, data: Any) -> ShapeFacts:
        """Read facts that another process wrote."""
        if not isinstance(data, Mapping):
            raise FileFormatError(f"the shape is a {type(data).__name__}, not an object")
        metrics = data.get("metrics", {})
        if not isinstance(metrics, Mapping) or len(metrics) > MOST_METRICS:
            raise FileFormatError(f"the shape's metrics are no object of at most {MOST_METRICS}")
        if data.get("sense") not in ("min", "max"):
            raise FileFormatError(f"the shape's sense is {data.get('sense')!r:.40}, not min or max")
        levels = data.get("levels", 1)
        if type(levels) is not int or not 1 <= levels <= MOST_LEVELS:
            raise FileFormatError(f"the shape has {levels!r:.40} levels, not 1 to {MOST_LEVELS}")
        words = ("name", "decision", "objective", "size", "home", "definition")
        words_of = _object(data, "fact_words")
        return cls(
            **{key: _text(data, key) for key in words},
            sense=cast(Sense, data["sense"]),
            levels=levels,
            answers_to=_texts(data, "answers_to"),
            files=_texts(data, "files"),
            metrics={
                str(name): Metric(_text(row, "unit"), _text(row, "words"))
                for name, row in metrics.items()
            },
            facts=_numbers(data, "facts"),
            fact_words={name: _text(words_of, name) for name in words_of},
        )


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise FileFormatError(f"{key} of the shape is no text of at most {LONGEST} characters")
    return value


def _object(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key, {})
    if not isinstance(found, Mapping) or len(found) > MOST_METRICS:
        raise FileFormatError(f"{key} of the shape is no object of at most {MOST_METRICS}")
    return found


def _numbers(data: Mapping[str, Any], key: str) -> dict[str, float]:
    found = _object(data, key)
    for name, value in found.items():
        if not is_number(value) or not math.isfinite(value):
            raise FileFormatError(f"{key} of the shape: {name!r:.40} is no finite number")
    return {str(name): float(value) for name, value in found.items()}


def _texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = data.get(key, ())
    if not isinstance(values, (list, tuple)) or len(values) > MOST_METRICS:
        raise FileFormatError(f"{key} of the shape is no list of at most {MOST_METRICS} texts")
    return tuple(_text({key: value}, key) for value in values)


def cell_shape(data: Any) -> CellShape | None:
    """Read the shape of a stored cell; None for a schedule."""
    if data is None or isinstance(data, CellShape):
        return data
    known = {entry.name for entry in fields(CellShape)}
    return CellShape(**{key: value for key, value in data.items() if key in known})


class DescribedShape(Shape):
    """A shape of which only the facts are known; its decisions are verified elsewhere."""

    def __init__(self, facts: CellShape) -> None:
        self.facts = facts
        self.name = facts.name  # type: ignore[misc]

    def sense(self, instance: Any) -> Sense:
        return self.facts.sense

    def num_levels(self, instance: Any) -> int:
        return self.facts.levels

    def _elsewhere(self) -> UnsupportedError:
        return UnsupportedError(f"code of shape {self.name!r} runs in a process of its own only")

    def verdict_of(self, instance: Any, decision: Any) -> Verdict:
        raise self._elsewhere()

    def write(self, instance: Any) -> dict[str, Any]:
        raise self._elsewhere()

    def read(self, data: Mapping[str, Any]) -> Any:
        raise self._elsewhere()

    def write_decision(self, instance: Any, decision: Any) -> dict[str, Any]:
        raise self._elsewhere()

    def read_decision(self, instance: Any, data: Mapping[str, Any]) -> Any:
        raise self._elsewhere()


def stand_in(name: str, facts: CellShape) -> ShapedInstance:
    """Return an instance with the sense of its shape and without data."""
    return ShapedInstance(DescribedShape(facts), name, None)
