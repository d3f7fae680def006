"""A bank of bounds: what was once proved of an instance is not proved again.

A SQLite file with the best bound per (physics hash, objective hash, kind of proof) and the best verified schedule. The
instance is always the very one that was bounded: of a later level of an objective in order, the one that carries the levels
before it as limits, which are part of its physics hash. Of an instance with several levels the first is meant.

A combinatorial bound is proved again by computing it again, a fluid programme's from its rational duals where they were
banked and by solving it again where not, a schedule by the verifier; a solver's word (proof "solver") cannot be. Values only
improve. A bound above a verified objective raises ContradictionError, whichever of the two comes second.

Every operation is one immediate transaction, so that many processes may share the file. Nothing in optbench opens a bank
unless told to: results that are to be compared start from nothing.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from optbench.bounds.auto import makespan_of
from optbench.bounds.combinatorial import combinatorial_bounds
from optbench.bounds.exact_check import Certificate
from optbench.bounds.fluid_bound import FluidProof, fluid_bound, recheck_fluid
from optbench.errors import FileFormatError, ParameterError
from optbench.model.files.schedule_json import schedule_from_dict, schedule_to_dict
from optbench.model.files.strict_json import parse_json, render
from optbench.model.instance import Instance
from optbench.model.measures import check_bound
from optbench.model.result import Bound, Proof
from optbench.model.schedule import Schedule
from optbench.model.timegrid import RELATIVE_TOLERANCE
from optbench.model.verify import verify

VERSION = 2
SCHEMA = """
create table if not exists bounds (physics text, objective text, proof text, value real, source text, certificate text,
    primary key (physics, objective, proof));
create table if not exists incumbents (physics text, objective text, value real, schedule text,
    primary key (physics, objective));
"""
WAIT_S = 30.0
# Destructive bounds and fluid programmes without banked duals are searched for again for this long.
RECHECK_S = 60.0
_WHERE = "physics = ? and objective = ?"


@dataclass(frozen=True)
class Recheck:
    """A banked value and what could be proved of it now: ``proven`` is None for a solver's word, and where nothing was."""

    value: float
    source: str
    proof: Proof | Literal["schedule"]
    proven: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the proof was repeated in full; None where there is nothing to repeat."""
        if self.proof == "solver":
            return None
        slack = RELATIVE_TOLERANCE * abs(self.value)
        if self.proven is None:
            return False
        return self.proven <= self.value + slack if self.proof == "schedule" else self.proven >= self.value - slack


class BoundBank:
    """Best bounds and verified schedules by instance: ``with BoundBank(path) as bank: ...``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)
        try:
            with self._transaction() as db:
                self._prepare(db)
        except sqlite3.DatabaseError as error:
            self.close()
            raise FileFormatError(f"{self.path} is no bank of bounds ({error}); name another file") from error
        except FileFormatError:
            self.close()
            raise

    def __enter__(self) -> BoundBank:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def record(self, instance: Instance, bounds: Iterable[Bound | FluidProof]) -> int:
        """Bank bounds on an instance; how many were better than what was there. All or, in a contradiction, none."""
        key, better = _key(instance), 0
        with self._transaction() as db:
            best = db.execute(f"select value from incumbents where {_WHERE}", key).fetchone()
            for item in bounds:
                bound, certificate = (item.bound, _certificate(item)) if isinstance(item, FluidProof) else (item, None)
                if not math.isfinite(bound.value):
                    raise ParameterError(f"bound {bound.value!r} from {bound.source} on {instance.name!r} must be finite")
                if best is not None:
                    check_bound(best[0], bound.value, bound.source, instance.name)
                better += db.execute(
                    "insert into bounds values (?, ?, ?, ?, ?, ?) on conflict do update set value = excluded.value, "
                    "source = excluded.source, certificate = excluded.certificate where excluded.value > bounds.value",
                    (*key, bound.proof, bound.value, bound.source, certificate),
                ).rowcount
        return better

    def improve(self, instance: Instance, time_limit_s: float = 10.0) -> list[Bound]:
        """Compute bounds, bank them with their proofs, and return the best of now and before."""
        began = time.perf_counter()
        fluid = fluid_bound(instance, time_limit_s)
        self.record(instance, [fluid] if fluid is not None else [])
        certified = [bound for bound in self.bounds(instance) if bound.proof != "solver"]
        known = max((makespan_of(instance, bound.value) for bound in certified), default=0.0)
        self.record(instance, combinatorial_bounds(instance, time_limit_s - (time.perf_counter() - began), known))
        return self.bounds(instance)

    def observe(self, instance: Instance, schedule: Schedule) -> bool:
        """Verify and bank a schedule; False when one at least as good is there already."""
        verdict = verify(instance, schedule)
        if not verdict.feasible:
            broken = "; ".join(map(str, verdict.violations))
            raise ParameterError(f"{instance.name}: only feasible schedules are banked; {broken}")
        key, objective = _key(instance), verdict.objectives[0]
        with self._transaction() as db:
            for value, source in db.execute(f"select value, source from bounds where {_WHERE}", key):
                check_bound(objective, value, source, instance.name)
            changed = db.execute(
                "insert into incumbents values (?, ?, ?, ?) on conflict do update set value = excluded.value, "
                "schedule = excluded.schedule where excluded.value < incumbents.value",
                (*key, objective, render(schedule_to_dict(schedule, instance))),
            )
            return changed.rowcount > 0

    def bounds(self, instance: Instance) -> list[Bound]:
        """What is banked of an instance, best first: the best per kind of proof, a solver's word with proof "solver"."""
        with self._transaction() as db:
            rows = db.execute(f"select value, source, proof from bounds where {_WHERE}", _key(instance))
            found = [Bound(value, source, proof) for value, source, proof in rows]
        return sorted(found, key=lambda bound: -bound.value)

    def incumbent(self, instance: Instance) -> tuple[float, Schedule] | None:
        """The best banked objective and its schedule, as they were banked."""
        with self._transaction() as db:
            row = db.execute(f"select value, schedule from incumbents where {_WHERE}", _key(instance)).fetchone()
        return None if row is None else (row[0], schedule_from_dict(parse_json(row[1]), instance))

    def recheck(self, instance: Instance) -> list[Recheck]:
        """Repeat the proof of every banked bound of an instance, and verify its banked schedule."""
        with self._transaction() as db:
            rows = db.execute(f"select value, source, proof, certificate from bounds where {_WHERE}", _key(instance)).fetchall()
        found = [Recheck(value, source, proof, _proven(instance, value, proof, data)) for value, source, proof, data in rows]
        best = self.incumbent(instance)
        if best is not None:
            verdict = verify(instance, best[1])
            found.append(Recheck(best[0], "schedule", "schedule", verdict.objectives[0] if verdict.feasible else None))
        return found

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Create the tables in a new file; refuse one of another version."""
        version = int(db.execute("pragma user_version").fetchone()[0])
        if version != VERSION and db.execute("select count(*) from sqlite_master").fetchone()[0]:
            raise FileFormatError(f"{self.path} is a bank of version {version}; this optbench reads {VERSION}, name another file")
        for statement in SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"pragma user_version = {VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("begin immediate")
        with self._db:  # commits, or rolls back on an exception
            yield self._db


def _key(instance: Instance) -> tuple[str, str]:
    return instance.physics_hash, instance.objective.level(0).hash


def _certificate(proof: FluidProof) -> str:
    return json.dumps({
        "shift": proof.certificate.shift,
        "keep_edges": proof.keep_edges,
        "numerator": [str(number) for number in proof.certificate.numerator],
    })


def _proven(instance: Instance, value: float, proof: str, certificate: str | None) -> float | None:
    """The bound that can be proved now."""
    if proof == "exact-lp" and certificate is None:
        fluid = fluid_bound(instance, RECHECK_S)
        return None if fluid is None else fluid.bound.value
    if proof == "exact-lp" and certificate is not None:
        stored = json.loads(certificate)
        duals = Certificate(tuple(int(number) for number in stored["numerator"]), int(stored["shift"]))
        return recheck_fluid(instance, duals, bool(stored["keep_edges"]))
    if proof != "combinatorial":
        return None
    cheap = max((bound.value for bound in combinatorial_bounds(instance)), default=None)
    makespan = makespan_of(instance, value)
    if makespan <= 0 or (cheap is not None and cheap >= value):
        return cheap
    # One step below the claim is the only trial makespan that has to be refuted.
    again = [b.value for b in combinatorial_bounds(instance, RECHECK_S, makespan - 1) if b.source == "destructive"]
    return max(again, default=cheap)
