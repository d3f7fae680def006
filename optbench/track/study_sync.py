"""Send the stored results of every configuration of a study that has anything new."""

from __future__ import annotations

import fcntl
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from optbench.errors import FileFormatError
from optbench.files import write_whole
from optbench.store.records import Record
from optbench.store.run_store import STUDIES, Store
from optbench.store.snapshots import HASH_DIGITS, LATEST, load_plan, read_plan
from optbench.study.planning import Plan
from optbench.track.runs import SyncReport
from optbench.track.saved_view import view_of
from optbench.track.study_runs import StudyRuns
from optbench.track.tracking import OnSent, Tracking
from optbench.track.tracking_address import TrackingAddress

PLANS, LOCK, MARK = "*.json", "lock", ".tracked"


@dataclass(frozen=True)
class Snapshot:
    """One stored plan of a study."""

    study: str
    path: Path

    @classmethod
    def of(cls, study: str, config_hash: str, store: Store) -> Snapshot:
        return cls(study, store.folder / STUDIES / study / f"{config_hash[:HASH_DIGITS]}.json")

    @property
    def latest(self) -> bool:
        """Whether this is the study as it was last run."""
        named = self.path.parent / LATEST
        return named.is_file() and named.read_text(encoding="utf-8").strip() == self.path.name

    def plan(self, store: Store) -> Plan:
        """Return the plan; the latest one has the current texts of the study file."""
        if self.latest:
            plan = load_plan(self.study, store)
            if plan.changed is None:
                return plan
        return read_plan(self.path)

    @property
    def running(self) -> bool:
        """Whether a runner holds the study now."""
        lock = self.path.parent / LOCK
        if not lock.is_file() or not lock.stat().st_size:  # a runner empties it at its end
            return False
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def fingerprint(self, plan: Plan, records: Mapping[str, Record], uri: str) -> str:
        """Return a value that changes when there is something to send."""
        digest = hashlib.sha256(uri.encode() + self.path.read_bytes())
        for cell in plan.cells:
            if cell.key in records:
                digest.update(f"{cell.key} {records[cell.key].began_at}\n".encode())
        return digest.hexdigest()

    @property
    def mark(self) -> Path:
        return self.path.with_suffix(MARK)

    def sent(self, fingerprint: str, place: TrackingAddress) -> bool:
        """Whether all of this was sent before, as far as is known locally."""
        return (
            place.exists
            and self.mark.is_file()
            and self.mark.read_text(encoding="utf-8") == fingerprint
        )

    def note_sent(self, fingerprint: str) -> None:
        write_whole(self.mark, fingerprint.encode())


def snapshots(study: str, store: Store) -> list[Snapshot]:
    """Return all readable plans of a study, the latest one last; warn of others."""
    found = []
    for path in sorted((store.folder / STUDIES / study).glob(PLANS)):
        try:
            read_plan(path)
        except FileFormatError as error:
            warnings.warn(str(error), stacklevel=2)
        else:
            found.append(Snapshot(study, path))
    return sorted(found, key=lambda each: each.latest)


def push(
    snapshot: Snapshot,
    store: Store,
    tracking: Tracking,
    restore: bool = False,
    on_sent: OnSent | None = None,
) -> SyncReport:
    """Send one configuration of a study."""
    records = store.records()
    plan = snapshot.plan(store)
    fingerprint = snapshot.fingerprint(plan, records, tracking.place.uri)
    running = snapshot.running
    runs = StudyRuns(plan, store)
    parent, children = runs.runs(records, running)
    view = view_of(plan, parent, children)
    report = tracking.sync(
        runs.experiment, parent, children, restore=restore, on_sent=on_sent, view=view
    )
    if not running:
        snapshot.note_sent(fingerprint)
    return report


def with_records(study: str, store: Store) -> Iterator[Snapshot]:
    """Yield configurations of which at least one cell has been run."""
    records = store.records()
    for snapshot in snapshots(study, store):
        if any(cell.key in records for cell in read_plan(snapshot.path).cells):
            yield snapshot
