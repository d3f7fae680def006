"""Entries of the bank: the stored data of a bound, its origin, and the result of a recheck."""

from __future__ import annotations

import sqlite3
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from optbench.errors import FileFormatError, OptbenchError
from optbench.model.files.instance_json import instance_from_dict
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.model.result import Proof

VERSION = 3
# Versions of banks without certificates, which are emptied.
UNCERTIFIED, OLD_TABLES = (1, 2), ("bounds", "incumbents")
SCHEMA = """
create table if not exists bounds (physics text, objective text, proof text, value real,
    source text, certificate text, code text, module text, settings text, seal text,
    primary key (physics, objective, proof));
create table if not exists incumbents (physics text, objective text, value real, schedule text,
    seal text, primary key (physics, objective));
create table if not exists instances (physics text, objective text, name text, content blob,
    primary key (physics, objective));
"""
Outcome = Literal["holds", "changed", "dropped"]


@dataclass(frozen=True)
class Origin:
    """The origin of a solver's bound: its module and its settings, as text."""

    module: str = ""
    settings: str = ""


# The origin of bounds that were recorded by hand.
UNKNOWN_ORIGIN = Origin()


@dataclass(frozen=True)
class Recheck:
    """An entry of the bank and what its proof now gives; ``why`` is a message."""

    instance: str
    value: float
    source: str
    proof: Proof | Literal["schedule"]
    proven: float | None
    outcome: Outcome
    why: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the proof was repeated and gave the same value; None for a solver's bound that
        was kept.
        """
        if self.proof == "solver" and self.outcome == "holds":
            return None
        return self.outcome == "holds"

    def __str__(self) -> str:
        return (
            f"{self.instance}: {self.proof} {self.value!r} from {self.source} {self.outcome}: "
            f"{self.why}"
        )


@dataclass(frozen=True)
class BankEntry:
    """A row of the table of bounds."""

    proof: str
    value: float
    source: str
    certificate: str | None
    code: str | None
    module: str | None
    settings: str | None
    seal: str | None

    @property
    def kind(self) -> Proof:
        """The kind of proof; what is none of the others counts as combinatorial."""
        if self.proof == "solver":
            return "solver"
        return "exact-lp" if self.proof == "exact-lp" else "combinatorial"


def bank_key(instance: Instance) -> tuple[str, str]:
    return instance.physics_hash, instance.objective.level(0).hash


def read_kept_instance(content: bytes, key: tuple[str, str]) -> tuple[Instance | None, str]:
    """Return a stored instance, whose hash must be its key; else the reason why it is invalid."""
    try:
        instance = instance_from_dict(parse_json(zlib.decompress(content).decode()))
    except (
        OptbenchError,
        zlib.error,
        UnicodeDecodeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        return None, f"its instance cannot be read ({error})"
    return (
        (instance, "")
        if bank_key(instance) == key
        else (None, "its instance is not the one that it was proved for")
    )


def prepare(db: sqlite3.Connection, path: Path) -> list[str]:
    """Create the tables in a new file; empty a bank without certificates and return a notice."""
    version, notices = int(db.execute("pragma user_version").fetchone()[0]), []
    tables = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
    if version in UNCERTIFIED and {"bounds", "incumbents"} <= set(tables):
        count = [db.execute(f"select count(*) from {name}").fetchone()[0] for name in OLD_TABLES]
        for name in OLD_TABLES:
            db.execute(f"drop table {name}")
        notices.append(
            f"{path} was written by an older optbench, whose bounds have no certificates: "
            f"{count[0]} "
            f"bounds and {count[1]} schedules were dropped; solving the instances finds them again"
        )
    elif version != VERSION and tables:
        what = f"{path} is a bank of version {version}; this optbench reads {VERSION}"
        raise FileFormatError(f"{what}, name another file")
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    db.execute(f"pragma user_version = {VERSION}")
    return notices
