"""A bank of bounds: what was once proved of an instance is not proved again.

A SQLite file with the best bound per (physics hash, objective hash, level, kind of proof), the best verified objective, and
for each bound what its proof needs: rational duals of a fluid programme, nothing for a combinatorial bound (it is computed
again), nothing for a solver's word (it cannot be checked again, and is kept apart). Values only improve. A bound above a
verified objective raises ContradictionError, whichever of the two comes second.

Every operation is one immediate transaction, so that many processes may share the file. Nothing in optbench opens a bank
unless told to: results that are to be compared start from nothing.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from optbench.bounds.auto import makespan_of
from optbench.bounds.combinatorial import combinatorial_bounds
from optbench.bounds.exact_check import Certificate
from optbench.bounds.fluid_bound import FluidProof, fluid_bound, recheck_fluid
from optbench.errors import ParameterError
from optbench.model.instance import TOLERANCE, Instance
from optbench.model.measures import check_bound
from optbench.model.result import Bound

SCHEMA = """
create table if not exists bounds (physics text, objective text, level integer, proof text, value real, source text,
    certificate text, primary key (physics, objective, level, proof));
create table if not exists incumbents (physics text, objective text, level integer, value real,
    primary key (physics, objective, level));
"""
WAIT_S = 30.0
# Destructive bounds are searched for again for this long.
RECHECK_S = 60.0


@dataclass(frozen=True)
class Recheck:
    """A banked bound and what could be proved of it now: ``proven`` is None for a solver's word."""

    bound: Bound
    proven: float | None

    @property
    def holds(self) -> bool | None:
        """Whether the proof was repeated in full; None where there is nothing to repeat."""
        if self.bound.proof == "solver":
            return None
        return self.proven is not None and self.proven >= self.bound.value - TOLERANCE * max(1.0, abs(self.bound.value))


class BoundBank:
    """Best bounds and verified objectives by instance; the instance's first level of the objective is level ``level``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            for statement in SCHEMA.split(";"):
                db.execute(statement)

    def record(self, instance: Instance, bound: Bound, proof: FluidProof | None = None) -> bool:
        """Bank a bound; False when one at least as good with the same kind of proof is there already."""
        if bound.proof == "exact-lp" and proof is None:
            raise ParameterError(f"bound {bound.value!r} from {bound.source}: bank an exact-lp bound with its duals (proof=...)")
        key, certificate = _key(instance, bound.level), _certificate(proof)
        with self._open() as db:
            row = db.execute(f"select value from incumbents where {_WHERE}", key).fetchone()
            if row is not None:
                check_bound(row[0], bound.value, bound.source, instance.name)
            changed = db.execute(
                "insert into bounds values (?, ?, ?, ?, ?, ?, ?) on conflict do update set value = excluded.value, "
                "source = excluded.source, certificate = excluded.certificate where excluded.value > bounds.value",
                (*key, bound.proof, bound.value, bound.source, certificate),
            )
            return changed.rowcount > 0

    def improve(self, instance: Instance, time_limit_s: float = 10.0) -> list[Bound]:
        """Compute bounds, bank them with their proofs, and return the best of now and before."""
        began = time.perf_counter()
        fluid = fluid_bound(instance, time_limit_s)
        if fluid is not None:
            self.record(instance, fluid.bound, fluid)
        certified = [bound for bound in self.bounds(instance) if bound.proof != "solver"]
        known = max((makespan_of(instance, bound.value) for bound in certified), default=0.0)
        for bound in combinatorial_bounds(instance, time_limit_s - (time.perf_counter() - began), known):
            self.record(instance, bound)
        return self.bounds(instance)

    def observe(self, instance: Instance, objective: float, level: int = 0) -> None:
        """Note a verified objective."""
        key = _key(instance, level)
        with self._open() as db:
            for value, source in db.execute(f"select value, source from bounds where {_WHERE}", key):
                check_bound(objective, value, source, instance.name)
            db.execute(
                "insert into incumbents values (?, ?, ?, ?) on conflict do update set value = min(value, excluded.value)",
                (*key, objective),
            )

    def bounds(self, instance: Instance, level: int = 0) -> list[Bound]:
        """What is banked of an instance, best first; one per kind of proof."""
        with self._open() as db:
            rows = db.execute(f"select value, source, proof from bounds where {_WHERE}", _key(instance, level))
            found = [Bound(value, source, proof, level) for value, source, proof in rows]
        return sorted(found, key=lambda bound: -bound.value)

    def recheck(self, instance: Instance, level: int = 0) -> list[Recheck]:
        """Repeat the proof of every banked bound of an instance."""
        with self._open() as db:
            rows = db.execute(f"select value, source, proof, certificate from bounds where {_WHERE}", _key(instance, level))
            kept = rows.fetchall()
        return [
            Recheck(Bound(value, source, proof, level), _proven(instance, value, proof, certificate))
            for value, source, proof, certificate in kept
        ]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)
        try:
            db.execute("begin immediate")
            with db:  # commits, or rolls back on an exception
                yield db
        finally:
            db.close()


_WHERE = "physics = ? and objective = ? and level = ?"


def _key(instance: Instance, level: int) -> tuple[str, str, int]:
    return instance.physics_hash, instance.objective.hash, level


def _certificate(proof: FluidProof | None) -> str | None:
    if proof is None:
        return None
    return json.dumps({
        "shift": proof.certificate.shift,
        "keep_edges": proof.keep_edges,
        "numerator": [str(number) for number in proof.certificate.numerator],
    })


def _proven(instance: Instance, value: float, proof: str, certificate: str | None) -> float | None:
    """The bound that can be proved now."""
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
