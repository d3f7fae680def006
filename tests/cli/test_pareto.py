"""``optbench pareto``: table, files, refusals, and Ctrl-C."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Cli, environment

SMALL = "gpu_dag:tasks=4,transfers=false,deadlines=none"
PATIENCE_S = 90.0


def test_a_table_for_people_and_files_for_machines(cli: Cli, tmp_path: Path) -> None:
    files = ("-o", "front.json", "--html", "front.html", "--csv", "front.csv")
    done = cli("pareto", SMALL, "--points", "3", "--time-limit", "5s", *files)
    assert done.code == 0
    assert (
        done.out.count("proven") >= 3
        and "horizon in which every task can have its cheapest mode" in done.out
    )
    assert "point 3 of 3 under" in done.err
    front = json.loads((tmp_path / "front.json").read_text())
    rows = list(csv.DictReader((tmp_path / "front.csv").open()))
    assert [float(row["y"]) for row in rows] == [point["y"] for point in front["points"]]
    assert front["proven"] == len(rows) == 3 and front["horizon_s"] == front["points"][-1]["x"]
    assert (tmp_path / "front.html").read_text().startswith("<!doctype html>")


def test_json_on_stdout_with_other_metrics(cli: Cli) -> None:
    words = (
        "--x",
        "energy_j",
        "--y",
        "flow_time_s",
        "--points",
        "2",
        "--time-limit",
        "5s",
        "--horizon",
        "20m",
        "--json",
    )
    done = cli("pareto", SMALL, *words)
    assert done.code == 0 and done.err == ""
    asked = {"x": "energy_j", "y": "flow_time_s", "horizon_s": 1200, "horizon_from": "given"}
    assert {key: done.json[key] for key in asked} == asked
    low, high = done.json["points"]
    assert low["x"] < high["x"] and low["y"] > high["y"]


@pytest.mark.parametrize(
    ("words", "culprit"),
    [
        (("--x", "makspan_s"), "did you mean 'makespan_s'"),
        (("--points", "1"), "at least 2"),
        (("--horizon", "soon"), "'soon'"),
        (("-o", "nowhere/front.json"), "nowhere"),
        (("--json", "--csv", "-"), "would mix"),
        (("-s", "cpsta"), "cpsta"),
    ],
)
def test_refusals(cli: Cli, words: tuple[str, ...], culprit: str) -> None:
    done = cli("pareto", SMALL, *words)
    assert done.code == 2 and culprit in done.err


def test_no_schedule_no_front(cli: Cli) -> None:
    done = cli("pareto", SMALL, "--horizon", "3s", "--points", "2")
    assert done.code == 3 and "proven infeasible" in done.out


def test_ctrl_c_keeps_the_points(tmp_path: Path) -> None:
    command = [*COMMAND, "pareto", "gpu_dag:tasks=20", "--time-limit", "1s", "-o", "front.json"]
    errors = tmp_path / "stderr"
    with errors.open("w") as err:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=err, text=True, cwd=tmp_path, env=environment()
        )
        give_up = time.monotonic() + PATIENCE_S
        while "point 2 of 10" not in errors.read_text() and time.monotonic() < give_up:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in errors.read_text() and "energy_j" in out
    front = json.loads((tmp_path / "front.json").read_text())
    assert front["termination"] == "interrupted" and 1 <= len(front["points"]) < 10
