"""Reads Slurm's accounting log, as ``sacct --parsable2`` (or ``--parsable``, or CSV) prints it.

    sacct -a -X -P -S 2024-03-01 -E 2024-04-01 \\
      -o JobID,Submit,Eligible,Start,End,Elapsed,State,AllocTRES,NodeList,ConsumedEnergyRaw

A row is one run of one job, which held devices for a known time, whatever its final state. Steps
(``12.batch``) are parts of their job. A requeued job (``--duplicates``) has a row per run. The
components of a heterogeneous job (``12+1``) and the elements of an array (``12_3``) are jobs; those
of an array that never started share a row (``12_[4-7]``).
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from optbench.formats.imported import ImportFindings
from optbench.formats.sacct_fields import duration_s, is_nothing, time_s
from optbench.formats.text import MisfitError, shorten

DELIMITERS = "|,;\t"
# Column of sacct by lower-case name -> our column, the better source first.
ID_COLUMNS = ("jobid", "jobidraw")
RELEASE_COLUMNS = ("eligible", "submit")
RESOURCE_COLUMNS = ("alloctres", "allocgres", "reqtres", "reqgres")
CORE_COLUMNS = ("alloccpus", "ncpus")
ENERGY_COLUMNS = ("consumedenergyraw", "consumedenergy")
STEP = re.compile(r"\.[A-Za-z0-9_]+$")
ADVICE = "print the log with sacct --parsable2, or put quotes around fields with commas"
# The depth (MisfitError) of a text whose header is that of sacct.
RECOGNISED = 1e6


@dataclass
class Runs:
    """One entry per kept row; times in seconds since 1970.

    ``unread`` are the resources of rows whose times cannot be read ("" if the resources cannot be
    read either). ``first_end`` and ``last_release`` are over all jobs, including those that never
    started: sacct lists jobs that ended after its ``-S`` and were eligible before its ``-E``, so
    that the log is complete between the two.
    """

    line: list[int] = field(default_factory=list)
    job: list[str] = field(default_factory=list)
    release: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    cores: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    energy: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    unread: list[str] = field(default_factory=list)
    first_end: int | None = None
    last_release: int | None = None
    rows: int = 0
    steps: int = 0


def looks_like_sacct(text: str) -> bool:
    """Whether the first non-empty line is the header of a table of jobs, even of an invalid one."""
    head = text.lstrip("\ufeff\r\n ")[:4096].partition("\n")[0]
    return delimiter_of(head) is not None or head.lower().split()[:1] in (
        [name] for name in ID_COLUMNS
    )


def delimiter_of(head: str) -> str | None:
    for delimiter in DELIMITERS:
        names = names_of(head, delimiter)
        if len(names) > 1 and set(names) & set(ID_COLUMNS):
            return delimiter
    return None


def names_of(head: str, delimiter: str) -> list[str]:
    return [name.strip().strip('"').partition("%")[0].lower() for name in head.split(delimiter)]


@dataclass(frozen=True)
class ColumnLayout:
    """Positions of the columns; -1, where every row ends with "", for a missing one."""

    width: int
    job: int
    release: tuple[int, ...]
    start: int
    end: int
    elapsed: int
    state: int
    resources: tuple[int, ...]
    cores: int
    nodes: int
    energy: int


def layout_of(line: int, names: Sequence[str]) -> ColumnLayout:
    """The columns by name; a MisfitError names a missing one."""

    def find(*wanted: str) -> int:
        return next((names.index(name) for name in wanted if name in names), -1)

    if find("start") < 0 or (find("end") < 0 and find("elapsed") < 0):
        why = "Start and one of End and Elapsed are needed to know when jobs ran"
        raise MisfitError(line, f"columns {', '.join(names)[:200]}: {why}", RECOGNISED)
    resources = tuple(names.index(name) for name in RESOURCE_COLUMNS if name in names)
    if not resources and find(*CORE_COLUMNS) < 0:
        why = "one of AllocTRES, AllocGRES, ReqTRES, AllocCPUS is needed to know what jobs held"
        raise MisfitError(line, f"columns {', '.join(names)[:200]}: {why}", RECOGNISED)
    return ColumnLayout(
        width=len(names),
        job=find(*ID_COLUMNS),
        release=tuple(names.index(name) for name in RELEASE_COLUMNS if name in names),
        start=find("start"),
        end=find("end"),
        elapsed=find("elapsed", "elapsedraw"),
        state=find("state"),
        resources=resources,
        cores=find(*CORE_COLUMNS),
        nodes=find("nodelist"),
        energy=find(*ENERGY_COLUMNS),
    )


def read_runs(text: str, findings: ImportFindings) -> Runs:
    """Read the runs of a log; findings report what is left out."""
    rows = table_rows(text)
    line, names = next(rows, (1, []))
    layout = layout_of(line, [name.strip().partition("%")[0].lower() for name in names])
    runs, seen, times = Runs(), set[tuple[str, str, str]](), Counter[str]()
    misfits, good, first = 0, 0, ""
    for line, row in rows:
        if len(row) != layout.width:
            what = "rows with another number of fields than the header"
            findings.add("dropped", what, f"line {line}")
            first = first or f"line {line}: {len(row)} fields; the header has {layout.width}"
            misfits += 1
            if not STEP.search(row[layout.job].strip() if layout.job < len(row) else ""):
                runs.unread.append("")
            continue
        good += 1
        row.append("")
        job = row[layout.job].strip()
        if STEP.search(job):
            runs.steps += 1
        elif row[layout.job] == names[layout.job]:
            findings.add("dropped", "further headers", f"line {line}")
        else:
            add_run(runs, layout, line, job, row, seen, times, findings)
    if misfits > good:
        count = f"{misfits:,} of {misfits + good:,} rows"
        raise MisfitError(1, f"{count} do not fit the header ({first}); {ADVICE}", RECOGNISED)
    return runs


def table_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Numbered rows of fields, the header first. Only comma-separated files have quotes."""
    head = text.lstrip("\ufeff\r\n ").partition("\n")[0]
    delimiter = delimiter_of(head)
    if delimiter is None:
        why = f"no header of sacct: fields separated by |, one of them JobID; {ADVICE}"
        raise MisfitError(1, why, 0.5)
    trailing = head.rstrip().endswith(delimiter)
    if delimiter == "|":
        for number, line in lines_of(text):
            if line and not line.isspace():
                fields = line.rstrip("\r").split("|")
                yield number, fields[:-1] if trailing and not fields[-1] else fields
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for fields in reader:
            if any(field and not field.isspace() for field in fields):
                yield reader.line_num, fields[:-1] if trailing and not fields[-1] else fields
    except csv.Error as error:
        raise MisfitError(reader.line_num, f"not CSV: {error}", RECOGNISED) from None


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines, one at a time: a list would take several times the memory."""
    begin, number = 0, 1
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield number, text[begin:end]
        begin, number = end + 1, number + 1


def add_run(
    runs: Runs,
    layout: ColumnLayout,
    line: int,
    job: str,
    row: Sequence[str],
    seen: set[tuple[str, str, str]],
    times: Counter[str],
    findings: ImportFindings,
) -> None:
    """Keep one row of a job, or add the reason to the findings."""
    runs.rows += 1
    state = (row[layout.state].upper().split() or ["(none)"])[0].rstrip("+")
    if state.replace("_", "").isalpha() or state == "(none)":
        runs.states[state] += 1
    where = f"line {line}, job {shorten(job)}"
    note_edges(runs, layout, row)
    held = next((row[at] for at in layout.resources if row[at]), "")
    begin, end, readable = span_of(layout, row, where, findings)
    if begin is None or end is None:
        runs.unread += [] if readable else [held]
        return
    key = (job, row[layout.start], row[layout.end] if layout.end >= 0 else row[layout.elapsed])
    if key in seen:
        findings.add("dropped", "rows that stand twice", where)
        return
    seen.add(key)
    times[job] += 1
    if times[job] > 1:
        findings.add("warnings", "further runs of a requeued job, each a task of its own", where)
        job = f"{job}#{times[job]}"
    runs.line.append(line)
    runs.job.append(job)
    runs.release.append(release_of(layout, row, begin, where, findings))
    runs.start.append(begin)
    runs.end.append(end)
    runs.resources.append(held)
    runs.cores.append(row[layout.cores])
    runs.nodes.append(row[layout.nodes])
    runs.energy.append(row[layout.energy])


def note_edges(runs: Runs, layout: ColumnLayout, row: Sequence[str]) -> None:
    """The first end and the last release of all rows of jobs so far."""
    end = time_s(row[layout.end])
    if end is not None:
        runs.first_end = end if runs.first_end is None else min(runs.first_end, end)
    times = (time_s(row[at]) for at in (*layout.release, layout.start))
    known = next((time for time in times if time is not None), None)
    if known is not None:
        runs.last_release = known if runs.last_release is None else max(runs.last_release, known)


def span_of(
    layout: ColumnLayout, row: Sequence[str], where: str, findings: ImportFindings
) -> tuple[int | None, int | None, bool]:
    """Start, end, and whether the times could be read; a finding states why there is no end."""
    if not row[layout.job].strip():
        findings.add("dropped", "rows without a JobID", where)
        return None, None, False
    begin = time_s(row[layout.start])
    if begin is None:
        never = is_nothing(row[layout.start])
        what = "jobs that never started" if never else "jobs with a Start that is no time"
        findings.add("dropped", what, where)
        return None, None, never
    elapsed = duration_s(row[layout.elapsed])
    if not is_nothing(row[layout.end]):
        end = time_s(row[layout.end])
        if end is None:
            words = f"{where}: {shorten(row[layout.end])}"
            findings.add("dropped", "jobs with an End that is no time", words)
            return None, None, False
    elif elapsed is not None:
        end = begin + elapsed
        if layout.end >= 0:
            what = "jobs without an End: they held what they hold for their Elapsed"
            findings.add("assumed", what, where)
    else:
        findings.add("dropped", "jobs without End and Elapsed", where)
        return begin, None, False
    if end < begin:
        what = "jobs that end before they start (the hour when clocks are put back?)"
        findings.add("dropped", what, where)
        return begin, None, False
    if end == begin:
        findings.add("dropped", "jobs that ran for 0 s", where)
        return begin, None, True
    if elapsed is not None and abs(end - begin - elapsed) > 1:
        what = (
            "jobs whose Elapsed is not End - Start (suspended, or clocks were changed?); End "
            "- Start is taken"
        )
        findings.add("warnings", what, f"{where}: {elapsed} s, not {end - begin} s")
    return begin, end, True


def release_of(
    layout: ColumnLayout, row: Sequence[str], begin: int, where: str, findings: ImportFindings
) -> int:
    """The release: Eligible, else Submit, else the start; never after the start."""
    known = [value for value in (time_s(row[at]) for at in layout.release) if value is not None]
    if not known:
        what = "jobs without Eligible and Submit are released at their start"
        findings.add("assumed", what, where)
        return begin
    if known[0] > begin:
        what = "jobs that start before they are eligible; they are released at their start"
        findings.add("warnings", what, where)
    return min(known[0], begin)
