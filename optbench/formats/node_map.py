"""The GPUs of a cluster's nodes, as the user gives them.

    gpu[01-24]=a100          a node list as Slurm writes it
    gpu*=a100                a pattern; it holds for nodes that no list names
    *=a100                   all others: runs without a node, and nodes of which no run
                             names a type

A file has a line per node or node list, as ``sinfo -N -h -o "%N %G"`` prints it: ``gpu01
gpu:a100:8(S:0-1)``. The second word may be a type alone. A table with the columns sn, gpu and model
(as of a trace of pods) will do too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from optbench.errors import FileFormatError, ParameterError
from optbench.formats.sacct_fields import (
    MAX_NODES,
    UNNAMED,
    gpus_of,
    is_nothing,
    nodes_of,
)
from optbench.formats.text import shorten

EVERY = "*"
SINFO = 'sinfo -N -h -o "%N %G"'
TABLE = ["sn", "gpu", "model"]


@dataclass(frozen=True)
class NodeMap:
    """``gpus`` has (type, number) by node; the number is None where only the type was given."""

    gpus: Mapping[str, tuple[tuple[str, int | None], ...]] = field(default_factory=dict)
    patterns: tuple[tuple[str, str], ...] = ()

    def types(self, node: str) -> frozenset[str]:
        """The types of a node's GPUs that were given by name or pattern."""
        if node in self.gpus:
            return frozenset(kind for kind, _ in self.gpus[node] if kind != UNNAMED)
        found = {
            kind
            for pattern, kind in self.patterns
            if pattern != EVERY and fnmatchcase(node, pattern)
        }
        return frozenset(found)

    @property
    def otherwise(self) -> frozenset[str]:
        """The type of all other nodes."""
        return frozenset(kind for pattern, kind in self.patterns if pattern == EVERY)

    def count(self, node: str, kind: str) -> int | None:
        """The given number of GPUs of a type on a node; one without a type holds for any."""
        said = self.gpus.get(node, ())
        if len(said) == 1 and said[0][0] == UNNAMED:
            return said[0][1]
        return next((count for each, count in said if each == kind), None)

    def listed(self, kind: str) -> list[str]:
        """Nodes that are named, not matched by a pattern, with GPUs of a type."""
        return [node for node, said in self.gpus.items() if any(each == kind for each, _ in said)]

    def merged(self, other: NodeMap) -> NodeMap:
        """Merge with another map, which takes precedence."""
        return NodeMap({**self.gpus, **other.gpus}, (*self.patterns, *other.patterns))


def map_of_pairs(pairs: Iterable[tuple[str, str]], flag: str = "node type") -> NodeMap:
    """Make a map from ``NODES=TYPE`` pairs; contradictions are an error."""
    gpus: dict[str, tuple[tuple[str, int | None], ...]] = {}
    patterns: dict[str, str] = {}
    for nodes, kind in ((nodes, kind.lower()) for nodes, kind in pairs):
        if not kind or any(letter in kind for letter in "=:,| "):
            raise ParameterError(
                f"{flag} {nodes}={kind}: {kind!r} is not a type of GPU; write NODES=TYPE, "
                "such as gpu[01-24]=a100"
            )
        if any(letter in nodes for letter in "*?"):
            if patterns.setdefault(nodes, kind) != kind:
                raise ParameterError(
                    f"{flag} {nodes!r} is given twice: {patterns[nodes]!r} and {kind!r}"
                )
            continue
        names = nodes_of(nodes)
        if names is None:
            raise ParameterError(
                f"{flag} {shorten(nodes)}: not a list of nodes; write it as Slurm does, "
                "gpu[01-24],dgx1, or as gpu*"
            )
        for name in names:
            if gpus.setdefault(name, ((kind, None),)) != ((kind, None),):
                raise ParameterError(
                    f"{flag}: node {name!r} is given two types: {gpus[name][0][0]!r} and {kind!r}"
                )
    return NodeMap(gpus, tuple(patterns.items()))


def map_of_text(text: str, name: str) -> NodeMap:
    """Make a map from a file of nodes."""
    gpus: dict[str, tuple[tuple[str, int | None], ...]] = {}
    table = False
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        words = split_line(line)
        if not words or line.lstrip().startswith("#"):
            continue
        if [word.lower() for word in words] == TABLE:
            table = True
            continue
        if words[0].upper() in ("NODELIST", "NODES", "NODE", "HOSTNAMES"):
            continue
        names = nodes_of(words[0])
        said = of_table(words) if table else of_words(words)
        if names is not None and len(gpus) + len(names) > 2 * MAX_NODES:
            raise FileFormatError(f"{name}: line {number}: more than {2 * MAX_NODES:,} nodes")
        if names is None or said is None:
            raise FileFormatError(
                f"{name}: line {number}: {shorten(line.strip())} is no node with its GPUs; a line "
                f"is as {SINFO} prints it: gpu01 gpu:a100:8"
            )
        for node in names:
            # Sinfo repeats a node for each of its partitions.
            if gpus.setdefault(node, said) != said:
                raise FileFormatError(
                    f"{name}: line {number}: node {node!r} stands twice, with other GPUs"
                )
    if not gpus:
        raise FileFormatError(
            f"{name}: no node in it; a line is as {SINFO} prints it: gpu01 gpu:a100:8"
        )
    return NodeMap(gpus)


def split_line(line: str) -> list[str]:
    """Split at blanks and bars or, if there are none, at commas outside of brackets."""
    words = line.replace("|", " ").replace("\t", " ").split()
    if len(words) == 1 and "[" not in line:
        words = [word.strip() for word in line.split(",")]
    return [word.strip('"') for word in words]


def of_words(words: list[str]) -> tuple[tuple[str, int | None], ...] | None:
    """``gpu:a100:8(S:0-1)``, ``a100`` or ``(null)``."""
    if len(words) != 2:
        return None
    text = words[1].lower()
    if is_nothing(text):
        return ()
    if ":" in text or "=" in text or text == UNNAMED:
        return gpus_of(text)
    return ((text, None),) if text.replace("-", "").replace("_", "").isalnum() else None


def of_table(words: list[str]) -> tuple[tuple[str, int | None], ...] | None:
    if len(words) == 3 and words[1].isdecimal() and len(words[1]) < 10:
        return ((words[2].lower(), int(words[1])),) if int(words[1]) and words[2] else ()
    return () if len(words) == 2 and words[1] == "0" else None
