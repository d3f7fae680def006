"""``optbench simulate`` from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

# What DESIGN.md promises of every family.
PROMISED = {
    "policy",
    "seed",
    "arrivals",
    "completed",
    "in_progress",
    "queue_end",
    "queue_end_by_site",
    "queue_by_day",
    "energy_j",
    "units_done",
    "j_per_unit",
    "j_per_unit_logged",
    "latency_s",
    "routing",
    "objective",
    "objective_name",
    "bound",
    "gap",
    "reference",
    "regret",
    "slo_violation",
    "wall_s",
    "peak_memory_mb",
    "decision_ms",
}


def test_a_policy_runs_and_is_verified(cli: Cli, shop_file: Path) -> None:
    """In the order in which they become ready: a task of each job, machine 0 first for job 0 or job
    1: 9 or 10.
    """
    done = cli("simulate", shop_file, "--policy", "fcfs", "--json")
    assert done.code == 0 and set(done.json) >= PROMISED
    assert done.json["completed"] == done.json["arrivals"] == 4 and done.json["objective"] in (
        9,
        10,
    )
    assert done.json["bound"] <= done.json["objective"] == done.json["metrics"]["makespan"]
    assert (
        done.json["objective_name"] == "makespan"
        and done.json["verified"]
        and done.json["end"] == "complete"
    )


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


# At us-west (16 GPUs): 9 jobs come within a second, 8 of them take 2 GPUs each for an hour and
# more; one goes to us-east.
RECORD = "job,ingress,arrival_s,size_units,site\n" + "".join(
    f"j{k},gw-us-west,{10 + 0.1 * k},50000,{'us-east' if k == 4 else 'us-west'}\n"
    for k in range(10)
)


def test_recorded_arrivals_on_recorded_routes(cli: Cli, tmp_path: Path) -> None:
    """The default policy gives the first job 8 free GPUs, the second the other 8, and the rest of
    us-west's have to wait.
    """
    (tmp_path / "record.csv").write_text(RECORD)
    words = (
        "simulate",
        "geo_dc",
        "--policy",
        "default_policy",
        "--arrivals",
        tmp_path / "record.csv",
        "--horizon",
        "100s",
    )
    done = cli(*words, "--json")
    assert done.code == 0 and set(done.json) >= PROMISED, done.err
    assert done.json["end"] == "horizon" and done.json["now_s"] == 100.0
    assert (
        done.json["arrivals"],
        done.json["completed"],
        done.json["in_progress"],
        done.json["queue_end"],
    ) == (10, 0, 3, 7)
    waiting = {site: count for site, count in done.json["queue_end_by_site"].items() if count}
    assert waiting == {"us-west": 7} and done.json["queue_by_day"] == []
    routing = done.json["routing"]["gw-us-west"]
    assert routing["us-west"] == 0.9 and routing["us-east"] == 0.1 and sum(routing.values()) == 1.0
    assert done.json["routing"]["gw-us-east"]["us-east"] == 0.0
    assert (
        done.json["objective_name"] == "j_per_unit"
        and done.json["objective"] == done.json["j_per_unit"]
    )
    assert done.json["bound"] <= done.json["objective"] and done.json["slo_violation"] == 0.0


def test_the_horizon_of_an_open_instance_moves(cli: Cli, tmp_path: Path) -> None:
    """From a file, which has a day of its own: two hours in, and three days, with two queues at the
    end of a day.
    """
    spec, file = "geo_dc:days=1,rate=0.001", tmp_path / "day.json"
    assert cli("convert", spec, file).code == 0
    short, long = (
        cli("simulate", file, "--policy", "joint_nf", "--horizon", end, "--json").json
        for end in ("2h", "3d")
    )
    assert (short["now_s"], long["now_s"]) == pytest.approx((7200.0, 3 * 86400.0), rel=1e-15)
    assert short["verified"] and long["verified"]
    assert short["arrivals"] < long["arrivals"] == long["completed"]
    assert len(long["queue_by_day"]) == 3 and long["queue_by_day"][1:] == [0, 0]
    refused = cli("simulate", file, "--policy", "joint_nf", "--horizon", "1s")
    assert refused.code == 2 and "horizon_s is 1; geo_dc" in refused.err


def test_a_drained_run_is_cut_by_a_horizon(cli: Cli) -> None:
    words = (
        "simulate",
        "geo_dc:days=0.1,rate=0.002,drain=yes",
        "--policy",
        "joint_nf",
        "--horizon",
    )
    cut, whole = (cli(*words, end, "--json").json for end in ("1h", "9d"))
    assert (
        cut["end"] == "horizon"
        and cut["now_s"] == pytest.approx(3600.0, rel=1e-15)
        and cut["objective"] is None
    )
    assert (
        cut["completed"] + cut["in_progress"] + cut["queue_end"]
        == cut["arrivals"]
        < whole["arrivals"]
    )
    assert (
        whole["end"] == "complete"
        and whole["completed"] == whole["arrivals"]
        and whole["objective"] > 0
    )


def test_recorded_arrivals_are_for_problems_that_take_them(cli: Cli) -> None:
    refused = cli("simulate", "gpu_dag", "--arrivals", "log.csv")
    assert refused.code == 2 and "problem 'gpu_dag' takes no recorded arrivals" in refused.err
    missing = cli("simulate", "geo_dc", "--policy", "joint_nf", "--arrivals", "no,such.csv")
    assert missing.code == 2 and "no,such.csv" in missing.err


def test_refusals(cli: Cli, shop_file: Path) -> None:
    for words, message in (
        (("--policy", "cpsat"), "'cpsat' is an offline solver and cannot decide online"),
        (("--policy", "fcsf"), "did you mean 'fcfs'?"),
        (("--arrivals", "log.csv"), "has its own tasks; give a problem such as geo_dc"),
        (("-p", "depth=3"), "unknown parameter"),
        (("--horizon", "-3s"), "'-3s' is not a positive duration"),
    ):
        done = cli("simulate", shop_file, *words)
        assert done.code == 2 and message in done.err, done.err


def test_a_policy_of_co_location_stands_beside_its_reference(cli: Cli) -> None:
    target = "colocation:load=0.9,jobs=10,gpus=6"
    told = cli("simulate", target, "--policy", "best_fit", "--seed", "1", "--json").json
    assert told["reference"] == "oracle" and isinstance(told["regret"], float)
    for name in ("energy_j", "slo_violation", "load"):
        assert told[name] == told["metrics"][name]
    assert len(told["bound"]) == len(told["gap"]) == 2 and told["prepare_s"] >= 0.0
