"""Throughputs of training jobs on three GPU types, measured by the authors of Gavel.

The shipped file is an extract of their table, in which every value is as it stands there (MIT,
``origin`` and ``licence`` in the file): job types at 1, 2, 4 and 8 GPUs alone, and all pairs at one
GPU. The pairs of larger jobs are all zero in the source, so that larger jobs run alone.

The name of a job type states the model and, in most cases, the batch size. Those of A3C and
CycleGAN do not: 4 is the number of workers in the command of Gavel's A3C jobs, and CycleGAN trains
on one image at a time unless it is changed. ResNet-18 and ResNet-50 are one family.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np

from optbench.model.files.json_fields import read_text
from optbench.model.files.strict_json import parse_json
from optbench.shapes.colocation.colocation_data import JobType

from ._throughput_tables import ThroughputTables

SHIPPED = Path(__file__).with_name("_gavel_tables.json")
GPU_NAMES = ("v100", "p100", "k80")
BATCH = re.compile(r" \(batch size (\d+)\)$")
UNNAMED_BATCH = {"A3C": 4.0, "CycleGAN": 1.0}
FAMILIES = {"ResNet-18": "ResNet", "ResNet-50": "ResNet"}


@cache
def gavel_tables() -> ThroughputTables:
    """Return the shipped tables: 83 job types on V100, P100 and K80, in steps per second."""
    read = parse_json(read_text(SHIPPED))
    job_types = tuple(gavel_job_type(name, gpus) for name, gpus in read["job_types"])
    single = np.flatnonzero([each.gpus == 1 for each in job_types])
    alone = np.array([read["gpu_types"][name]["alone"] for name in GPU_NAMES])
    beside = np.zeros((*alone.shape, alone.shape[1]))
    for g, name in enumerate(GPU_NAMES):
        beside[g][np.ix_(single, single)] = read["gpu_types"][name]["beside"]
    alone.setflags(write=False)
    beside.setflags(write=False)
    return ThroughputTables(GPU_NAMES, job_types, alone, beside)


def gavel_job_type(name: str, gpus: int) -> JobType:
    """Return the features of a job type that Gavel's name states."""
    found = BATCH.search(name)
    model = BATCH.sub("", name)
    batch = float(found[1]) if found else UNNAMED_BATCH[model]
    return JobType(name, FAMILIES.get(model, model), batch, gpus)
