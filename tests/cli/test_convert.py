"""``optbench convert`` of records: the report, the schedule on record, and options that do
not fit.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.sample_files.sample_records import sacct_text, workflow_text


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "march.sacct"
    path.write_text(sacct_text())
    return path


def test_a_log_becomes_an_instance_and_a_feasible_schedule(cli: Cli, log: Path) -> None:
    done = cli(
        "convert", log, "march.json", "--profile", "a100=A100-PCIe", "--schedule", "recorded.json"
    )
    assert (
        done.code == 0
        and "8 tasks written to march.json" in done.out
        and "recorded schedule written" in done.out
    )
    assert "dropped: 1 x jobs that never started (line 8, job '101_[3-7]')" in done.err
    assert cli("verify", "march.json", "recorded.json").code == 0


def test_json_has_the_report(cli: Cli, log: Path, tmp_path: Path) -> None:
    done = cli("convert", log, "march.json", "--count", "a100=4", "--json")
    assert (
        done.json["schedule_file"] is None
        and done.json["report"]["format"] == "sacct"
        and done.err == ""
    )
    assert [row["what"] for row in done.json["report"]["dropped"]][
        -1
    ] == "runs that hold more devices than there are"
    (tmp_path / "run.json").write_text(workflow_text())
    done = cli("convert", "run.json", "out.json", "--schedule", "recorded.json", "--json")
    assert (
        done.json["schedule_file"] == "recorded.json" and done.json["report"]["read"]["tasks"] == 4
    )
    assert len(json.loads((tmp_path / "recorded.json").read_text())["segments"]["task"]) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("gpu_dag:tasks=4", "out.json", "--count", "gpu=3"),
            "need a file of recorded runs (sacct, wfformat); 'gpu_dag",
        ),
        (
            ("gpu_dag:tasks=4", "out.json", "--schedule", "s.json"),
            "gpu_dag:tasks=4 contains no recorded schedule",
        ),
        (
            ("march.sacct", "out.json", "--count", "gpu=0"),
            "--count gpu=0: '0' is not allowed; it takes a whole number from 1",
        ),
        (
            ("march.sacct", "out.json", "--profile", "a100=A1000"),
            "unknown profile 'A1000'; did you mean 'A100",
        ),
        (
            ("march.sacct", "out.json", "--profile", "a100"),
            "'a100' is not a parameter; write key=value",
        ),
        (("march.sacct", "out.json", "--to", "sacct"), "--to 'sacct' can be read but not written"),
        (("march.sacct", "-", "--schedule", "-", "--json"), "would mix; give a path"),
        (("march.sacct", "-", "--schedule", "-"), "--schedule '-' is OUT too; choose another path"),
        (("march.sacct", "march.sacct"), "OUT 'march.sacct' is IN too; choose another path"),
        (
            ("march.sacct", "out.json", "--schedule", "./out.json"),
            "--schedule './out.json' is OUT too",
        ),
        (
            ("march.sacct", "out.json", "--count", "gpu=3", "--count", "gpu=4"),
            "--count gpu is given twice: '3' and '4'",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(
    cli: Cli, log: Path, words: tuple[str, ...], message: str
) -> None:
    done = cli("convert", *words)
    assert done.code == 2 and message in done.err
    assert log.read_text() == sacct_text()


def test_a_problem_that_reads_a_record_reports_what_it_dropped(cli: Cli, tmp_path: Path) -> None:
    """``convert`` has the whole report; every other verb says in a line how much was dropped."""
    rows = "gw-us-west,0,3600,a\ngw-us-west,10,,b\n"
    (tmp_path / "mine.csv").write_text(f"ingress,arrival_s,size_units,job\n{rows}")
    done = cli("convert", "geo_dc:arrivals=mine.csv", "week.json")
    assert done.code == 0 and "1 tasks written to week.json" in done.out
    assert (
        "dropped: 1 x size_units is empty (line 3)" in done.err
        and "assumed: no column 'type': training" in done.err
    )
    done = cli("convert", "geo_dc:arrivals=mine.csv", "week.json", "--json")
    assert done.err == "" and done.json["report"]["dropped"][0]["what"] == "size_units is empty"
    done = cli("solve", "geo_dc:arrivals=mine.csv", "-s", "joint_nf", "--json")
    assert done.err.startswith("dropped 1 of 2 rows (CSV of arrivals): 1 size_units is empty")
    assert done.code == 0 and done.json["metrics"]["arrivals"] == 1
    assert (
        cli("solve", "week.json", "-s", "joint_nf", "--json").json["instance_hash"]
        == done.json["instance_hash"]
    )
    done = cli("simulate", "geo_dc", "--arrivals", "mine.csv", "--policy", "joint_nf", "--json")
    assert done.err.startswith("dropped 1 of 2 rows") and done.json["arrivals"] == 1
