"""Job shops: the standard layout and Taillard's.

Standard: ``n m``, then per job one line of m pairs (machine, duration) in processing order,
machines from 0. Taillard: ``n m`` and up to four numbers that are not needed (seeds, bounds), a
line per job with m durations, then a line per job with m machines from 1; lines of text (``Times``,
``Machines``) may stand between. In both layouts every job visits every machine exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence

from optbench.formats.classical import Shop
from optbench.formats.text import (
    MisfitError,
    check_length,
    check_size,
    content_lines,
    header_and_lines,
    jobs_and_machines,
    number_row,
    shorten,
)


def parse_standard(text: str) -> Shop:
    line, header, lines = header_and_lines(content_lines(text))
    check_size(line, header, (2,), "the header has two: jobs, machines")
    num_jobs, num_machines = jobs_and_machines(line, header)
    check_length(lines, num_jobs, f"{num_jobs:,} jobs, one line each")
    jobs = []
    for line, content in lines:
        numbers = number_row(line, content)
        needed = f"{num_machines} pairs (machine, duration) are needed"
        check_size(line, numbers, (2 * num_machines,), needed)
        check_machines(line, numbers[0::2], num_machines, first=0)
        jobs.append([[pair] for pair in zip(numbers[0::2], numbers[1::2], strict=True)])
    return Shop(num_machines, jobs)


def parse_taillard(text: str) -> Shop:
    line, header, lines = header_and_lines(
        entry for entry in content_lines(text) if not entry[1][0].isalpha()
    )
    sizes = "the header has two to six: jobs, machines, seeds, bounds"
    check_size(line, header, range(2, 7), sizes)
    for token in header[2:]:  # Seeds may exceed the limit of durations.
        if not (token.isascii() and token.isdigit()):
            raise MisfitError(line, f"{shorten(token)} is not a whole number")
    num_jobs, num_machines = jobs_and_machines(line, header)
    promised = f"{num_jobs:,} lines of durations and {num_jobs:,} of machines"
    check_length(lines, 2 * num_jobs, promised)
    rows = [(number, number_row(number, content)) for number, content in lines]
    for line, numbers in rows:
        needed = f"{num_machines} are needed, one per machine"
        check_size(line, numbers, (num_machines,), needed)
    jobs = []
    for (_, durations), (line, machines) in zip(rows[:num_jobs], rows[num_jobs:], strict=True):
        check_machines(line, machines, num_machines, first=1)
        pairs = zip(machines, durations, strict=True)
        jobs.append([[(machine - 1, duration)] for machine, duration in pairs])
    return Shop(num_machines, jobs)


def check_machines(line: int, machines: Sequence[int], num_machines: int, first: int) -> None:
    """Check that a job visits every machine exactly once."""
    seen: set[int] = set()
    for machine in machines:
        if not first <= machine < first + num_machines:
            numbered = f"machines are numbered {first} to {first + num_machines - 1}"
            raise MisfitError(line, f"machine {machine}; {numbered}")
        if machine in seen:
            remedy = "jobs that return fit the flexible job-shop layout"
            raise MisfitError(line, f"machine {machine} twice in one job; {remedy}")
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
