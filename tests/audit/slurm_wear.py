"""Realistic defects of Slurm logs: rows without GPU type or End, and truncation at both ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from optbench.formats.sacct_fields import time_s
from tests.audit.slurm import HEADER, ORIGIN

TYPE = re.compile(r"gres/gpu:[a-z0-9]+=\d+,")
# Columns of the generated log.
ELIGIBLE, START, END, ELAPSED, STATE, TRES, NODES = range(2, 9)


def without_types(text: str, share: float, seed: int = 0, nodes: str = "") -> str:
    """``share`` of the jobs on nodes whose list begins with ``nodes`` do not say which type of GPU
    they held.
    """
    rng = np.random.default_rng(seed)

    def bare(row: list[str]) -> list[str]:
        if row[NODES].startswith(nodes) and rng.random() < share:
            row[TRES] = TYPE.sub("", row[TRES])
        return row

    return HEADER + "".join(line_of(bare(row)) for row in rows_of(text))


def as_printed(text: str, since_s: int, until_s: int, now_s: int) -> str:
    """What ``sacct -S since -E until`` lists at the time ``now``, in seconds after ORIGIN: jobs
    that ended after ``since`` and were eligible before ``until``; those that still run have an
    Elapsed and no End.
    """
    zero = int(ORIGIN.astype(np.int64))
    out = [HEADER]
    for row in rows_of(text):
        eligible, start, end = (time_s(row[at]) or 0 for at in (ELIGIBLE, START, END))
        if end - zero < since_s or eligible - zero >= min(until_s, now_s):
            continue
        if start - zero >= now_s:
            row[START], row[END], row[STATE], row[TRES], row[NODES] = (
                "Unknown",
                "Unknown",
                "PENDING",
                "",
                "None assigned",
            )
        elif end - zero > now_s:
            row[END], row[STATE], row[ELAPSED] = "Unknown", "RUNNING", str(now_s + zero - start)
        out.append(line_of(row))
    return "".join(out)


def rows_of(text: str) -> Iterator[list[str]]:
    return (line.split("|") for line in text.splitlines()[1:])


def line_of(row: list[str]) -> str:
    return "|".join(row) + "\n"
