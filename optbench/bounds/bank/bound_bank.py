"""A bank of bounds, so that a bound that was proved for an instance is not computed again.

A SQLite file with the best bound per (physics hash, objective hash, kind of proof), each with what
proves it again, and the best verified schedule. The instance is always the very one that was
bounded: of a later level of a lexicographic objective, the one that carries the levels before it as
limits, which are part of its physics hash. Of an instance with several levels the first is meant.

Nothing that is read from the file is trusted. A certified bound is kept with its certificate, the
code that proved it, and a seal (``seals``). When it is taken out and the seal fits, it counts; else
the certificate is proved again, the value is what that gives, and a bound that nothing proves is
dropped. A solver's bound (proof "solver") is kept with the solver's module, settings and versions:
it cannot be repeated, and counts only while seal, code and versions are those that it was kept
with. A schedule is verified again. ``notices`` says what was dropped or changed, and why.

Every operation is one immediate transaction, so that many processes may share the file. Nothing in
optbench opens a bank unless the user names one: results that are to be compared start from nothing.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from optbench.bounds.auto import lower_bounds
from optbench.bounds.bank.bank_entries import (
    UNKNOWN_ORIGIN,
    BankEntry,
    Origin,
    Outcome,
    Recheck,
    bank_key,
    prepare,
    read_kept_instance,
)
from optbench.bounds.bank.seals import proof_code, seal, seal_key, solver_code
from optbench.bounds.lp.certificates import CertificateError
from optbench.bounds.proving import prove
from optbench.errors import FileFormatError, OptbenchError, ParameterError
from optbench.model.files.instance_json import instance_to_dict
from optbench.model.files.schedule_json import schedule_from_dict, schedule_to_dict
from optbench.model.files.strict_json import parse_json, render
from optbench.model.instance import Instance
from optbench.model.measures import check_bound
from optbench.model.result import Bound
from optbench.model.schedule import Schedule
from optbench.model.verify import verify

WAIT_S = 30.0
_WHERE = "physics = ? and objective = ?"
_COLUMNS = "proof, value, source, certificate, code, module, settings, seal"


class BoundBank:
    """Best bounds and verified schedules by instance: ``with BoundBank(path) as bank: ...``."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.notices: list[str] = []
        self._key = seal_key()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level=None)
        try:
            with self._transaction() as db:
                self.notices += prepare(db, self.path)
        except sqlite3.DatabaseError as error:
            self.close()
            raise FileFormatError(
                f"{self.path} is not a bank of bounds ({error}); name another file"
            ) from error
        except FileFormatError:
            self.close()
            raise

    def __enter__(self) -> BoundBank:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def record(
        self, instance: Instance, bounds: Iterable[Bound], origin: Origin = UNKNOWN_ORIGIN
    ) -> int:
        """Record bounds on an instance; return how many were better than the stored ones. In a
        contradiction none is recorded.

        A certified bound whose certificate does not prove it is recorded as a solver's.
        """
        checked, key = [self._checked(instance, bound) for bound in bounds], bank_key(instance)
        self.incumbent(instance)  # entries that do not hold are dropped
        self.bounds(instance)
        with self._transaction() as db:
            for value, text, mark in db.execute(
                f"select value, schedule, seal from incumbents where {_WHERE}", key
            ):
                for bound in (
                    checked if mark == seal(self._key, *key, value, text, proof_code()) else ()
                ):
                    check_bound(value, bound.value, bound.source, instance.name)
            return sum(self._insert(db, instance, bound, origin) for bound in checked)

    def improve(self, instance: Instance, time_limit_s: float = 10.0) -> list[Bound]:
        """Compute bounds, record them with their proofs, and return the best of the new and the
        stored ones.
        """
        self.record(instance, lower_bounds(instance, "auto", time_limit_s))
        return self.bounds(instance)

    def observe(self, instance: Instance, schedule: Schedule) -> bool:
        """Verify and record a schedule; False when one at least as good is stored."""
        verdict = verify(instance, schedule)
        if not verdict.feasible:
            broken = "; ".join(map(str, verdict.violations))
            raise ParameterError(f"{instance.name}: only feasible schedules are recorded; {broken}")
        key, objective = bank_key(instance), verdict.objectives[0]
        self.bounds(instance)  # entries that do not hold are dropped
        self.incumbent(instance)
        text = render(schedule_to_dict(schedule, instance))
        with self._transaction() as db:
            for row in db.execute(f"select {_COLUMNS} from bounds where {_WHERE}", key).fetchall():
                entry = BankEntry(*row)
                if self._is_sealed(key, entry):
                    check_bound(objective, entry.value, entry.source, instance.name)
            self._keep_instance(db, instance)
            changed = db.execute(
                "insert into incumbents values (?, ?, ?, ?, ?) on conflict do update set "
                "value = excluded.value, schedule = excluded.schedule, seal = excluded.seal "
                "where excluded.value < incumbents.value",
                (*key, objective, text, seal(self._key, *key, objective, text, proof_code())),
            )
            return changed.rowcount > 0

    def bounds(self, instance: Instance) -> list[Bound]:
        """Return the stored bounds of an instance that hold, best first: the best per kind of
        proof. Others are dropped.
        """
        key = bank_key(instance)
        found = []
        for entry in self._entries(key):
            bound, check = self._judged(instance, entry)
            if check.outcome != "holds":
                self.notices.append(str(check))
            self._settle(key, entry, bound, check)
            found += [bound] if bound is not None else []
        return sorted(found, key=lambda bound: -bound.value)

    def incumbent(self, instance: Instance) -> tuple[float, Schedule] | None:
        """Return the best stored objective and its schedule; one that the verifier does not confirm
        is dropped.
        """
        key = bank_key(instance)
        with self._transaction() as db:
            row = db.execute(
                f"select value, schedule, seal from incumbents where {_WHERE}", key
            ).fetchone()
        if row is None:
            return None
        value, text, mark = row
        if mark == seal(self._key, *key, value, text, proof_code()):
            return value, schedule_from_dict(parse_json(text), instance)
        return self._verified(instance, value, text)[0]

    def recheck(self, instance: Instance) -> list[Recheck]:
        """Repeat every proof of an instance in full, regardless of the seals; entries that do not
        hold are dropped or changed.
        """
        key = bank_key(instance)
        found = []
        for entry in self._entries(key):
            bound, check = self._judged(instance, entry, again=True)
            self._settle(key, entry, bound, check)
            found.append(check)
        with self._transaction() as db:
            row = db.execute(
                f"select value, schedule from incumbents where {_WHERE}", key
            ).fetchone()
        return [*found, self._verified(instance, *row)[1]] if row is not None else found

    def recheck_all(self) -> Iterator[Recheck]:
        """Repeat every proof of every instance in the bank."""
        with self._transaction() as db:
            kept = db.execute(
                "select physics, objective, name, content from instances order by name"
            ).fetchall()
            known = {(physics, objective) for physics, objective, _, _ in kept}
            every = db.execute(
                "select physics, objective from bounds "
                "union select physics, objective from incumbents"
            ).fetchall()
        for physics, objective, name, content in kept:
            instance, why = read_kept_instance(content, (physics, objective))
            if instance is not None:
                yield from self.recheck(instance)
            else:
                yield from self._drop_all((physics, objective), name, why)
        for key in [each for each in every if each not in known]:
            yield from self._drop_all(key, "unknown", "its instance is not in the bank")

    def _checked(self, instance: Instance, bound: Bound) -> Bound:
        """Return a finite bound; the value of a certified one is what its certificate proves."""
        if not math.isfinite(bound.value):
            raise ParameterError(
                f"bound {bound.value!r} from {bound.source} on {instance.name!r} must be finite"
            )
        if bound.proof == "solver":
            return bound
        try:
            proven = None if bound.certificate is None else prove(instance, bound.certificate)
        except CertificateError:
            proven = None
        return proven if proven is not None else Bound(bound.value, bound.source, "solver")

    def _insert(
        self, db: sqlite3.Connection, instance: Instance, bound: Bound, origin: Origin
    ) -> int:
        key, module, settings, code = bank_key(instance), None, None, proof_code()
        if bound.proof == "solver":
            module, settings, code = origin.module, origin.settings, solver_code(origin.module)
        self._keep_instance(db, instance)
        values = (
            bound.proof,
            float(bound.value),
            bound.source,
            bound.certificate,
            code,
            module,
            settings,
        )
        return db.execute(
            "insert into bounds values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do update set "
            "value = excluded.value, source = excluded.source, "
            "certificate = excluded.certificate, code = excluded.code, "
            "module = excluded.module, settings = excluded.settings, seal = excluded.seal "
            "where excluded.value > bounds.value",
            (*key, *values, seal(self._key, *key, *values)),
        ).rowcount

    def _keep_instance(self, db: sqlite3.Connection, instance: Instance) -> None:
        key = bank_key(instance)
        if db.execute(f"select 1 from instances where {_WHERE}", key).fetchone() is None:
            first = instance.with_objective(instance.objective.level(0))
            content = zlib.compress(render(instance_to_dict(first)).encode())
            db.execute("insert into instances values (?, ?, ?, ?)", (*key, instance.name, content))

    def _entries(self, key: tuple[str, str]) -> list[BankEntry]:
        with self._transaction() as db:
            return [
                BankEntry(*row)
                for row in db.execute(f"select {_COLUMNS} from bounds where {_WHERE}", key)
            ]

    def _judged(
        self, instance: Instance, entry: BankEntry, again: bool = False
    ) -> tuple[Bound | None, Recheck]:
        """Return the bound that an entry proves, None for nothing, and the result of the check."""
        said = (instance.name, entry.value, entry.source)
        sealed = self._is_sealed(bank_key(instance), entry)
        if entry.proof == "solver":
            why = self._solver_reason(entry, sealed)
            if why:
                return None, Recheck(*said, "solver", None, "dropped", why)
            kept = Bound(entry.value, entry.source, "solver")
            why = f"unchanged; a solver's bound ({entry.module}) cannot be repeated"
            return kept, Recheck(*said, "solver", None, "holds", why)
        proof = entry.kind
        if sealed and entry.code == proof_code() and not again:
            bound = Bound(entry.value, entry.source, proof, certificate=entry.certificate)
            return bound, Recheck(*said, proof, entry.value, "holds", "its seal fits")
        if not entry.certificate:
            return None, Recheck(*said, proof, None, "dropped", "it has no certificate")
        try:
            proven = prove(instance, entry.certificate, again=again)
        except CertificateError as error:
            return None, Recheck(*said, proof, None, "dropped", str(error))
        if (proven.value, proven.source, proven.proof) == (entry.value, entry.source, entry.proof):
            return proven, Recheck(*said, proof, proven.value, "holds", "proved again")
        why = f"its certificate proves {proven.value!r} ({proven.source}, {proven.proof})"
        return proven, Recheck(*said, proof, proven.value, "changed", why)

    def _is_sealed(self, key: tuple[str, str], entry: BankEntry) -> bool:
        """Whether an entry is unchanged since this user stored it on this machine."""
        fields = (
            entry.proof,
            entry.value,
            entry.source,
            entry.certificate,
            entry.code,
            entry.module,
            entry.settings,
        )
        return entry.seal == seal(self._key, *key, *fields)

    def _solver_reason(self, entry: BankEntry, sealed: bool) -> str:
        """Return why a solver's bound does not count; empty when it does."""
        if not sealed:
            return (
                "it was changed, or stored by another user or machine, and a solver's bound "
                "cannot be proved again"
            )
        if entry.code != solver_code(entry.module or ""):
            return (
                f"{entry.module}, the models of optbench or a library are of another version "
                "than when it was proved"
            )
        return ""

    def _settle(
        self, key: tuple[str, str], entry: BankEntry, bound: Bound | None, check: Recheck
    ) -> None:
        """Store the result of a check, unless another process has replaced the entry."""
        if check.outcome == "holds" and check.why != "proved again":
            return
        with self._transaction() as db:
            where = f"{_WHERE} and proof = ? and seal is ?"
            gone = db.execute(
                f"delete from bounds where {where}", (*key, entry.proof, entry.seal)
            ).rowcount
            if gone and bound is not None:
                values = (
                    bound.proof,
                    bound.value,
                    bound.source,
                    bound.certificate,
                    proof_code(),
                    None,
                    None,
                )
                marked = (*key, *values, seal(self._key, *key, *values))
                db.execute(
                    "insert or ignore into bounds values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", marked
                )

    def _verified(
        self, instance: Instance, value: float, text: str
    ) -> tuple[tuple[float, Schedule] | None, Recheck]:
        """Verify a stored schedule again; it is dropped or changed if it does not have the stored
        value.
        """
        key, proven, schedule = bank_key(instance), None, None
        why = "the verifier confirms it"
        try:
            schedule = schedule_from_dict(parse_json(text), instance)
            verdict = verify(instance, schedule)
            proven = verdict.objectives[0] if verdict.feasible else None
            why = why if verdict.feasible else f"it is not feasible: {verdict.violations[0]}"
        except (OptbenchError, LookupError, TypeError, ValueError) as error:
            why = f"it cannot be read ({error})"
        outcome: Outcome = (
            "dropped" if proven is None else "holds" if proven == value else "changed"
        )
        if outcome == "changed":
            why = f"the verifier finds {proven!r}"
        check = Recheck(instance.name, value, "schedule", "schedule", proven, outcome, why)
        if outcome != "holds":
            self.notices.append(str(check))
        with self._transaction() as db:
            db.execute(
                f"delete from incumbents where {_WHERE} and value = ? and schedule = ?",
                (*key, value, text),
            )
            if proven is None or schedule is None:
                return None, check
            marked = (*key, proven, text, seal(self._key, *key, proven, text, proof_code()))
            db.execute("insert or ignore into incumbents values (?, ?, ?, ?, ?)", marked)
        return (proven, schedule), check

    def _drop_all(self, key: tuple[str, str], name: str, why: str) -> Iterator[Recheck]:
        """Drop every entry of an instance that is not available."""
        entries = self._entries(key)
        with self._transaction() as db:
            for table in ("bounds", "incumbents", "instances"):
                db.execute(f"delete from {table} where {_WHERE}", key)
        for entry in entries:
            yield Recheck(name, entry.value, entry.source, entry.kind, None, "dropped", why)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._db.execute("begin immediate")
        with self._db:  # commits, or rolls back on an exception
            yield self._db
