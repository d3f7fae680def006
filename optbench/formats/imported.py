"""The result of importing recorded runs: an instance, the recorded schedule, and a report."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from optbench.errors import ParameterError
from optbench.formats.node_map import NodeMap
from optbench.model.instance import Floats, Instance, Ints
from optbench.model.schedule import Schedule
from optbench.model.verify import verify
from optbench.power.profiles import BoardPowerWarning, Profile, profile

Section = Literal["dropped", "assumed", "warnings"]
SECTIONS: tuple[Section, ...] = ("dropped", "assumed", "warnings")
# The number of examples of each finding, and their length.
MAX_EXAMPLES, MAX_EXAMPLE_CHARS = 3, 120


@dataclass(frozen=True)
class ImportOptions:
    """Information that a log does not contain; the defaults work for every file.

    ``profiles`` gives a device profile (a shipped name, or a file) by the log's name of a device
    type; types without one have their recorded times and no power. ``work`` is the kind of work
    whose law of clocks holds. ``devices_per_node`` and ``counts`` (in the whole cluster) are
    devices by type; what is not given is inferred. A log's pools are one per type, or one per node
    ``by_node``. ``node_map`` says which GPUs the nodes have.
    """

    profiles: Mapping[str, str] = field(default_factory=dict)
    work: str = "training"
    devices_per_node: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    by_node: bool = False
    node_map: NodeMap = field(default_factory=NodeMap)

    def __post_init__(self) -> None:
        for name in ("devices_per_node", "counts"):
            for kind, count in getattr(self, name).items():
                if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                    raise ParameterError(
                        f"{name} of {kind!r} is {count!r}; it must be a positive whole number"
                    )

    def loaded(self, findings: ImportFindings) -> dict[str, Profile]:
        """The profiles by lower-case type; findings report those that exceed their board power."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoardPowerWarning)  # The report states this.
            out = {kind.lower(): profile(name) for kind, name in self.profiles.items()}
        for shape in out.values():
            shape.law(self.work)
            for flag in shape.flags:
                findings.add("warnings", str(flag))
        return out


@dataclass(frozen=True)
class Finding:
    """Something dropped, assumed or unusual: its number and the first places."""

    what: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = (
            f" ({', '.join(self.examples)}{', ...' if self.count > len(self.examples) else ''})"
            if self.examples
            else ""
        )
        return (
            f"{self.count:,} x {self.what}{where}"
            if self.count > 1 or self.examples
            else f"{self.what}"
        )


@dataclass(frozen=True)
class ImportReport:
    """The figures of what was ``read``, and the findings about the rest."""

    format: str
    read: Mapping[str, int | float | str]
    dropped: tuple[Finding, ...] = ()
    assumed: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"read ({self.format}):"
        for name, value in self.read.items():
            yield f"  {name}: {value if isinstance(value, str) else f'{value:,.10g}'}"
        for section in SECTIONS:
            for finding in getattr(self, section):
                yield f"{section.removesuffix('s')}: {finding}"

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        out: dict[str, Any] = {"format": self.format, "read": dict(self.read)}
        for section in SECTIONS:
            out[section] = [
                {"what": f.what, "count": f.count, "examples": list(f.examples)}
                for f in getattr(self, section)
            ]
        return out


@dataclass(frozen=True)
class Import:
    """``schedule`` is None where the file does not say when and where every task ran."""

    instance: Instance
    schedule: Schedule | None
    report: ImportReport


class ImportFindings:
    """Findings by section and text, collected while reading."""

    def __init__(self) -> None:
        self._rows: dict[Section, dict[str, tuple[int, list[str]]]] = {
            section: {} for section in SECTIONS
        }

    def add(self, section: Section, what: str, example: object = None, count: int = 1) -> None:
        """Count a finding once, or ``count`` times."""
        before, examples = self._rows[section].get(what, (0, []))
        if example is not None and len(examples) < MAX_EXAMPLES:
            examples.append(printable(str(example), MAX_EXAMPLE_CHARS))
        self._rows[section][what] = (before + count, examples)

    def add_rows(
        self, section: Section, what: str, examples: Iterable[object], count: int | None = None
    ) -> None:
        """Add a finding ``count`` times (once per example if not given) unless that is 0."""
        if count is None:
            examples = list(examples)
            count = len(examples)
        if count:
            first = [
                printable(str(example), MAX_EXAMPLE_CHARS)
                for example, _ in zip(examples, range(MAX_EXAMPLES))
            ]
            before, known = self._rows[section].get(what, (0, []))
            self._rows[section][what] = (before + count, (known + first)[:MAX_EXAMPLES])

    def verified(self, instance: Instance, schedule: Schedule) -> None:
        """Add the verifier's verdict on the recorded schedule to the findings."""
        for violation in verify(instance, schedule).violations:
            text = printable(violation.message, 3 * MAX_EXAMPLE_CHARS)
            self.add(
                "warnings",
                f"the schedule on record breaks {violation.constraint}",
                text,
                violation.count,
            )

    def report(self, format: str, read: Mapping[str, int | float | str]) -> ImportReport:
        made = {
            section: tuple(
                Finding(what, count, tuple(examples)) for what, (count, examples) in rows.items()
            )
            for section, rows in self._rows.items()
        }
        return ImportReport(format, dict(read), made["dropped"], made["assumed"], made["warnings"])


def printable(text: str, most: int) -> str:
    """Text of bounded length that any terminal can show."""
    safe = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: most + 1])
    return safe if len(text) <= most else safe[: most - 3] + "..."


def busy_peaks(which: Ints, start: Floats, end: Floats, count: Ints, size: int) -> Ints:
    """The largest number of busy devices by node; ends count before starts at the same time."""
    node, t = np.concatenate((which, which)), np.concatenate((start, end))
    change = np.concatenate((count, -count))
    order = np.lexsort((change, t, node))
    level = np.cumsum(change[order])  # 0 again at the end of each node
    out = np.zeros(size, dtype=np.int64)
    np.maximum.at(out, node[order], level)
    return out
