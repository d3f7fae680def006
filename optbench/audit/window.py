"""The time that an audit covers: from when to when a log lists every run.

``sacct -S a -E b`` lists what ended after a and was eligible before b. Runs that ended before a are
missing, so that GPUs which were busy then look idle; the runs that are listed may have begun, and
been eligible, long before. Where the user does not say what a and b were, the log is known to be
complete between its first End and its last Eligible. A run that reaches over an edge counts with
what lies inside, as one that is released, or ends, at the edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from optbench.errors import FileFormatError
from optbench.formats.sacct_runs import Runs
from optbench.model.instance import Floats

# Runs, and share of all runs, that must be going on between the first End and the last Eligible for
# these to be taken as edges.
MIN_RUNS, MIN_SHARE = 20, 0.5


@dataclass(frozen=True)
class Window:
    """Seconds since 1970. ``complete``: the log is known to list every run between the two."""

    opens: float
    closes: float
    words: str
    complete: bool = True

    def clip(self, times: Floats) -> Floats:
        """Times within the window; those beyond an edge at the edge."""
        return np.clip(times, self.opens, self.closes)


def window_of(
    runs: Runs,
    release: Floats,
    start: Floats,
    end: Floats,
    since: float | None,
    until: float | None,
) -> Window:
    """The edges given, else those that the log proves, else its first and last run."""
    first = float(release.min() if runs.first_end is None else min(runs.first_end, end.min()))
    last = float(end.max() if runs.last_release is None else max(runs.last_release, release.max()))
    opens, closes = first if since is None else since, last if until is None else until
    asked = int(((end > (since or -np.inf)) & (start < (until or np.inf))).sum())
    inside = int(((end > opens) & (start < closes)).sum()) if closes > opens else 0
    complete = (since is not None and until is not None) or inside >= max(
        MIN_RUNS, MIN_SHARE * asked
    )
    if not complete:
        opens = float(release.min()) if since is None else since
        closes = float(end.max()) if until is None else until
    touched = bool(((end > opens) & (start < closes)).any())
    if closes <= opens or not touched:
        raise FileFormatError(
            f"no run lies in the time from {stamp(opens)} to {stamp(closes)}; the log's runs are "
            f"from {stamp(float(start.min()))} to {stamp(float(end.max()))}: give --since and "
            "--until within it"
        )
    closes = min(closes, float(end.max()))
    return Window(opens, closes, words_of(opens, closes, since, until, complete), complete)


def words_of(
    opens: float, closes: float, since: float | None, until: float | None, complete: bool
) -> str:
    span = f"The audit covers {stamp(opens)} to {stamp(closes)}"
    if since is not None and until is not None:
        return f"{span}, as given."
    first, last = "from the first job", "up to the last end"
    reason = "too few runs lie within the time in which the log is known to list every job"
    if complete:
        first = "from the first end of a job"
        last = "up to the last time that a job became eligible"
        reason = (
            "outside of it the log may miss jobs (sacct lists those that ended after its -S and "
            "were eligible before its -E)"
        )
    why = [words for given, words in ((since, first), (until, last)) if given is None]
    return f"{span}, {' '.join(why)}: {reason}; --since and --until set it."


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
