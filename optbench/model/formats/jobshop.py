"""Job shops: the standard layout and Taillard's.

Standard: ``n m``, then per job one line of m pairs (machine, duration) in processing order, machines from 0.
Taillard: ``n m`` and up to four numbers that are not needed (seeds, bounds), a line per job with m durations, then a line
per job with m machines from 1; lines of text (``Times``, ``Machines``) may stand between. In both layouts every job
visits every machine exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence

from optbench.model.formats.classical import Shop
from optbench.model.formats.text import (
    MisfitError,
    Row,
    check_pools,
    content_lines,
    header_counts,
    number_rows,
    shorten,
    whole_number,
)


def parse_standard(text: str) -> Shop:
    rows = number_rows(text)
    line, header = rows[0]
    if len(header) != 2:
        raise MisfitError(line, f"{len(header)} numbers; the header has two: jobs, machines")
    num_jobs, num_machines = header_counts(rows[0], ("jobs", "machines"))
    check_pools(line, "machines", num_machines)
    check_length(rows, num_jobs, f"{num_jobs} jobs, one line each")
    jobs = []
    for line, numbers in rows[1:]:
        if len(numbers) != 2 * num_machines:
            raise MisfitError(line, f"{len(numbers)} numbers; {num_machines} pairs (machine, duration) are needed")
        check_machines(line, numbers[0::2], num_machines, first=0)
        jobs.append([[(machine, duration)] for machine, duration in zip(numbers[0::2], numbers[1::2], strict=True)])
    return Shop(num_machines, jobs)


def parse_taillard(text: str) -> Shop:
    rows = taillard_rows(text)
    num_jobs, num_machines = header_counts(rows[0], ("jobs", "machines"))
    check_pools(rows[0][0], "machines", num_machines)
    check_length(rows, 2 * num_jobs, f"{num_jobs} lines of durations and {num_jobs} of machines")
    for line, numbers in rows[1:]:
        if len(numbers) != num_machines:
            raise MisfitError(line, f"{len(numbers)} numbers; {num_machines} are needed, one per machine")
    jobs = []
    for (_, durations), (line, machines) in zip(rows[1 : num_jobs + 1], rows[num_jobs + 1 :], strict=True):
        check_machines(line, machines, num_machines, first=1)
        jobs.append([[(machine - 1, duration)] for machine, duration in zip(machines, durations, strict=True)])
    return Shop(num_machines, jobs)


def taillard_rows(text: str) -> list[Row]:
    """The lines of numbers; lines that begin with a letter are titles. Of the header, jobs and machines are kept."""
    lines = [(number, line.split()) for number, line in content_lines(text) if not line[0].isalpha()]
    if not lines:
        raise MisfitError(1, "no numbers, only text, comments or empty lines")
    line, header = lines[0]
    if not 2 <= len(header) <= 6:
        raise MisfitError(line, f"{len(header)} numbers; the header has two to six: jobs, machines, seeds, bounds")
    for token in header[2:]:
        if not (token.isascii() and token.isdigit()):
            raise MisfitError(line, f"{shorten(token)} is not a whole number")
    lines[0] = (line, header[:2])
    return [(number, [whole_number(number, token) for token in tokens]) for number, tokens in lines]


def check_length(rows: Sequence[Row], expected: int, what: str) -> None:
    """As many lines after the header as it promises."""
    found = len(rows) - 1
    if found < expected:
        raise MisfitError(rows[-1][0], f"the file ends after {found} of {expected} lines; the header promises {what}")
    if found > expected:
        raise MisfitError(rows[expected + 1][0], f"one line too many; the header promises {what}")


def check_machines(line: int, machines: Sequence[int], num_machines: int, first: int) -> None:
    """Every machine exactly once."""
    seen: set[int] = set()
    for machine in machines:
        if not first <= machine < first + num_machines:
            raise MisfitError(line, f"machine {machine}; machines are numbered {first} to {first + num_machines - 1}")
        if machine in seen:
            raise MisfitError(line, f"machine {machine} twice in one job; jobs that return fit the flexible job-shop layout")
        seen.add(machine)


def write_standard(shop: Shop) -> str:
    lines = [f"{len(shop.jobs)} {shop.num_machines}"]
    for job in shop.jobs:
        lines.append("  ".join(f"{machine} {duration}" for [(machine, duration)] in job))
    return "\n".join(lines) + "\n"


def write_taillard(shop: Shop) -> str:
    lines = [f"{len(shop.jobs)} {shop.num_machines}", "Times"]
    lines += [" ".join(str(duration) for [(_, duration)] in job) for job in shop.jobs]
    lines.append("Machines")
    lines += [" ".join(str(machine + 1) for [(machine, _)] in job) for job in shop.jobs]
    return "\n".join(lines) + "\n"
