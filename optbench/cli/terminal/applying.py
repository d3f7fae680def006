"""What ``optbench gpu apply`` and ``gpu restore`` show: the dry run, each change, the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from optbench.cli.terminal.output import BAD, DIM, GOOD, emit_json, escape, figure, show, table

if TYPE_CHECKING:
    from optbench.hardware.clock_control.following import AppliedChange, FollowedPlan
    from optbench.hardware.clock_control.journal import ClockRange
    from optbench.hardware.clock_control.restoring import RestoreOutcome
    from optbench.model.verify import Violation

MOST_ROWS = 40
STATES = {"restored": GOOD, "untouched": GOOD, "forgotten": GOOD, "held": DIM, "kept": BAD}


def warn(words: str) -> None:
    """One line on stderr; a terminal that has gone must not end a restoration."""
    with suppress(OSError):
        sys.stderr.write(f"optbench: {words}\n")
        sys.stderr.flush()


def show_violations(name: str, path: str, violations: Iterable[Violation], json: bool) -> None:
    """Say that the verifier refuses the schedule, and why."""
    if json:
        rows = [asdict(violation) for violation in violations]
        emit_json({"schedule": path, "feasible": False, "violations": rows})
        return
    show(
        f"[{BAD}]not feasible[/]: {escape(path)} breaks constraints of {escape(name)}; no clock is "
        "locked"
    )
    for each in violations:
        show(f"  [bold]{escape(each.constraint)}[/] ({each.count}×): {escape(each.message)}")


def between_words(kept_gap_s: float, target: ClockRange | None, events: bool) -> str:
    """What the clock of a device is between two segments, and why."""
    normal = "reset" if target is None else f"locked to {target}"
    why = "the idle power of the instance is that of a device that nobody locks"
    if events:
        return f"at the end of a segment the clock is {normal}: {why}"
    return (
        f"in gaps of up to {kept_gap_s:g} s between two segments of a device its clock is kept: "
        f"unlocking and locking take time themselves; in longer ones it is {normal}: {why}"
    )


def show_dry_run(head: Mapping[str, Any], brief: bool = False) -> None:
    """The devices, the clocks and the changes; ``brief`` leaves the changes out."""
    show(f"[bold]{escape(head['instance'])}[/]  {escape(head['schedule'])}: feasible")
    rows = [
        (
            escape(pool),
            str(place),
            str(device["index"]),
            escape(device["name"]),
            device["uuid"],
            "?" if device["top_mhz"] is None else f"{device['top_mhz']:,} MHz",
        )
        for pool, own in head["map"].items()
        for place, device in enumerate(own)
    ]
    titles = {row[4]: f"{row[0]} {row[1]}" for row in rows}
    heads = ("pool", "device", "GPU", "", "UUID", "top clock")
    show("", table(heads, rows, right=("device", "GPU", "top clock")))
    for doubt in head["doubts"]:
        show(f"[{BAD}]attention[/]  {escape(doubt)}")
    show(f"[{DIM}]{escape(head['colouring'])}[/]")
    clocks = sorted({(e["uuid"], e["fraction"], e["mhz"], e["deviation"]) for e in head["clocks"]})
    show(
        "",
        table(
            ("device", "clock", "set to", "deviation"),
            [
                (escape(titles[uuid]), f"{fraction:g}", f"{mhz:,} MHz", f"{deviation:+.2%}")
                for uuid, fraction, mhz, deviation in clocks
            ],
            right=("clock", "set to", "deviation"),
        ),
    )
    if head["tasks_without_clock"]:
        show(f"{head['tasks_without_clock']:,} segments have no clock: nothing is set for them")
    if not brief:
        _show_segments(head)
        _show_changes(head, titles)
    show(f"between segments: {escape(head['between'])}")
    kept = head["restore_to"]
    restored = "reset" if kept is None else f"locked to {kept[0]:,} to {kept[1]:,} MHz"
    show(f"at the end, however it comes, the clocks are {restored}")
    if not brief:
        show("", "[bold]Nothing was changed.[/] With --execute the clocks are locked.")


def _show_segments(head: Mapping[str, Any]) -> None:
    """Which segment runs on which devices."""
    segments = head["segments"]
    rows = [
        (
            figure(each["start_s"]),
            figure(each["end_s"]),
            escape(each["task"]),
            f"{escape(each['pool'])} {', '.join(map(str, each['devices']))}",
            f"{each['clock']:g}",
        )
        for each in segments[:MOST_ROWS]
    ]
    heads = ("from s", "to s", "task", "devices", "clock")
    show("", table(heads, rows, right=("from s", "to s", "clock")))
    if len(segments) > MOST_ROWS:
        show(f"... and {len(segments) - MOST_ROWS:,} more segments; --json prints all")


def _show_changes(head: Mapping[str, Any], titles: Mapping[str, str]) -> None:
    changes = head["changes"]
    if head["events"] is not None:
        show("", f"the times come from {escape(head['events'])}; by the schedule they are:")
    rows = [
        (
            figure(each["at_s"]),
            escape(titles[each["uuid"]]),
            "released" if each["mhz"] is None else f"{each['mhz']:,} MHz",
            escape(each["task"]),
        )
        for each in changes[:MOST_ROWS]
    ]
    show("", table(("at s", "device", "clock", "task"), rows, right=("at s", "clock")))
    if len(changes) > MOST_ROWS:
        show(f"... and {len(changes) - MOST_ROWS:,} more changes; --json prints all")


def show_change(change: AppliedChange) -> None:
    """One change as it was made."""
    device = change.device
    what = "released after" if change.mhz is None else f"{change.mhz:,} MHz for"
    late = "" if change.late_s is None else f"  [{DIM}]{change.late_s * 1e3:+.0f} ms[/]"
    name = f"GPU {device.index}"
    show(f"{change.at_s:10.3f} s  {name}  {what} {escape(change.task)}{late}")


def show_summary(done: FollowedPlan) -> None:
    """The end of an apply."""
    how = "" if done.interrupted is None else f" (interrupted by {done.interrupted})"
    end = f"[{GOOD}]restored[/]" if done.restored else f"[{BAD}]not restored[/]"
    show(f"{end}{how}; {len(done.applied):,} changes, at most {done.latest_s * 1e3:.0f} ms late")
    if done.refused_events:
        show(f"{len(done.refused_events):,} lines of events changed nothing")


def show_outcomes(outcomes: Iterable[RestoreOutcome]) -> None:
    """What became of each journal."""
    for each in outcomes:
        colour = STATES[each.state]
        show(f"[{colour}]{each.state}[/]  {escape(each.device)}: {escape(each.words)}")
