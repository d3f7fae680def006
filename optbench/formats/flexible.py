"""Flexible job shops.

``n m [flexibility]``, then per job one line: the number of operations, and per operation the number
c of alternatives followed by c pairs (machine, duration), machines from 1. The third number of the
header is rounded information and is not used.
"""

from __future__ import annotations

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


def parse_flexible(text: str) -> Shop:
    line, header, lines = header_and_lines(content_lines(text))
    sizes = "the header has two or three: jobs, machines, flexibility"
    check_size(line, header, (2, 3), sizes)
    if len(header) == 3:
        check_remark(line, header[2])
    num_jobs, num_machines = jobs_and_machines(line, header)
    check_length(lines, num_jobs, f"{num_jobs:,} jobs, one line each")
    return Shop(
        num_machines,
        [parse_job(line, number_row(line, content), num_machines) for line, content in lines],
    )


def check_remark(line: int, token: str) -> None:
    """The unused flexibility must at least be a number."""
    if not token.replace(".", "", 1).isdigit() or not token.isascii():
        raise MisfitError(line, f"flexibility {shorten(token)} is not a number")


def parse_job(line: int, numbers: list[int], num_machines: int) -> list[list[tuple[int, int]]]:
    """Parse the operations of one line, which must not hold further numbers."""
    if numbers[0] < 1:
        raise MisfitError(line, "a job with 0 operations; at least 1 is needed")
    at, job = 1, []
    for op in range(numbers[0]):
        if at >= len(numbers):
            raise MisfitError(line, f"the line ends after {op} of {numbers[0]} operations")
        size = numbers[at]
        pairs = numbers[at + 1 : at + 1 + 2 * size]
        if size < 1 or len(pairs) < 2 * size:
            room = (len(numbers) - at - 1) // 2
            raise MisfitError(
                line,
                (
                    f"operation {op + 1} should have {size} alternatives; the line holds {room}, "
                    "at "
                    "least 1"
                ),
            )
        for machine in pairs[0::2]:
            if not 1 <= machine <= num_machines:
                raise MisfitError(
                    line,
                    (
                        f"machine {machine} in operation {op + 1}; machines are numbered 1 to "
                        f"{num_machines}"
                    ),
                )
        job.append(
            [
                (machine - 1, duration)
                for machine, duration in zip(pairs[0::2], pairs[1::2], strict=True)
            ]
        )
        at += 1 + 2 * size
    if at < len(numbers):
        raise MisfitError(
            line, f"{len(numbers) - at} numbers are left over after {numbers[0]} operations"
        )
    return job


def write_flexible(shop: Shop) -> str:
    num_ops = sum(len(job) for job in shop.jobs)
    average = sum(len(op) for job in shop.jobs for op in job) / max(1, num_ops)
    lines = [f"{len(shop.jobs)} {shop.num_machines} {average:.2f}"]
    for job in shop.jobs:
        ops = [
            "  ".join([str(len(op)), *(f"{machine + 1} {duration}" for machine, duration in op)])
            for op in job
        ]
        lines.append("   ".join([str(len(job)), *ops]))
    return "\n".join(lines) + "\n"
