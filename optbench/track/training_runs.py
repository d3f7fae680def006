"""Track a training in MLflow: parameters, curves step by step (rewards, latency, multipliers),
provenance, the file.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from optbench.track.runs import CELL, MAX_PARAM, PREFIX
from optbench.track.tracking import EXPERIMENT_TAGS, Tracking, as_tracking_errors
from optbench.track.tracking_address import prepare

# The number of metrics in one request of MLflow, and the characters in a name.
BATCH = 1000
NOT_IN_NAMES = re.compile(r"[^\w./ -]")


def track_training(solver: str, about: Mapping[str, Any], history: Sequence[Mapping[str, float]], file: Path) -> str:
    """Write one run to experiment ``optbench/train`` and return its id."""
    prepare()
    tracking = Tracking()
    with as_tracking_errors(tracking.place.uri):
        from mlflow.entities import Metric, Param, RunTag

        client = tracking.client
        found = client.get_experiment_by_name("optbench/train")
        if found is None:
            artifacts = tracking.place.artifacts
            location = None if artifacts is None else (artifacts / "optbench" / "train").as_uri()
            number = client.create_experiment("optbench/train", artifact_location=location, tags=EXPERIMENT_TAGS)
        else:
            number = found.experiment_id
        now = int(time.time() * 1000)
        tags = {f"{PREFIX}solver": solver, f"{PREFIX}kind": "training", CELL: f"train-{solver}-{file.name}-{now}"}
        run = client.create_run(number, run_name=f"{solver} {file.name}", tags=tags)
        settings = about.get("settings", {})
        client.log_batch(run.info.run_id, params=[Param(key, str(value)[:MAX_PARAM]) for key, value in settings.items()])
        points = [
            Metric(NOT_IN_NAMES.sub("_", name), float(value), now, step)
            for step, point in enumerate(history) for name, value in point.items() if math.isfinite(value)
        ]  # fmt: skip
        for first in range(0, len(points), BATCH):
            client.log_batch(run.info.run_id, metrics=points[first : first + BATCH])
        client.log_batch(run.info.run_id, tags=[RunTag("mlflow.note.content", json.dumps(dict(about), default=str)[:MAX_PARAM])])
        client.log_artifact(run.info.run_id, str(file))
        client.set_terminated(run.info.run_id)
        return str(run.info.run_id)
