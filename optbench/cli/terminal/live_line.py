"""A line on stderr that says how far long work is: refreshed on a terminal, a new one every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from optbench.cli.terminal.output import console_for, length

REFRESH_HZ = 4
LINE_EVERY_S = 5.0


class LiveLine:
    """Subclasses say what there is to say; use as a context."""

    def __init__(self, name: str, quiet: bool = False) -> None:
        self.name, self.quiet = name, quiet
        self.live: Any = None
        self.written = ""
        self.began = self.written_at = time.monotonic()

    def state(self) -> str:
        """Where the work stands, in a few words."""
        raise NotImplementedError

    def share(self) -> tuple[int, int | None]:
        """What is done, and of how much, where that is known."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            from rich.live import Live

            self.live = Live(self, console=console_for(sys.stderr), refresh_per_second=REFRESH_HZ, transient=True)
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.live is not None:
            self.live.stop()
        elif self.has_more():
            self.write(self.state())

    def has_more(self) -> bool:
        """Whether a last line is worth writing."""
        return True

    def now_and_then(self) -> None:
        """A line, where the last one is some seconds old and nothing is refreshed."""
        if self.live is None and time.monotonic() - self.written_at >= LINE_EVERY_S:
            self.write(self.state())

    def write(self, words: str) -> None:
        """A line of its own, unless it says what the last one said."""
        self.written_at = time.monotonic()
        if self.quiet or words == self.written:
            return
        self.written = words
        try:
            sys.stderr.write(f"{length(self.written_at - self.began):>10}  {words}\n")
            sys.stderr.flush()
        except BrokenPipeError:  # nobody reads it any more; the work goes on
            self.quiet = True

    def __rich__(self) -> Any:
        """The refreshed line: time so far, a bar, and where the work stands."""
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        done, total = self.share()
        grid.add_row(
            Spinner("dots", style="cyan"),
            Text(self.name, style="bold"),
            length(time.monotonic() - self.began),
            ProgressBar(total=total, completed=done, width=24),
            Text(self.state(), overflow="ellipsis", no_wrap=True),
        )
        return grid
