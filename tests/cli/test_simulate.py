"""``optbench simulate`` from outside."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli

# What DESIGN.md promises of every family.
PROMISED = {
    "policy", "seed", "arrivals", "completed", "in_progress", "queue_end", "queue_end_by_site", "queue_by_day", "energy_j",
    "units_done", "j_per_unit", "j_per_unit_logged", "latency_s", "routing", "objective", "objective_name", "bound", "gap",
    "reference", "regret", "slo_violation", "wall_s", "peak_memory_mb", "decision_ms",
}  # fmt: skip


def test_a_policy_runs_and_is_verified(cli: Cli, shop_file: Path) -> None:
    """In the order in which they become ready: a task of each job, machine 0 first for job 0 or job 1: 9 or 10."""
    done = cli("simulate", shop_file, "--policy", "fcfs", "--json")
    assert done.code == 0 and set(done.json) >= PROMISED
    assert done.json["completed"] == done.json["arrivals"] == 4 and done.json["objective"] in (9, 10)
    assert done.json["bound"] <= done.json["objective"] == done.json["metrics"]["makespan"]
    assert done.json["objective_name"] == "makespan" and done.json["verified"] and done.json["end"] == "complete"


def test_the_synonym_and_the_table(cli: Cli, shop_file: Path) -> None:
    done = cli("simulate", shop_file, "-s", "fcfs")
    assert done.code == 0 and "everything done at" in done.out and "sojourn p95" in done.out


def test_a_horizon_cuts_the_run(cli: Cli, shop_file: Path) -> None:
    done = cli("simulate", shop_file, "--horizon", "5s", "--json")
    assert done.code == 0 and done.json["end"] == "horizon" and done.json["now_s"] == 5.0
    assert done.json["completed"] + done.json["in_progress"] + done.json["queue_end"] == 4
    assert done.json["objective"] is None and done.json["gap"] is None


def test_the_same_seed_is_the_same_run(cli: Cli) -> None:
    one, two = (cli("simulate", "gpu_dag:tasks=15", "--seed", "4", "--json").json for _ in range(2))
    differ = {key for key in one if one[key] != two[key]}
    assert differ <= {"wall_s", "peak_memory_mb"} and one["instance"] == "gpu_dag-15x6-4"


def test_a_schedule_that_breaks_a_limit_is_said(cli: Cli) -> None:
    """Hard and tight deadlines, which first come first served knows nothing of."""
    done = cli("simulate", "gpu_dag:tasks=20,deadlines=tight,hard=yes", "--json")
    assert done.code == 4 and done.json["objective"] is None
    assert any(violation.startswith("deadline") for violation in done.json["violations"])


def test_refusals(cli: Cli, shop_file: Path) -> None:
    for words, message in (
        (("--policy", "cpsat"), "'cpsat' solves offline and cannot decide as time goes on"),
        (("--policy", "fcsf"), "did you mean 'fcfs'?"),
        (("--arrivals", "log.csv"), "--arrivals 'log.csv': no problem takes recorded arrivals"),
        (("-p", "depth=3"), "unknown parameter"),
        (("--horizon", "-3s"), "'-3s' is no time to work in"),
    ):
        done = cli("simulate", shop_file, *words)
        assert done.code == 2 and message in done.err, done.err
