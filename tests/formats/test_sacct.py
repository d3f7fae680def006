"""Slurm logs: the runs, the modes they get and what the report says of the rest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from optbench.errors import FileFormatError, ParameterError, UnknownNameError
from optbench.formats import sacct
from optbench.formats.format_registry import load_import, parse_import
from optbench.formats.imported import Import, ImportOptions
from optbench.model.files.json_fields import MAX_LOG_BYTES, MAX_TEXT_BYTES, byte_limit
from optbench.model.verify import verify
from optbench.power.profiles import profile
from tests.formats.sacct_logs import A100, HEADER, found, log
from tests.sample_files.sample_records import sacct_text

# AllocTRES has a comma, and no quotes.
COMMAS = "JobID,Start,End,AllocTRES\n1,1709164800,1709164860,cpu=1,gres/gpu=1\n"


def test_the_log_by_hand() -> None:
    """Eight runs are left of ten rows of jobs and three of steps; job 102 passes the 29th of
    February, job 105 still runs.
    """
    result = sacct.read(sacct_text(), "log", A100)
    instance, schedule = result.instance, result.schedule
    assert instance.tasks.names == ("100", "101_1", "101_2", "102", "103", "103#2", "104+0", "105")
    assert instance.tasks.units.tolist() == [5400, 1800, 2700, 93784, 90, 900, 600, 18000]
    assert instance.modes.kind_names == ("1 a100/0", "4 a100/1", "8 a100/2", "1 gpu/3")
    assert instance.pools.names == ("a100", "gpu") and instance.pools.count.tolist() == [8, 1]
    assert schedule is not None and verify(instance, schedule).feasible
    assert (instance.tasks.release * instance.tick_s).tolist() == [
        0,
        605,
        605,
        1200,
        1800,
        2040,
        2400,
        118800,
    ]
    assert (schedule.start * instance.tick_s).tolist() == [
        10,
        605,
        605,
        5410,
        1860,
        2100,
        3120,
        118810,
    ]
    report = result.report
    assert report.read["steps"] == 3 and report.read["tasks"] == 8
    assert found(report, "dropped", "never started") == (1, ("line 8, job '101_[3-7]'",))
    assert found(report, "assumed", "without an End")[1] == ("line 14, job '105'",)
    assert found(report, "dropped", "hold no GPU")[1] == ("line 13, job '104+1'",)
    assert found(report, "warnings", "requeued")[1] == ("line 11, job '103'",)
    assert found(report, "warnings", "heterogeneous") == (1, ("line 12, job '104+0'",))
    assert found(report, "assumed", "type 'gpu' draws no power")[0] == 1
    assert found(report, "assumed", "8 devices of type 'a100'")[0] == 1
    # 4 GPUs for 5,400 s on record against 4 P(1) of the profile.
    assert report.read["recorded_energy_j"] == 6_480_000
    assert report.read["modelled_energy_j"] == pytest.approx(4 * 254.99 * 5400)


def test_the_law_gives_the_other_clocks() -> None:
    instance = sacct.read(sacct_text(), "log", A100).instance
    law, modes = profile("A100-PCIe"), instance.modes
    kind = modes.kind_names.index("4 a100/1")
    rows = np.arange(modes.kind_ptr[kind], modes.kind_ptr[kind + 1])
    assert modes.clock[rows].tolist() == list(law.clocks) and modes.time_per_unit_s[rows[-1]] == 1.0
    for row in rows.tolist():
        ratio = law.time_per_unit_s("training", 4, modes.clock[row]) / law.time_per_unit_s(
            "training", 4, 1.0
        )
        assert modes.time_per_unit_s[row] == pytest.approx(ratio, rel=1e-12)
        assert modes.power_w[row] == pytest.approx(
            law.power_w("training", 4, modes.clock[row]), rel=1e-12
        )
        assert modes.energy_per_unit_j[row] == pytest.approx(modes.power_w[row] * ratio, rel=1e-12)
    assert instance.pools.idle_w.tolist() == [45.0, 0.0]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_say_the_same(delimiter: str) -> None:
    assert (
        parse_import(sacct_text(delimiter), "log").instance.hash
        == parse_import(sacct_text(), "log").instance.hash
    )


def test_parsable_with_a_delimiter_at_the_end_and_windows_lines() -> None:
    text = sacct_text().replace("\n", "|\r\n")
    assert (
        parse_import(text, "log").instance.hash == parse_import(sacct_text(), "log").instance.hash
    )


def test_a_type_that_is_the_name_of_a_profile_needs_no_option() -> None:
    result = sacct.read(log("1 0 0 60 2 n1").replace("gres/gpu=", "gres/gpu:t4="), "log")
    assert result.instance.modes.power_w.max() > 0
    assert found(result.report, "assumed", "type 't4' is profile T4, by its name")[0] == 1
    assert result.instance.objective.label == "energy_j + 50 flow_time_s"


def test_a_type_with_several_variants_is_left_to_the_user() -> None:
    result = sacct.read(sacct_text(), "log")
    assert not result.instance.modes.power_w.any()
    advice = r"give a profile for it (a100=A100-PCIe or A100-SXM)"
    assert found(result.report, "assumed", advice)[0] == 1
    assert found(result.report, "assumed", "give a profile for it (gpu=NAME)")[0] == 1


def test_odd_rows_are_counted_with_their_lines() -> None:
    text = log(
        "1 0 0 100 2 n1",
        "2 0 50 50 1 n1",
        "3 0 50 40 1 n1",
        "4 90 50 60 1 n[1",
        "1 0 0 100 2 n1",
        "5 0 100 110 3 n[1-2]",
    )
    result = sacct.read(text + "6|a|b\n" + HEADER + "6.0|||||\n|x|x|x|x|x\n7|x|x|x|x|x\n", "log")
    report = result.report
    assert result.instance.tasks.names == ("1", "4", "5")
    assert found(report, "dropped", "ran for 0 s")[1] == ("line 3, job '2'",)
    assert found(report, "dropped", "end before they start")[1] == ("line 4, job '3'",)
    assert found(report, "dropped", "stand twice")[1] == ("line 6, job '1'",)
    assert found(report, "dropped", "another number of fields")[1] == ("line 8",)
    assert found(report, "dropped", "further headers")[1] == ("line 9",)
    assert found(report, "dropped", "without a JobID")[1] == ("line 11, job ''",)
    assert found(report, "dropped", "a Start that is no time")[1] == ("line 12, job '7'",)
    assert found(report, "warnings", "start before they are eligible")[1] == ("line 5, job '4'",)
    assert found(report, "warnings", "node lists that cannot be read")[1] == (
        "line 5, job '4': 'n[1'",
    )
    assert found(report, "assumed", "do not divide")[0] == 1
    assert result.instance.tasks.release.min() == 0 and (result.instance.tasks.release >= 0).all()


def test_suspended_runs_keep_their_devices() -> None:
    text = (
        "JobID|Start|End|Elapsed|AllocTRES\n"
        "1|2024-03-01T00:00:00|2024-03-01T00:10:00|00:04:00|gres/gpu=1\n"
    )
    result = sacct.read(text, "log")
    assert result.instance.tasks.units.tolist() == [600]
    assert found(result.report, "warnings", "Elapsed")[1] == ("line 2, job '1': 240 s, not 600 s",)
    assert found(result.report, "assumed", "without Eligible and Submit")[0] == 1


def test_elapsed_stands_in_for_end() -> None:
    text = "JobID|Start|Elapsed|AllocGRES\n1|2024-03-01T00:00:00|1-00:00:10|gpu:k80:2\n"
    result = sacct.read(text, "log")
    assert result.instance.tasks.units.tolist() == [86410] and result.instance.pools.names == (
        "k80",
    )


def test_elapsed_stands_in_for_an_end_that_is_not_there() -> None:
    """A row without an End, of a run that still runs or that Slurm has lost, held its GPUs for its
    Elapsed.
    """
    head = "JobID|Start|End|Elapsed|AllocTRES|NodeList\n"
    start = "2024-03-01T00:00:00"
    rows = (
        "Unknown|00:10:00|gres/gpu:k80=2|n1",
        "|60|gres/gpu:k80=1|n2",
        "Unknown||gres/gpu:k80=1|n3",
    )
    result = sacct.read(
        head + "".join(f"{job}|{start}|{row}\n" for job, row in enumerate(rows, 1)), "log"
    )
    assert result.instance.tasks.units.tolist() == [600, 60]
    assert found(result.report, "assumed", "without an End") == (
        2,
        ("line 2, job '1'", "line 3, job '2'"),
    )
    assert found(result.report, "dropped", "without End and Elapsed") == (1, ("line 4, job '3'",))


def test_a_log_without_gpus_is_one_of_cores() -> None:
    text = (
        "JobID|Start|End|AllocTRES|AllocCPUS\n"
        "1|1709164800|1709164860|cpu=12,mem=4G|12\n"
        "2|1709164800|1709164860||4\n"
    )
    result = sacct.read(text, "log")
    assert result.instance.pools.names == ("cpu",) and result.instance.pools.count.tolist() == [16]
    assert found(result.report, "assumed", "the devices are cores")[0] == 1
    assert result.instance.objective.label == "flow_time_s"


def test_a_run_on_two_types_needs_both() -> None:
    """The gang runs at the slowest of its types' ratios, and draws the sum of their powers."""
    text = log("1 0 0 60 9 n1").replace("gres/gpu=9", "gres/gpu:a100=2,gres/gpu:l4=1")
    modes = sacct.read(
        text, "log", ImportOptions(profiles={"a100": "A100-PCIe", "l4": "L4"})
    ).instance.modes
    fast, slow = profile("A100-PCIe"), profile("L4")
    ratio = max(
        fast.time_per_unit_s("training", 2, 0.5) / fast.time_per_unit_s("training", 2, 1.0),
        slow.time_per_unit_s("training", 1, 0.5) / slow.time_per_unit_s("training", 1, 1.0),
    )
    row = int(np.flatnonzero(modes.clock == 0.5)[0])
    assert modes.time_per_unit_s[row] == pytest.approx(ratio)
    assert modes.power_w[row] == pytest.approx(
        fast.power_w("training", 2, 0.5) + slow.power_w("training", 1, 0.5)
    )
    assert modes.req_count[modes.req_ptr[row] : modes.req_ptr[row + 1]].tolist() == [2, 1]


def test_jobs_alike_share_a_kind() -> None:
    rows = [f"{j} 0 {100 * j} {100 * j + 10 + j} {1 + j % 2} n1" for j in range(100)]
    assert sacct.read(log(*rows), "log").instance.num_modes == 2


def test_the_order_of_rows_does_not_matter() -> None:
    head, *rows = log("1 0 0 100 2 n1", "2 0 40 60 1 n1", "3 0 200 300 4 n[1-2]").splitlines(
        keepends=True
    )
    instances = [sacct.read(head + "".join(order), "log").instance for order in (rows, rows[::-1])]
    spans = [sorted(zip(i.tasks.names or (), i.tasks.release, i.tasks.units)) for i in instances]
    assert (
        spans[0] == spans[1]
        and instances[0].pools.count.tolist() == instances[1].pools.count.tolist()
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JobID|State|AllocTRES\n1|x|y\n", "Start and one of End and Elapsed are needed"),
        ("JobID|Start|End\n1|x|y\n", "one of AllocTRES, AllocGRES, ReqTRES, AllocCPUS is needed"),
        (HEADER, "no run is left of 0 rows of jobs"),
        (
            log("1 0 0 0 1 n1"),
            "no run is left of 1 rows of jobs and 0 of steps: 1 x jobs that ran for 0 s",
        ),
        (COMMAS, r"1 of 1 rows do not fit the header \(line 2: 5 fields; the header has 4\)"),
    ],
)
def test_logs_that_say_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        parse_import(text, "log")


def test_options_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="unknown profile 'A1000'"):
        sacct.read(sacct_text(), "log", ImportOptions(profiles={"a100": "A1000"}))
    with pytest.raises(
        UnknownNameError, match="unknown kind of work of profile 'A100-PCIe': 'trainig'"
    ):
        sacct.read(
            sacct_text(), "log", ImportOptions(profiles={"a100": "A100-PCIe"}, work="trainig")
        )
    with pytest.raises(ParameterError, match="counts of 'gpu' is 0"):
        ImportOptions(counts={"gpu": 0})
    with pytest.raises(
        ParameterError,
        match="format 'jobshop' takes no import options; formats that do: wfformat, sacct",
    ):
        parse_import("1 1\n0 5\n", "x", "jobshop", A100)
    unused = sacct.read(
        sacct_text(), "log", ImportOptions(profiles={"h100": "H100-SXM"}, counts={"b200": 3})
    )
    assert (
        found(
            unused.report,
            "warnings",
            "profile of 'h100' is not used: the types of device are a100, gpu",
        )[0]
        == 1
    )
    assert found(unused.report, "warnings", "devices of type 'b200' is not used")[0] == 1
    report = sacct.read(
        sacct_text().replace("a100", "t4"), "log", ImportOptions(work="trainig")
    ).report
    assert (
        found(report, "warnings", "work 'trainig' is not used: no type has a profile with it")[0]
        == 1
    )


def test_a_profile_above_its_board_is_a_warning_of_the_report(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    data = {
        "name": "mine",
        "idle_w": 15,
        "sleep_w": 8,
        "tdp_w": 72,
        "memory_gb": 24,
        "clocks": [1.0],
        "sources": {},
        "laws": {
            "training": {
                "alpha_t": 1,
                "beta_t": 0,
                "gamma_t": 0,
                "alpha_p": 45,
                "beta_p": 20,
                "gamma_p": 40,
            }
        },
    }
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data))
    report = sacct.read(sacct_text(), "log", ImportOptions(profiles={"a100": str(path)})).report
    assert (
        found(
            report,
            "warnings",
            "profile 'mine': training draws 105 W at clock 1, the board has 72 W",
        )[0]
        == 1
    )
    assert not recwarn.list


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "march.sacct"
    path.write_text(sacct_text())
    result = load_import(path, options=A100)
    assert (
        isinstance(result, Import)
        and result.instance.name == "march"
        and result.report.format == "sacct"
    )
    text = "\n".join(result.report.lines())
    assert (
        text.startswith("read (sacct):\n  rows of jobs: 10\n")
        and "dropped: 1 x jobs that never started (line 8" in text
    )
    assert result.report.to_dict()["warnings"][0]["count"] == 1


def test_a_log_may_be_larger_than_other_texts() -> None:
    assert (
        byte_limit(b"JobID|Start|End\n") == byte_limit(b'\n"JobIDRaw","Start"\n') == MAX_LOG_BYTES
    )
    assert byte_limit(b"2 2\n# JobID\n") == MAX_TEXT_BYTES < MAX_LOG_BYTES
