"""Projects with renewable resources, one mode per activity: Patterson's .rcp and PSPLIB's .sm.

Patterson: ``A K``, the K capacities, then per activity its duration, K requirements, the number of
successors and the successors, activities from 1; line breaks carry no meaning. PSPLIB: titled
sections, of which ``PRECEDENCE RELATIONS``, ``REQUESTS/DURATIONS`` and ``RESOURCEAVAILABILITIES``
count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from optbench.formats.classical import Project
from optbench.formats.text import (
    MisfitError,
    Numbers,
    Row,
    check_pools,
    check_size,
    parse_whole_number,
    shorten,
)

# ``jobnr. mode duration  R 1  R 2``, ``R 1  R 2``, and the rule below.
TABLE_HEAD = re.compile(r"jobnr\b|[RND]\s*\d|---")
SECTIONS = ("PRECEDENCE RELATIONS", "REQUESTS/DURATIONS", "RESOURCEAVAILABILITIES")


def parse_patterson(text: str) -> Project:
    numbers = Numbers(text)
    line = numbers.line
    size = numbers.take("the number of activities", 1)
    num_resources = numbers.take("the number of resources", 1)
    check_pools(line, "resources", num_resources)
    capacities = numbers.take_row(num_resources, "the capacities")
    least = size * (num_resources + 2)
    if least > numbers.left:
        held = f"the file holds {numbers.left:,} more"
        raise MisfitError(line, f"{size} activities need at least {least:,} numbers, {held}")
    durations, requirements, edges = [], [], []
    for activity in range(size):
        who = f"activity {activity + 1}"
        durations.append(numbers.take(f"the duration of {who}"))
        line = numbers.line
        requirements.append(numbers.take_row(num_resources, f"the requirements of {who}"))
        count = numbers.take(f"the number of successors of {who}")
        successors = numbers.take_row(count, f"the successors of {who}")
        edges += edges_from(line, activity, successors, size)
        check_requirements(line, activity, requirements[-1], capacities)
    if numbers.left:
        left = f"{numbers.left:,} numbers are left over after {size} activities"
        raise MisfitError(numbers.line, left)
    return Project(capacities, durations, requirements, edges)


def edges_from(
    line: int, activity: int, successors: Sequence[int], size: int
) -> list[tuple[int, int]]:
    """Edges to the successors, which are numbered from 1."""
    who = f"activity {activity + 1}"
    for successor in successors:
        if not 1 <= successor <= size:
            numbered = f"activities are numbered 1 to {size}"
            raise MisfitError(line, f"successor {successor} of {who}; {numbered}")
        if successor == activity + 1:
            raise MisfitError(line, f"{who} is its own successor")
    if len(set(successors)) < len(successors):
        raise MisfitError(line, f"{who} names a successor twice")
    return [(activity, successor - 1) for successor in successors]


def check_requirements(
    line: int, activity: int, needs: Sequence[int], capacities: Sequence[int]
) -> None:
    for resource, (need, capacity) in enumerate(zip(needs, capacities, strict=True), start=1):
        if need > capacity:
            what = f"{need} of resource {resource}, which has {capacity}"
            raise MisfitError(line, f"activity {activity + 1} needs {what}")


def parse_psplib(text: str) -> Project:
    sections = section_rows(text)
    capacities = capacities_of(sections["RESOURCEAVAILABILITIES"], text)
    requests = activity_rows(sections["REQUESTS/DURATIONS"])
    size = len(requests)
    check_count(text, r"jobs[ \t]*\(incl\.[^)\n]*\)", "jobs", size)
    durations, requirements = [], []
    for activity, (line, numbers) in enumerate(requests):
        needed = f"activity, mode, duration and {len(capacities)} requests are needed"
        check_size(line, numbers, (3 + len(capacities),), needed)
        check_single(line, numbers[1])
        durations.append(numbers[2])
        requirements.append(numbers[3:])
        check_requirements(line, activity, numbers[3:], capacities)
    edges = []
    relations = activity_rows(sections["PRECEDENCE RELATIONS"])
    if len(relations) != size:
        counts = f"{len(relations)} activities have successors listed, {size} have durations"
        raise MisfitError(relations[-1][0], counts)
    for activity, (line, numbers) in enumerate(relations):
        needed = "activity, modes, the number of successors and these are needed"
        check_size(line, numbers, (3 + numbers[2],) if len(numbers) > 2 else (), needed)
        check_single(line, numbers[1])
        edges += edges_from(line, activity, numbers[3:], size)
    return Project(capacities, durations, requirements, edges)


def section_rows(text: str) -> dict[str, list[Row]]:
    """The lines of numbers under each of SECTIONS; table heads and rules are left out."""
    if not any(title in text for title in SECTIONS):
        raise MisfitError(1, f"none of the sections {', '.join(SECTIONS)}")
    out: dict[str, list[Row]] = {}
    rows: list[Row] | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        title = line.rstrip(":").strip()
        if title in SECTIONS:
            if title in out:
                raise MisfitError(number, f"section {title} stands twice")
            rows = out[title] = []
        elif line.startswith("***"):
            rows = None
        elif rows is not None and line and not TABLE_HEAD.match(line):
            rows.append((number, [parse_whole_number(number, token) for token in line.split()]))
    for title in SECTIONS:
        if not out.get(title):
            state = "empty" if title in out else "missing"
            raise MisfitError(len(text.splitlines()), f"section {title} is {state}")
    return out


def capacities_of(rows: Sequence[Row], text: str) -> list[int]:
    """The one row of capacities, all of them of renewable resources."""
    line, capacities = rows[0]
    if len(rows) > 1:
        raise MisfitError(rows[1][0], "a second row of capacities; one is allowed")
    check_pools(line, "resources", len(capacities))
    check_count(text, r"-[ \t]*renewable", "renewable resources", len(capacities))
    check_count(text, r"-[ \t]*nonrenewable", "nonrenewable resources", 0)
    check_count(text, r"-[ \t]*doubly constrained", "doubly constrained resources", 0)
    return capacities


def check_count(text: str, title: str, what: str, supported: int) -> None:
    """Check that a count in the head of the file, if given, agrees with the rest of the file."""
    match = re.search(rf"^[ \t]*{title}[ \t]*:[ \t]*(\S+)", text, re.MULTILINE)
    if match and match[1] != str(supported):
        line = text.count("\n", 0, match.start(1)) + 1
        allowed = f"{supported} are in the file" if supported else "none can be read"
        raise MisfitError(line, f"{shorten(match[1])} {what}; {allowed}")


def activity_rows(rows: Sequence[Row]) -> list[Row]:
    """Rows that number their activities 1, 2, 3, ..."""
    for expected, (line, numbers) in enumerate(rows, start=1):
        if numbers[0] != expected:
            order = f"where activity {expected} should stand; one mode each, in order"
            raise MisfitError(line, f"activity {numbers[0]} {order}")
    return list(rows)


def check_single(line: int, mode: int) -> None:
    if mode != 1:
        raise MisfitError(line, f"mode {mode}; one mode per activity is supported")


def write_patterson(project: Project) -> str:
    successors = successor_lists(project)
    lines = [f"{len(successors)} {len(project.capacities)}", " ".join(map(str, project.capacities))]
    for duration, needs, later in zip(
        project.durations, project.requirements, successors, strict=True
    ):
        lines.append(" ".join(map(str, [duration, *needs, len(later), *later])))
    return "\n".join(lines) + "\n"


def successor_lists(project: Project) -> list[list[int]]:
    """Successors of each activity, numbered from 1."""
    out: list[list[int]] = [[] for _ in project.durations]
    for before, after in project.edges:
        out[before].append(after + 1)
    return out


def write_psplib(project: Project) -> str:
    successors, num_resources = successor_lists(project), len(project.capacities)
    rule, heads = "*" * 72, "  ".join(f"R {r + 1}" for r in range(num_resources))
    lines = [rule, f"jobs (incl. supersource/sink ):  {len(successors)}", "RESOURCES"]
    lines += [f"  - renewable                 :  {num_resources}   R"]
    lines += [
        "  - nonrenewable              :  0   N",
        "  - doubly constrained        :  0   D",
        rule,
    ]
    lines += ["PRECEDENCE RELATIONS:", "jobnr.    #modes  #successors   successors"]
    lines += [
        " ".join(map(str, [i + 1, 1, len(later), *later])) for i, later in enumerate(successors)
    ]
    lines += [rule, "REQUESTS/DURATIONS:", f"jobnr. mode duration  {heads}", "-" * 72]
    for i, (duration, needs) in enumerate(
        zip(project.durations, project.requirements, strict=True), start=1
    ):
        lines.append(" ".join(map(str, [i, 1, duration, *needs])))
    lines += [rule, "RESOURCEAVAILABILITIES:", heads, " ".join(map(str, project.capacities)), rule]
    return "\n".join(lines) + "\n"
