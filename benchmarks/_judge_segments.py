"""Verdicts on preemptive schedules by the optbench on PYTHONPATH, old or new.

Reads lines of JSON [instance, segments] as ``preemptive_rule.py`` writes them; a segment's mode is
counted among those of its task. Prints lines of [makespan, energy in J, violations].
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import optbench as ob
from optbench.model.schedule import Schedule
from optbench.model.verify import verify


def main() -> None:
    for line in sys.stdin:
        spec, rows = json.loads(line)
        m = ob.Model(preemptive=True, horizon_s=spec["horizon"])
        about = enumerate(zip(spec["counts"], spec["idle"]))
        pools = [m.pool(f"p{i}", count=n, idle_w=w) for i, (n, w) in about]
        tasks: list[Any] = []
        for units, modes in spec["tasks"]:
            given = [m.mode({pools[p]: n}, time_s=t, energy_j=e) for p, n, t, e in modes]
            sends = {tasks[0]: spec["edge"][0]} if spec["edge"] and tasks else None
            tasks.append(m.task(units=units, modes=given, data_gb=sends))
        if spec["edge"]:
            _, latency_ms, j_per_gb = spec["edge"]
            m.link(pools[0], pools[1], latency_ms=latency_ms, energy_j_per_gb=j_per_gb)
        m.minimize(makespan_s=1.0)
        instance = m.build()
        columns: list[Any] = [np.array(row, dtype=np.int64) for row in list(zip(*rows))[:4]]
        columns[1] += instance.modes.kind_ptr[instance.tasks.kind[columns[0]]]
        if "units" in Schedule.__dataclass_fields__:  # the old format
            columns.append(np.array([row[4] for row in rows]))
        verdict = verify(instance, Schedule(*columns))
        wrong = [str(violation) for violation in verdict.violations]
        print(json.dumps([verdict.metrics["makespan_s"], verdict.metrics["energy_j"], wrong]))


if __name__ == "__main__":
    main()
