"""Each verb, for people and for machines."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from optbench.cli.main import VERBS
from optbench.model.files.schemas import schema
from tests.cli.conftest import COMMAND, Cli, environment


def test_solve_writes_a_schedule_that_verify_accepts(
    cli: Cli, shop_file: Path, tmp_path: Path
) -> None:
    solved = cli(
        "solve",
        shop_file,
        "-s",
        "cpsat",
        "--time-limit",
        "5s",
        "-o",
        "s.json",
        "--html",
        "page.html",
    )
    assert solved.code == 0
    assert "proven optimal" in solved.out and re.search(r"makespan +9 +9 +0 %", solved.out)
    assert "<svg" in (tmp_path / "page.html").read_text()
    verified = cli("verify", shop_file, "s.json")
    assert verified.code == 0 and verified.out.startswith("feasible  makespan = 9")


def test_solve_json_has_the_keys_of_the_design_and_fits_its_schema(
    cli: Cli, shop_file: Path
) -> None:
    done = cli("solve", shop_file, "--json", "-o", "s.json", "--seed", "3")
    assert done.code == 0
    document = done.json
    assert set(document) >= {
        "instance",
        "instance_hash",
        "problem",
        "solver",
        "seed",
        "threads",
        "status",
        "termination",
        "objective",
        "bound",
        "gap",
        "verified",
        "violations",
        "metrics",
        "bounds",
        "wall_s",
        "time_to_first_s",
        "peak_memory_mb",
        "trajectory",
        "schedule_file",
    }
    assert (document["objective"], document["bound"], document["gap"], document["status"]) == (
        9,
        9,
        0,
        "optimal",
    )
    assert (document["solver"], document["seed"], document["threads"]) == ("cpsat", 3, 1)
    assert document["metrics"]["makespan"] == 9
    assert document["schedule_file"] == "s.json"
    assert set(document["bounds"][0]) >= {"source", "value", "proof"}
    assert set(document["trajectory"][0]) >= {"t_s", "objective", "bound"}
    jsonschema.validate(document, schema("result"))


def test_solve_says_what_it_drew_itself(cli: Cli) -> None:
    words = ["solve", "jobshop:jobs=3,machines=3", "-s", "fcfs", "-q"]
    stated = {"OPTBENCH_CPU_WATTS": "20", "OPTBENCH_POWERCAP_ROOT": "/nowhere"}
    document = cli(*words, "--json", **stated).json
    jsonschema.validate(document, schema("result"))
    energy = document["energy"]
    assert energy["cpu_j"] == pytest.approx(20 * energy["cpu_s"], abs=1e-4) and energy["cpu_s"] > 0
    assert energy["energy_j"] == energy["cpu_j"] and energy["estimated"]
    assert energy["notes"] == ["estimated, processors: there is no folder /nowhere"]
    assert document["metrics"]["energy_j"] == 0  # that of the schedule: its machines draw nothing
    assert "s of processor time at 20 W)" in cli(*words, **stated).out
    refused = cli(*words, OPTBENCH_CPU_WATTS="much")
    assert refused.code == 2 and "OPTBENCH_CPU_WATTS is 'much'" in refused.err


def test_an_objective_in_order_shows_every_level(cli: Cli, tmp_path: Path) -> None:
    # One task, a fast mode (2 s, 20 J) and a frugal one (4 s, 12 J): in order of time, then energy,
    # 2 and then 20.
    script = (
        "import optbench as ob\nfrom optbench.model.files.instance_json import write_instance\n"
        "m = ob.Model('two levels')\np = m.pool('p')\n"
        "m.task(modes=[m.mode(p, time_s=2, energy_j=20), m.mode(p, time_s=4, energy_j=12)])\n"
        "m.minimize_in_order('makespan_s', 'energy_j')\nwrite_instance(m.build(), 'levels.json')\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=60)
    done = cli("solve", "levels.json", "--json")
    assert (
        done.code == 0
        and done.json["objective"] == [2, 20]
        and done.json["gap"] == pytest.approx([0, 0], abs=1e-8)
    )
    shown = cli("solve", "levels.json", "-q")
    assert re.search(r"makespan_s +2 +2 +0 %", shown.out) and re.search(
        r"energy_j +20 +20 +0 %", shown.out
    )


def test_verify_names_what_is_broken(cli: Cli, shop_file: Path, tmp_path: Path) -> None:
    cli("solve", shop_file, "-o", "s.json", "-q")
    document = json.loads((tmp_path / "s.json").read_text())
    document["segments"]["start"] = [
        0,
        0,
        0,
        0,
    ]  # both jobs at once on machine 0, both second steps before their first
    document["segments"]["end"] = [3, 2, 4, 2]
    (tmp_path / "bad.json").write_text(json.dumps(document))
    shown = cli("verify", shop_file, "bad.json")
    assert shown.code == 4
    assert "precedence" in shown.out and "capacity" in shown.out
    verdict = cli("verify", shop_file, "bad.json", "--json")
    assert verdict.code == 4
    assert verdict.json["feasible"] is False and verdict.json["objective"] is None
    assert {violation["constraint"] for violation in verdict.json["violations"]} == {
        "precedence",
        "capacity",
    }


def test_bound_gives_source_and_proof(cli: Cli, shop_file: Path) -> None:
    done = cli("bound", shop_file, "--json")
    assert done.code == 0
    # Machine 0 works 7 and 2 follow: heads and tails alone prove the optimum.
    assert done.json["best"] == 9
    assert max(bound["value"] for bound in done.json["bounds"]) == 9
    assert {bound["proof"] for bound in done.json["bounds"]} <= {
        "combinatorial",
        "exact-lp",
        "solver",
    }
    assert "combinatorial" in cli("bound", shop_file).out
    by_solver = cli("bound", shop_file, "--method", "cpsat", "--json")
    assert by_solver.json["best"] == 9


def test_convert_keeps_the_instance(cli: Cli, shop_file: Path, tmp_path: Path) -> None:
    there = cli("convert", shop_file, "shop.json", "--json")
    assert there.code == 0 and there.json["tasks"] == 4
    again = cli("convert", "shop.json", "back.json", "--json")
    assert again.json["instance_hash"] == there.json["instance_hash"]
    jsonschema.validate(json.loads((tmp_path / "back.json").read_text()), schema("instance"))
    printed = cli("convert", shop_file, "-")
    assert printed.json == json.loads((tmp_path / "shop.json").read_text())


def test_list_json_has_the_keys_of_the_design(cli: Cli) -> None:
    entries = cli("list", "--json").json
    names = {(entry["kind"], entry["name"]) for entry in entries}
    assert {("problem", "jobshop"), ("problem", "gpu_dag"), ("solver", "cpsat")} <= names
    for entry in entries:
        assert set(entry) >= {
            "name",
            "kind",
            "summary",
            "parameters",
            "available",
            "reason",
            "shadows",
        }
    assert {entry["kind"] for entry in cli("list", "solvers", "--json").json} == {"solver"}
    assert "supports:" in cli("list", "solvers", "-v").out
    reads = {entry["name"] for entry in entries if entry["clairvoyant"]}
    assert reads == {"oracle", "random_rules"} and "clairvoyant" in cli("list", "solvers").out


def test_list_profiles_flags_what_draws_more_than_its_board(cli: Cli, tmp_path: Path) -> None:
    shipped = {entry["name"]: entry for entry in cli("list", "profiles", "--json").json}
    assert shipped["A100-PCIe"]["aliases"] == ["A100"]
    assert all(entry["flags"] == [] and entry["sources"]["tdp_w"] for entry in shipped.values())
    # The L4 site of the public coefficients: 45 + 20 + 40 = 105 W in training on a board of 72 W.
    mine = {
        key: shipped["L4"][key]
        for key in ("idle_w", "sleep_w", "tdp_w", "memory_gb", "clocks", "sources")
    }
    law = {
        "alpha_t": 0.0065,
        "beta_t": 0.06,
        "gamma_t": 0.0022,
        "alpha_p": 45,
        "beta_p": 20,
        "gamma_p": 40,
    }
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(mine | {"name": "site", "laws": {"training": law}}))
    done = cli("list", "profiles", "L4", path)
    assert "flagged profile 'site': training draws 105 W at clock 1, the board has 72 W" in done.out
    assert "nameplate: NVIDIA L4 datasheet" in cli("list", "profiles", "L4", "-v").out
    assert [
        entry["name"] for entry in cli("list", "profiles", "--json", "L4", "-v", "T4").json
    ] == ["L4", "T4"]
    assert [flag["kind"] for flag in cli("list", "profiles", path, "--json").json[0]["flags"]] == [
        "training"
    ]
    warned = cli("convert", f"gpu_dag:tasks=2,gang=1,profiles={path.name}", "out.json")
    assert warned.err.startswith(
        "optbench: BoardPowerWarning: mine.json: profile 'site': training draws 105 W at clock 1"
    )
    assert "gpu_dag.py" not in warned.err
    refused = cli("list", "solvers", "L4")
    assert refused.code == 2
    assert "unexpected 'L4'; names go with `optbench list profiles`" in refused.err


def test_a_broken_plugin_is_listed_with_its_reason_and_a_shadowed_one_is_named(
    cli: Cli, tmp_path: Path
) -> None:
    assert cli("init").code == 0
    (tmp_path / "solvers" / "broken.py").write_text("import no_such_library\n")
    (tmp_path / "solvers" / "cpsat.py").write_text(
        (tmp_path / "solvers" / "list_rule.py").read_text()
    )
    entries = {entry["name"]: entry for entry in cli("list", "solvers", "--json").json}
    assert (
        entries["broken"]["available"] is False and "no_such_library" in entries["broken"]["reason"]
    )
    assert (
        entries["cpsat"]["shadows"].endswith("cpsat.py")
        and str(tmp_path) not in entries["cpsat"]["shadows"]
    )
    shown = cli("list").out
    assert "unavailable" in shown and "shadows" in shown


def test_init_and_new_make_what_list_and_solve_find(cli: Cli, tmp_path: Path) -> None:
    made = cli("init", "lab", "--json")
    assert made.code == 0 and (tmp_path / "lab" / "optbench.toml").is_file()
    lab = {"OPTBENCH_WORKSPACE": str(tmp_path / "lab")}
    assert cli("new", "solver", "my_rule", **lab).code == 0
    assert (tmp_path / "lab" / "solvers" / "my_rule.py").is_file()
    solved = cli("solve", "two_pools", "-s", "my_rule", "--time-limit", "1s", "--json", **lab)
    assert (
        solved.code == 0 and solved.json["verified"] is True and solved.json["solver"] == "my_rule"
    )
    twice = cli("new", "solver", "my_rule", **lab)
    assert twice.code == 2 and "already exists" in twice.err


def test_a_workspace_is_found_from_below(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    done = subprocess.run(
        [*COMMAND, "list", "--json"],
        cwd=below,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=True,
    )
    assert "list_rule" in {entry["name"] for entry in json.loads(done.stdout)}


def test_schema_prints_each_schema(cli: Cli) -> None:
    for kind in ("instance", "schedule", "result"):
        document = cli("schema", kind).json
        jsonschema.Draft202012Validator.check_schema(document)


def test_data_list_and_path(cli: Cli, data_dir: Path) -> None:
    variables = {"OPTBENCH_DATA": str(data_dir)}
    sets = {entry["name"]: entry for entry in cli("data", "list", "--json", **variables).json}
    assert sets["jobshop"]["here"] == sets["jobshop"]["num_files"] == 43
    path = cli("data", "path", "jobshop/ft06", **variables)
    assert path.out.strip() == str(data_dir / "jobshop" / "ft06.txt")
    assert "jobshop/ft06" in cli("data", "list", "jobshop", **variables).out
    # Known optimum of ft06: 55 (Fisher and Thompson).
    assert cli("solve", path.out.strip(), "--json", "--time-limit", "20s").json["objective"] == 55


def test_doctor_reports(cli: Cli) -> None:
    done = cli("doctor", "--json")
    assert done.code == (1 if done.json["problems"] else 0)
    assert {"python", "cores", "ortools"} <= {check["name"] for check in done.json["checks"]}


def test_warm_start_is_never_made_worse(cli: Cli, shop_file: Path) -> None:
    cli("solve", shop_file, "-o", "s.json", "-q")
    again = cli("solve", shop_file, "--warm-start", "s.json", "--json", "--time-limit", "1s")
    assert again.code == 0 and again.json["objective"] == 9


def test_same_seed_and_work_limit_same_schedule(cli: Cli, tmp_path: Path) -> None:
    texts = []
    for name in ("a.json", "b.json"):
        done = cli(
            "solve", "gpu_dag:tasks=8", "--seed", "5", "--work-limit", "0.3", "-o", name, "-q"
        )
        assert done.code == 0
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]


def test_every_verb_takes_json_and_shows_examples(cli: Cli) -> None:
    assert {
        "solve",
        "verify",
        "bound",
        "convert",
        "list",
        "data",
        "schema",
        "init",
        "new",
        "doctor",
    } <= set(VERBS)
    for name in VERBS:
        shown = cli(name, "--help")
        assert shown.code == 0 and "--json" in shown.out and "examples:" in shown.out


def test_the_instance_may_have_a_seed_of_its_own(cli: Cli) -> None:
    words = (
        "solve",
        "jobshop:jobs=3,machines=3",
        "-s",
        "random_rules",
        "--work-limit",
        "3",
        "--json",
    )
    one = cli(*words, "--seed", "7", "--instance-seed", "2").json
    same, other = cli(*words, "--seed", "2").json, cli(*words, "--seed", "7").json
    assert (one["seed"], one["instance_hash"]) == (7, same["instance_hash"])
    assert one["instance_hash"] != other["instance_hash"]


def test_the_bank_is_proved_again(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "optbench.toml").touch()
    assert cli("bound", "--recheck").code == 2
    assert "there is no bank" in cli("bound", "--recheck").err
    assert cli("bound").code == cli("bound", "two_pools", "--recheck").code == 2
    cli("solve", "jobshop:jobs=4,machines=3", "-s", "fcfs", "--bank", "-q")
    held = cli("bound", "--recheck", "--json").json
    assert held["entries"] and {entry["outcome"] for entry in held["entries"]} == {"holds"}
    with sqlite3.connect(tmp_path / ".optbench" / "bounds.sqlite") as db:
        db.execute("update bounds set value = 2 * value, source = 'mine'")
        db.execute(
            "insert into bounds select physics, objective, 'solver', value, source, null, code, "
            "'', '', seal from bounds"
        )
    said = cli("bound", "--recheck").out
    assert "changed" in said and "its certificate proves" in said
    assert "dropped" in said and "a solver's bound cannot be proved again" in said
    assert {entry["outcome"] for entry in cli("bound", "--recheck", "--json").json["entries"]} == {
        "holds"
    }
