"""Live progress of a study on stderr: a bar on a terminal, else a line every few seconds.

Failures are printed at once."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from optbench.cli.terminal.live_line import LiveLine, Step
from optbench.cli.terminal.output import joined, length, percent

if TYPE_CHECKING:
    from optbench.run.runner import RunProgress
    from optbench.run.study_progress import StudyWatch
    from optbench.track.follow_process import FollowerState

# A study whose cells take minutes prints a line at this interval.
HEARTBEAT_S = 30.0
# Shorter waits are not mentioned.
FELT_S = 1.0
# The number of failures that are printed one by one.
MAX_SAID = 20


class StudyProgress(LiveLine):
    """Show the events of ``run_study``; a context manager."""

    def __init__(self, study: str, watch: StudyWatch, quiet: bool = False) -> None:
        super().__init__(study, quiet)
        self.watch = watch
        self.instances = ""
        self._said = 0
        self._over = threading.Event()

    def __enter__(self) -> Self:
        super().__enter__()
        if not self.quiet and self.live is None:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        super().__exit__(*error)

    def has_more(self) -> bool:
        return bool(self.written) or self.watch.total > self.watch.done

    def __call__(self, progress: RunProgress) -> None:
        if progress.kind == "instance":
            self.instances = f"instances {progress.done} of {progress.total}"
            if progress.made is not None and progress.made.error is not None:
                self.say(
                    f"no instance of {progress.made.target} with seed {progress.made.seed}: "
                    f"{progress.made.error}"
                )
        elif progress.kind == "plan":
            self.watch.jobs = progress.jobs or self.watch.jobs
            self.watch.begin(progress.known.values(), progress.waiting, progress.total)
        elif progress.record is not None:
            wrong = self.watch.take(progress.record)
            if progress.record.reason is not None:
                self.say(f"{progress.record.cell.title}: {progress.record.reason}")
            if wrong is not None:
                self.say(wrong)
        self.now_and_then()

    def _beat(self) -> None:
        while not self._over.wait(HEARTBEAT_S):
            if time.monotonic() - self.written_at >= HEARTBEAT_S:
                self.written = ""
                self.write(self.step().words)

    def say(self, words: str, style: str = "red") -> None:
        """Print a message at once."""
        self._said += 1
        if self._said == MAX_SAID:
            words += "\n(more failures are in the summary)"
        if self._said <= MAX_SAID:
            super().say(words, style)

    def step(self) -> Step:
        """``12 of 200 cells, 1 failed, 3 optimal, best gap 0 % (cpsat | ft06 | 0), about 35.0 s
        left``.
        """
        watch = self.watch
        if not watch.total:
            return Step(self.instances or "making instances", watch.done)
        left_s = watch.remaining_s() if watch.done < watch.total else None
        best = f"best gap {percent(watch.best_gap)} ({watch.best_title})"
        words = joined(
            f"{watch.done} of {watch.total} cells",
            watch.failed and f"{watch.failed} failed",
            watch.proved and f"{watch.proved} optimal",
            watch.best_gap is not None and best,
            left_s is not None and f"about {length(left_s)} left",
        )
        return Step(words, watch.done, watch.total)


class Sending:
    """Print once that the end of a study waits for MLflow."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._first: float | None = None

    def __call__(self, state: FollowerState) -> None:
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        if not self.quiet and now - self._first > FELT_S:
            self.quiet = True
            number = "" if state.total is None else f" {state.total:,} runs"
            sys.stderr.write(
                f"sending{number} to MLflow; Ctrl-C leaves the rest to `optbench sync`\n"
            )
            sys.stderr.flush()
