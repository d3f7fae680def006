"""The process that follows a study's records and sends them while the study runs: ``python -m
optbench.track.follower``.

It is controlled by its standard input: ``end`` means that the last record is written; if the pipe
closes without it, the runner has ended and this process exits immediately. It reports on its
standard output, one JSON object per line.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from optbench.errors import OptbenchError
from optbench.store.records import Record
from optbench.store.run_store import Store
from optbench.track.runs import TrackedRun, TrackingError
from optbench.track.saved_view import view_of
from optbench.track.study_runs import StudyRuns
from optbench.track.study_sync import Snapshot
from optbench.track.tracking import OnSent, Tracking
from optbench.track.tracking_address import TrackingAddress

END = "end"
EVERY_S = 2.0
# A slow pass is repeated less often, a failing server is called less often, and study sums are sent
# every few passes.
REST_FACTOR, TROUBLED_S, SUMS_EVERY_S = 2.0, 5.0, 30.0
NICENESS, LISTEN_S = 15, 1.0


class FollowerOrders:
    """The runner's messages, read in a separate thread."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._runner = os.getppid()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        said = b""
        while os.getppid() == self._runner:
            ready, _, _ = select.select([sys.stdin], [], [], LISTEN_S)
            if ready:
                words = os.read(sys.stdin.fileno(), 100)
                if not words:
                    break
                said += words
                if END.encode() in said:
                    self.ended.set()
        os._exit(0)  # the runner has ended or stopped waiting; the other thread may be in a request


class Follower:
    """Follows one configuration of one study."""

    def __init__(self, snapshot: Snapshot, store: Store) -> None:
        self.snapshot, self.store = snapshot, store
        self.place = TrackingAddress.of(store.folder.parent)
        self.tracking: Tracking | None = None
        self.runs: StudyRuns | None = None
        self.plan_bytes = b""
        self.parent: TrackedRun | None = None
        self.parent_at = -SUMS_EVERY_S
        # What was sent last, and whether it was marked as the end of the study.
        self.sent: tuple[str, bool] | None = None
        self.arrived: set[tuple[str, str]] = set()

    def work(self, orders: FollowerOrders) -> None:
        while True:
            last = orders.ended.is_set()
            began = time.monotonic()
            trouble = self.attempt(last)
            if last:
                return
            spent = time.monotonic() - began
            orders.ended.wait(max(EVERY_S, REST_FACTOR * spent, TROUBLED_S if trouble else 0.0))

    def attempt(self, last: bool) -> bool:
        """Send what is new; return whether that failed."""
        try:
            self._send(last)
        except (TrackingError, OSError) as error:
            print_state(trouble=str(error))
            return True
        return False

    def _send(self, last: bool) -> None:
        if not self.snapshot.path.is_file():
            return
        runs = self._current()
        records = self.store.records()
        fingerprint = self.snapshot.fingerprint(runs.plan, records, self.place.uri)
        if self.sent is None and self.snapshot.sent(fingerprint, self.place):
            self.sent = (fingerprint, True)
        if self.sent == (fingerprint, True) or (self.sent == (fingerprint, False) and not last):
            return
        parent, children = self._described(runs, records, last)
        heard = self._counting(children)
        self.tracking = self.tracking or Tracking(workspace=self.store.folder.parent, attempts=1)
        view = view_of(runs.plan, parent, children)
        self.tracking.sync(runs.experiment, parent, children, on_sent=heard, view=view)
        self.sent = (fingerprint, last)
        if last:
            self.snapshot.note_sent(fingerprint)
        print_state(done=len(children), total=len(children), trouble="")

    def _counting(self, children: list[TrackedRun]) -> OnSent:
        """Return a callback that reports how many children have arrived, also in earlier passes."""
        described = [(child.cell, child.content) for child in children]
        self.arrived &= set(described)
        print_state(done=len(self.arrived), total=len(children))

        def heard(done: int, total: int) -> None:
            if done > 0:
                self.arrived.add(described[done - 1])
                print_state(done=len(self.arrived), total=total)

        return heard

    def _current(self) -> StudyRuns:
        """Return the runs of the current plan; a runner writes it when the instances are made."""
        now = self.snapshot.path.read_bytes()
        if self.runs is None or now != self.plan_bytes:
            self.plan_bytes = now
            self.runs = StudyRuns(self.snapshot.plan(self.store), self.store)
        return self.runs

    def _described(
        self, runs: StudyRuns, records: Mapping[str, Record], last: bool
    ) -> tuple[TrackedRun, list[TrackedRun]]:
        """Return parent and children; a parent with new sums is sent only now and then."""
        parent, children = runs.runs(records, running=not last)
        now = time.monotonic()
        if last or self.parent is None or now - self.parent_at >= SUMS_EVERY_S:
            self.parent, self.parent_at = parent, now
        return self.parent, children


def print_state(**state: object) -> None:
    """Print one line for the runner; a runner that has ended is detected elsewhere."""
    try:
        sys.stdout.write(json.dumps(state) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)


def main(study: str, config_hash: str, folder: str) -> None:
    """Follow a study of the store in ``folder`` until the runner ends it."""
    os.nice(NICENESS)
    store = Store(Path(folder))
    try:
        Follower(Snapshot.of(study, config_hash, store), store).work(FollowerOrders())
    except OptbenchError as error:
        print_state(trouble=str(error))
    os._exit(0)  # the listening thread waits for its pipe


if __name__ == "__main__":
    main(*sys.argv[1:])
