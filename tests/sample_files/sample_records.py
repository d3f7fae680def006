"""Small records of what ran, made by hand: a Slurm log with most of what Slurm can print, and a
WfFormat workflow.
"""

from __future__ import annotations

import json
from typing import Any

COLUMNS = [
    "JobID",
    "Eligible",
    "Start",
    "End",
    "Elapsed",
    "State",
    "AllocTRES",
    "NodeList",
    "ConsumedEnergyRaw",
]
# Cells with blanks, and empty ones.
MEANING = {"-": "", "cancelled": "CANCELLED by 1000", "unassigned": "None assigned"}

# Two nodes of four A100s and one with an untyped GPU: consistent, so that the schedule on record is
# feasible.
RUNS = """
100 2024-02-28T23:00:00 2024-02-28T23:00:10 2024-02-29T00:30:10 01:30:00 \
COMPLETED cpu=16,gres/gpu:a100=4 gpu01 6480000
100.batch 2024-02-28T23:00:10 2024-02-28T23:00:10 2024-02-29T00:30:10 01:30:00 \
COMPLETED cpu=16 gpu01 6480000
100.extern 2024-02-28T23:00:10 2024-02-28T23:00:10 2024-02-29T00:30:10 01:30:00 \
COMPLETED cpu=16 gpu01 0
100.0 2024-02-28T23:00:20 2024-02-28T23:00:20 2024-02-29T00:30:10 01:29:50 \
COMPLETED cpu=16,gres/gpu:a100=4 gpu01 6470000
101_1 2024-02-28T23:10:05 2024-02-28T23:10:05 2024-02-28T23:40:05 00:30:00 \
FAILED gres/gpu:a100=1,gres/gpu=1 gpu02 -
101_2 2024-02-28T23:10:05 2024-02-28T23:10:05 2024-02-28T23:55:05 00:45:00 \
COMPLETED gres/gpu:a100=1,gres/gpu=1 gpu02 -
101_[3-7] Unknown Unknown Unknown 00:00:00 PENDING - unassigned -
102 2024-02-28T23:20:00 2024-02-29T00:30:10 2024-03-01T02:33:14 1-02:03:04 \
TIMEOUT cpu=64,gres/gpu:a100=8,gres/gpu=8 gpu[01-02] -
103 2024-02-28T23:30:00 2024-02-28T23:31:00 2024-02-28T23:32:30 00:01:30 \
REQUEUED cpu=1,gres/gpu=1 old-7 -
103 2024-02-28T23:34:00 2024-02-28T23:35:00 2024-02-28T23:50:00 00:15:00 \
cancelled cpu=1,gres/gpu=1 old-7 -
104+0 2024-02-28T23:40:00 2024-02-28T23:52:00 2024-02-29T00:02:00 00:10:00 \
COMPLETED cpu=2,gres/gpu=1 old-7 -
104+1 2024-02-28T23:40:00 2024-02-28T23:52:00 2024-02-29T00:02:00 00:10:00 COMPLETED cpu=8 cpu5 -
105 2024-03-01T08:00:00 2024-03-01T08:00:10 Unknown 05:00:00 \
RUNNING gres/gpu:a100=1,gres/gpu=1 gpu02 -
"""


def sacct_text(delimiter: str = "|") -> str:
    """The log; with commas, fields that hold commas are quoted."""
    rows = [COLUMNS, *(line.split() for line in RUNS.strip().splitlines())]
    cells = [[MEANING.get(cell, cell) for cell in row] for row in rows]
    if delimiter == "|":
        return "".join("|".join(row) + "\n" for row in cells)
    return "".join(
        delimiter.join(f'"{cell}"' if delimiter in cell else cell for cell in row) + "\n"
        for row in cells
    )


# The workflow: which tasks come before, the sizes of files, what is read and written, and (seconds,
# start, cores, machine) of each run.
PARENTS: dict[str, list[str]] = {
    "split": [],
    "left": ["split"],
    "right": ["split"],
    "merge": ["left", "right"],
}
FILES = {
    "in.txt": 4_000_000,
    "a.bin": 1_500_000_000,
    "b.bin": 500_000_000,
    "c.txt": 2_000,
    "d.txt": 3_000,
    "out.txt": 100,
}
READS = {
    "split": ["in.txt"],
    "left": ["a.bin"],
    "right": ["b.bin", "in.txt"],
    "merge": ["c.txt", "d.txt"],
}
WRITES = {
    "split": ["a.bin", "b.bin"],
    "left": ["c.txt"],
    "right": ["d.txt"],
    "merge": ["out.txt"],
}
TASK_RUNS = {
    "split": (10.5, "00:00", 1, "n1"),
    "left": (60, "00:12", 4, "n1"),
    "right": (90.25, "00:12", 2.5, "n2"),
    "merge": (5, "01:50", 1, "n2"),
}


def workflow() -> dict[str, Any]:
    """Split, two analyses side by side, merge: on two machines of different clock rate, with
    energy.
    """
    return {
        "name": "by hand",
        "schemaVersion": "1.6",
        "workflow": {
            "specification": {
                "tasks": [
                    {
                        "name": name,
                        "id": f"{name}_1",
                        "parents": [f"{parent}_1" for parent in parents],
                        "children": [
                            f"{other}_1" for other, before in PARENTS.items() if name in before
                        ],
                        "inputFiles": list(READS[name]),
                        "outputFiles": list(WRITES[name]),
                    }
                    for name, parents in PARENTS.items()
                ],
                "files": [{"id": name, "sizeInBytes": size} for name, size in FILES.items()],
            },
            "execution": {
                "makespanInSeconds": 115.0,
                "executedAt": "2026-01-01T00:00:00Z",
                "tasks": [
                    {
                        "id": f"{name}_1",
                        "runtimeInSeconds": runtime,
                        "executedAt": f"2026-01-01T00:{start}+00:00",
                        "coreCount": cores,
                        "avgPowerInW": 12.5 * cores,
                        "machines": [machine],
                    }
                    for name, (runtime, start, cores, machine) in TASK_RUNS.items()
                ],
                "machines": [
                    {"nodeName": "n1", "cpu": {"coreCount": 8, "speedInMHz": 3000}},
                    {"nodeName": "n2", "cpu": {"coreCount": 4, "speedInMHz": 2000}},
                ],
            },
        },
    }


def workflow_text() -> str:
    return json.dumps(workflow(), indent=1)
