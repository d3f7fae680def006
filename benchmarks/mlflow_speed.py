"""1,000 runs of 20 metrics into MLflow on SQLite, without and with files; writes
docs/results/mlflow_speed.md.

    python benchmarks/mlflow_speed.py [--runs 1000] [-o docs/results/mlflow_speed.md]

Exit code 1 when 1,000 runs without files take more than 30 s. Beside it: the same runs again, and
with one metric changed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from optbench.track.runs import TrackedRun  # noqa: E402
from optbench.track.tracking import Tracking  # noqa: E402

COMMAND = "python benchmarks/mlflow_speed.py"
LIMIT_S, METRICS, PARAMS, TAGS = 30.0, 20, 6, 16
PAGE_BYTES, SCHEDULE_BYTES = 24_000, 3_000
PARENT = TrackedRun("speed-study", "speed", began_ms=1, ended_ms=2)


def runs(number: int, files: bool) -> list[TrackedRun]:
    """Runs as a study has them."""
    return [
        TrackedRun(
            f"speed-{k}",
            f"heft | shop | {k}",
            tags={f"optbench.tag_{j}": f"value {j} of {k}" for j in range(TAGS)},
            params={f"param_{j}": str(j) for j in range(PARAMS)},
            metrics={f"metric_{j}": k + j / 7 for j in range(METRICS)},
            began_ms=1000 + k,
            ended_ms=2000 + k,
            artifacts=write if files else None,
            files_version="1" if files else "",
        )
        for k in range(number)
    ]


def write(folder: Path) -> None:
    """A page, a schedule, a record."""
    (folder / "gantt.html").write_bytes(b"x" * PAGE_BYTES)
    (folder / "schedule.json").write_bytes(b"x" * SCHEDULE_BYTES)
    (folder / "record.json").write_bytes(b"x" * SCHEDULE_BYTES)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(number: int) -> list[tuple[str, float]]:
    """What was done and the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="optbench-speed-") as name:
        folder = Path(name)
        first = timed(lambda: Tracking(workspace=folder).client.search_experiments())
        return [
            ("import MLflow and make the database", first),
            *sending(folder, number, False),
            *sending(folder, number, True),
        ]


def sending(folder: Path, number: int, files: bool) -> list[tuple[str, float]]:
    experiment = f"optbench/speed-{files}"
    described = runs(number, files)
    changed = [replace(run, metrics={**run.metrics, "metric_0": -1.0}) for run in described]
    tracking, fresh = Tracking(workspace=folder), Tracking(workspace=folder)
    words = ", three files each" if files else ""
    out = [
        (
            f"{number:,} runs × {METRICS} metrics{words}",
            timed(lambda: tracking.sync(experiment, PARENT, described)),
        ),
        (
            "the same again, same process",
            timed(lambda: tracking.sync(experiment, PARENT, described)),
        ),
        (
            "the same again, as `optbench sync` does",
            timed(lambda: fresh.sync(experiment, PARENT, described)),
        ),
        ("one metric of each changed", timed(lambda: fresh.sync(experiment, PARENT, changed))),
    ]
    found = tracking.client.get_experiment_by_name(experiment)
    assert found is not None
    there = tracking.client.search_runs([found.experiment_id], max_results=number + 10)
    assert len(there) == number + 1 and all(run.info.status == "FINISHED" for run in there)
    return out


def page(measured: list[tuple[str, float]], number: int) -> str:
    rows = "\n".join(f"| {what} | {seconds:.1f} s |" for what, seconds in measured)
    reached = measured[1][1]
    verdict = "met" if reached <= LIMIT_S * number / 1000 else "not met"
    return f"""# MLflow, speed

{number:,} runs of {METRICS} metrics, {PARAMS} parameters and {TAGS + 4} tags each, by
`Tracking.sync` into an empty SQLite database: {reached:.1f} s ({1000 * reached / number:.0f} ms per
run). Asked for: 30 s for 1,000. {verdict.capitalize()}.

| what | time |
| --- | ---: |
{rows}

A run takes three requests: `create_run` with its tags, one `log_batch` with all metrics, parameters
and the content's hash, `set_terminated`. MLflow writes them in five transactions. Files are copied
before; drawing them is not part of this.

{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python
{platform.python_version()}, MLflow {version("mlflow")}, load {os.getloadavg()[0]:.1f} at the end.
`{COMMAND}`
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "docs" / "results" / "mlflow_speed.md"
    )
    args = parser.parse_args()
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    measured = measure(args.runs)
    text = page(measured, args.runs)
    args.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0 if measured[1][1] <= LIMIT_S * args.runs / 1000 else 1


if __name__ == "__main__":
    sys.exit(main())
