"""How long lp_guided anneals: for a time or for an amount of work, with reports in between."""

from __future__ import annotations

from optbench.plugins.protocol import Run

from ._lp_finder import Finder

# Steps per unit of work.
STEPS = 1_000
# Shares of the time between two checks of the clock, and between two reports.
LOOK_SHARE, REPORT_SHARE = 0.005, 0.1
# Steps per task after which no more improvement is expected: hours of search are better spent on
# several seeds.
ENOUGH = 20_000
# With a work limit the temperature changes this many times.
LOOKS = 200


def report(finder: Finder, run: Run) -> None:
    schedule = finder.best_schedule()
    if schedule is not None:
        run.report(schedule)


def search_for_a_time(finder: Finder, run: Run) -> int:
    """Anneal until the time is over or the search long enough; the nearer end sets the
    temperature. Return the number of steps.
    """
    whole, steps, reported = run.time_left(), 1, 1.0
    done, enough = 0, ENOUGH * finder.instance.num_tasks
    expected = 1.0
    while (left := run.time_left()) > 0 and done < enough:
        finder.anneal(steps, max(1 - left / whole, done / enough), expected)
        done += steps
        expected = min(enough, done * whole / max(1e-9, whole - run.time_left()))
        share = (left - run.time_left()) / whole
        steps = min(
            max(1, round(steps * min(4.0, LOOK_SHARE / max(share, 1e-9)))), max(1, enough // LOOKS)
        )
        if left / whole < reported - REPORT_SHARE:
            reported = left / whole
            report(finder, run)
    return done


def search_for_work(finder: Finder, run: Run, total: int) -> int:
    """Anneal for this many steps: the same seed gives the same schedule. Return their number."""
    done = 0
    while done < total and run.time_left() > 0:
        steps = min(-(-total // LOOKS), total - done)
        finder.anneal(steps, done / total, total)
        done += steps
    return done
