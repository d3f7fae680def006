"""Track a training in MLflow: parameters, curves step by step, provenance, the file."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from optbench.track.runs import PREFIX, TrackedRun
from optbench.track.tracking import Tracking

# What a training drew, by the names of its metrics.
METRICS = {"energy_j": "training_energy_j", "cpu_s": "training_cpu_s"}


def track_training(
    solver: str, about: Mapping[str, Any], history: Sequence[Mapping[str, float]], file: Path
) -> str:
    """Write one run to experiment ``optbench/train`` and return its id."""
    now, energy = int(time.time() * 1000), about.get("energy") or {}
    note = {"mlflow.note.content": json.dumps(dict(about), default=str)}
    run = TrackedRun(
        f"train-{solver}-{file.name}-{now}",
        f"{solver} {file.name}",
        tags={f"{PREFIX}solver": solver, f"{PREFIX}kind": "training"} | note | _how_known(energy),
        params={key: str(value) for key, value in about.get("settings", {}).items()},
        metrics={metric: energy[name] for name, metric in METRICS.items() if name in energy},
        curves=history,
        began_ms=now,
        ended_ms=now,
        artifacts=partial(shutil.copy, file),
    )
    return Tracking().sync("optbench/train", run, []).parent_run_id


def _how_known(energy: Mapping[str, Any]) -> dict[str, str]:
    if not energy:
        return {}
    how = "estimated" if energy["estimated"] else "measured"
    return {f"{PREFIX}run_energy": "partly unknown" if energy["unknown"] else how}
