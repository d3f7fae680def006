"""``optbench solve --explain``: tables, JSON and page."""

from __future__ import annotations

import math
from pathlib import Path

from tests.cli.conftest import Cli


def test_the_parts_in_json_sum_to_the_excess(cli: Cli) -> None:
    done = cli("solve", "gpu_dag:tasks=8", "--time-limit", "3s", "--explain", "--json")
    assert done.code == 0
    why = done.json["explain"]["objective"]
    assert why["value"] == done.json["objective"]
    assert math.fsum(why["parts"].values()) == why["excess"] == why["value"] - why["bound"]
    assert done.json["explain"]["energy"]["label"] == "energy_j"
    assert {row["resource"] for row in done.json["explain"]["marginal_values"]} >= {
        "devices of a100-pcie",
        "due dates",
    }


def test_tables_and_page(cli: Cli, tmp_path: Path) -> None:
    done = cli("solve", "gpu_dag:tasks=8", "--time-limit", "3s", "--explain", "--html", "p.html")
    assert "where the gap comes from" in done.out and "devices of l4" in done.out
    assert "explaining the gap" in done.err
    assert "Where the gap comes from" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_without_the_option_there_is_no_explanation(cli: Cli) -> None:
    assert "explain" not in cli("solve", "gpu_dag:tasks=5", "--time-limit", "3s", "--json").json


def test_explain_blames_and_says_why(cli: Cli) -> None:
    options = ("--explain", "--json", "--time-limit", "2s")
    done = cli("solve", "gpu_dag:tasks=30,gpus=6", "-s", "min_energy", *options)
    why = done.json["explain"]["blame"]
    assert why["verdict"] == "schedule" and why["searcher"] == "cpsat"
    assert why["sentences"][0].startswith("mostly the schedule is to blame")
