"""Live progress of a study on stderr: a bar on a terminal, a line every few seconds elsewhere; failures are said at once."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from optbench.cli.output import console_for, length, percent

if TYPE_CHECKING:
    from optbench.bench.runner import Progress
    from optbench.bench.track.following import Following
    from optbench.bench.watch import Watch

REFRESH_HZ = 4
LINE_EVERY_S = 5.0
# A study whose cells take minutes says now and then that it is alive.
HEARTBEAT_S = 30.0
# A wait that is shorter than this is not worth a word.
FELT_S = 1.0
# Of failures that come by the hundred, so many are said one by one.
MAX_SAID = 20


class StudyProgress:
    """Shows what ``run_study`` tells; use as a context."""

    def __init__(self, study: str, watch: Watch, quiet: bool = False) -> None:
        self.study, self.watch, self.quiet = study, watch, quiet
        self.instances = ""
        self._began = time.monotonic()
        self._written_at = self._began
        self._written = ""
        self._said = 0
        self._live: Any = None
        self._over = threading.Event()

    def __enter__(self) -> StudyProgress:
        if self.quiet:
            return self
        if sys.stderr.isatty():
            from rich.live import Live

            self._live = Live(self, console=console_for(sys.stderr), refresh_per_second=REFRESH_HZ, transient=True)
            self._live.start()
        else:
            threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()
        elif self._written or self.watch.total > self.watch.done:
            self._write(self.state())

    def __call__(self, progress: Progress) -> None:
        if progress.kind == "instance":
            self.instances = f"instances {progress.done} of {progress.total}"
            if progress.made is not None and progress.made.error is not None:
                self.say(f"no instance of {progress.made.target} with seed {progress.made.seed}: {progress.made.error}")
        elif progress.kind == "plan":
            self.watch.begin(progress.known.values(), progress.waiting, progress.total)
        elif progress.record is not None:
            wrong = self.watch.take(progress.record)
            if progress.record.reason is not None:
                self.say(f"{progress.record.cell.title}: {progress.record.reason}")
            if wrong is not None:
                self.say(wrong)
        if self._live is None and time.monotonic() - self._written_at >= LINE_EVERY_S:
            self._write(self.state())

    def _beat(self) -> None:
        while not self._over.wait(HEARTBEAT_S):
            if time.monotonic() - self._written_at >= HEARTBEAT_S:
                self._written = ""
                self._write(self.state())

    def say(self, words: str) -> None:
        """Something to be known at once."""
        self._said += 1
        if self._said == MAX_SAID:
            words += "\n(more failures are in the summary)"
        if self.quiet or self._said > MAX_SAID:
            return
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text(words, style="red"))
        else:
            self._write(words)

    def state(self) -> str:
        """``12 of 200 cells, 1 failed, 3 optimal, best gap 0 % (cpsat | ft06 | 0), about 35.0 s left``."""
        watch = self.watch
        if not watch.total:
            return self.instances or "making instances"
        parts = [f"{watch.done} of {watch.total} cells"]
        parts += [f"{watch.failed} failed"] if watch.failed else []
        parts += [f"{watch.proved} optimal"] if watch.proved else []
        parts += [f"best gap {percent(watch.best_gap)} ({watch.best_title})"] if watch.best_gap is not None else []
        left = watch.remaining_s()
        parts += [f"about {length(left)} left"] if left is not None and watch.done < watch.total else []
        return ", ".join(parts)

    def _write(self, words: str) -> None:
        self._written_at = time.monotonic()
        if self.quiet or words == self._written:
            return
        self._written = words
        try:
            sys.stderr.write(f"{length(self._written_at - self._began):>10}  {words}\n")
            sys.stderr.flush()
        except BrokenPipeError:  # nobody reads it any more; the study goes on
            self.quiet = True

    def __rich__(self) -> Any:
        """The refreshed line: time so far, a bar of the cells, and where the study stands."""
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        total = self.watch.total or None
        grid.add_row(
            Spinner("dots", style="cyan"),
            Text(self.study, style="bold"),
            length(time.monotonic() - self._began),
            ProgressBar(total=total, completed=self.watch.done, width=24),
            Text(self.state(), overflow="ellipsis", no_wrap=True),
        )
        return grid


class Sending:
    """Says once what the end of a study is waiting for."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._first: float | None = None

    def __call__(self, state: Following) -> None:
        now = time.monotonic()
        self._first = now if self._first is None else self._first
        if not self.quiet and now - self._first > FELT_S:
            self.quiet = True
            number = "" if state.total is None else f" {state.total:,} runs"
            sys.stderr.write(f"sending{number} to MLflow; Ctrl-C leaves the rest to `optbench sync`\n")
            sys.stderr.flush()
