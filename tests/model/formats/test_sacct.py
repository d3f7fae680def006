"""Slurm logs: the fields, the runs, the devices they held, the modes they get and what the report
says of the rest.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optbench.errors import FileFormatError, ParameterError, UnknownNameError
from optbench.model.files.json_fields import MAX_LOG_BYTES, MAX_TEXT_BYTES, byte_limit
from optbench.model.formats.format_registry import load_import, parse_import
from optbench.model.formats.imported import Import, ImportOptions, ImportReport
from optbench.model.formats.slurm import sacct
from optbench.model.formats.slurm.sacct_fields import (
    cores_of,
    duration_s,
    energy_j,
    gpus_of,
    nodes_of,
    time_s,
)
from optbench.model.verify import verify
from optbench.power.profiles import profile
from tests.sample_files.sample_records import sacct_text

A100 = ImportOptions(profiles={"a100": "A100-PCIe"})
HEADER = "JobID|Submit|Start|End|AllocTRES|NodeList\n"


# AllocTRES has a comma, and no quotes.
COMMAS = "JobID,Start,End,AllocTRES\n1,1709164800,1709164860,cpu=1,gres/gpu=1\n"


def log(*rows: str) -> str:
    """Rows of ``job submit start end gpus nodes``, times as seconds of one day."""

    def clock(seconds: str) -> str:
        s = int(seconds)
        return f"2024-03-01T{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}" if s >= 0 else "Unknown"

    out = []
    for row in rows:
        job, submit, start, end, gpus, nodes = row.split()
        out.append(
            "|".join(
                (job, clock(submit), clock(start), clock(end), f"cpu=1,gres/gpu={gpus}", nodes)
            )
            + "\n"
        )
    return HEADER + "".join(out)


def found(report: ImportReport, section: str, what: str) -> tuple[int, tuple[str, ...]]:
    """Count and examples of the one finding whose text contains ``what``."""
    rows = [finding for finding in getattr(report, section) if what in finding.what]
    assert len(rows) == 1, (what, getattr(report, section))
    return rows[0].count, rows[0].examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu01", ("gpu01",)),
        ("gpu[01-03,07],cpu5", ("gpu01", "gpu02", "gpu03", "gpu07", "cpu5")),
        ("r[1-2]n[08-10]", ("r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10")),
        ("n[9-11]-ib", ("n9-ib", "n10-ib", "n11-ib")),
        ("gpu[01-", None),
        ("gpu[3-1]", None),
        ("gpu[a-b]", None),
        ("gpu01,,gpu02", None),
        ("n[0-999999999]", None),
        ("a[0-999]b[0-999]", None),
    ],
)
def test_node_lists(text: str, expected: tuple[str, ...] | None) -> None:
    assert nodes_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("billing=8,cpu=8,gres/gpu=2,mem=64G,node=1", (("gpu", 2),)),
        ("cpu=8,gres/gpu:A100=2,gres/gpu=2", (("a100", 2),)),
        ("gres/gpu:a100=2,gres/gpu:v100=1,gres/gpu=4", (("a100", 2), ("gpu", 1), ("v100", 1))),
        ("gres/gpu:a100=4", (("a100", 4),)),
        ("cpu=8,mem=64G,gres/gpumem=80G,gres/gpuutil=30", ()),
        ("gpu:2", (("gpu", 2),)),
        ("gpu:1080:2", (("1080", 2),)),
        ("gpu:a100:2(IDX:0-1)", (("a100", 2),)),
        ("gres/gpu:a100_1g.5gb=2", (("a100_1g.5gb", 2),)),
        ("mps:100,gpu:a100:2(IDX:0,1),gpu:a40", (("a100", 2), ("a40", 1))),
        ("gpu", (("gpu", 1),)),
        ("gres:gpu:v100-sxm2:4,craynetwork:0", (("v100-sxm2", 4),)),
        ("gpu:0", ()),
        ("", ()),
    ],
)
def test_gpus(text: str, expected: tuple[tuple[str, int], ...]) -> None:
    assert gpus_of(text) == expected


def test_times_and_figures() -> None:
    assert duration_s("1-02:03:04") == 93784
    assert (
        duration_s("00:00:59"),
        duration_s("01:30"),
        duration_s("90"),
        duration_s("02:03:04.567"),
    ) == (59, 90, 90, 7384)
    assert duration_s("1-2") is None and duration_s("soon") is None
    assert time_s("1970-01-02T00:00:01") == 86401
    assert (time_s("1709164800"), time_s("2024-02-29T00:00:00")) == (1709164800, 1709164800)
    assert (
        time_s("2023-02-29T00:00:00") is None
        and time_s("Unknown") is None
        and time_s("2024-02-29T24:00:00") is None
    )
    assert (
        energy_j("12.5M"),
        energy_j("700"),
        energy_j("0"),
        energy_j("18446744073709551614"),
    ) == (12.5e6, 700.0, None, None)
    assert (cores_of("billing=3,cpu=12,mem=4G"), cores_of("mem=4G")) == (12, 0)


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


def test_nodes_show_how_many_devices_there_are() -> None:
    """n1 has 2 + 1 busy at 50 s; n2 has 2 (half of job 3, then job 4, which begins when job 3
    ends).
    """
    text = log("1 0 0 100 2 n1", "2 0 40 60 1 n1", "3 0 200 300 4 n[1-2]", "4 0 300 400 2 n2")
    assert sacct.read(text, "log").instance.pools.count.tolist() == [3 + 2]
    given = sacct.read(text, "log", ImportOptions(devices_per_node={"gpu": 4}))
    assert given.instance.pools.count.tolist() == [8]
    assert sacct.read(
        text, "log", ImportOptions(counts={"GPU": 40})
    ).instance.pools.count.tolist() == [40]


def test_oversubscribed_nodes_are_named() -> None:
    text = log("1 0 0 100 2 n1", "2 0 40 60 1 n1", "3 0 0 100 2 n2", "4 0 10 20 2 n2")
    result = sacct.read(text, "log", ImportOptions(devices_per_node={"gpu": 2}))
    assert found(result.report, "warnings", "more than 2 devices of type 'gpu' busy at once") == (
        2,
        ("n1: 3", "n2: 4"),
    )
    count, (example,) = found(result.report, "warnings", "breaks capacity")
    assert count == 1 and example.startswith("pool gpu has 6 busy devices of 4 at 10")
    assert result.schedule is not None and not verify(result.instance, result.schedule).feasible


def test_a_run_larger_than_the_cluster_is_dropped() -> None:
    result = sacct.read(
        log("1 0 0 100 2 n1", "2 0 0 100 8 n[1-2]"), "log", ImportOptions(counts={"gpu": 4})
    )
    assert result.instance.tasks.names == ("1",)
    assert found(result.report, "dropped", "more devices than there are") == (
        1,
        ("line 3, job '2': 8 gpu",),
    )


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
    text = "JobID|Start|End|Elapsed|AllocTRES\n1|2024-03-01T00:00:00|2024-03-01T00:10:00|00:04:00|gres/gpu=1\n"
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
    text = "JobID|Start|End|AllocTRES|AllocCPUS\n1|1709164800|1709164860|cpu=12,mem=4G|12\n2|1709164800|1709164860||4\n"
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


def test_by_node_a_run_may_go_where_there_is_room() -> None:
    """n1 shows 3 devices, n2 and n3 two each; the gang of 2 + 2 has run on n1 and n2 and on n2 and
    n3, never on n1 and n3.
    """
    rows = (
        "1 0 0 90 3 n1",
        "2 0 0 90 2 n2",
        "3 0 0 90 2 n3",
        "4 0 100 200 4 n[1-2]",
        "5 0 200 300 4 n[2-3]",
        "6 0 300 400 1 n3",
    )
    result = sacct.read(log(*rows, "7 0 300 400 1 (null)"), "log", ImportOptions(by_node=True))
    instance, schedule, modes = result.instance, result.schedule, result.instance.modes
    assert instance.places.names == (
        "cluster",
        "n1",
        "n2",
        "n3",
    ) and instance.pools.place.tolist() == [1, 2, 3]
    assert instance.pools.names == (
        "n1/gpu",
        "n2/gpu",
        "n3/gpu",
    ) and instance.pools.count.tolist() == [3, 2, 2]
    needs = [
        dict(zip(modes.req_pool[a:b].tolist(), modes.req_count[a:b].tolist(), strict=True))
        for a, b in zip(modes.req_ptr[:-1], modes.req_ptr[1:], strict=True)
    ]
    by_task = [[needs[m] for m in instance.pairs.mode[instance.pairs.task == i]] for i in range(6)]
    assert by_task[0] == [{0: 3}] and by_task[1] == by_task[2] == [{0: 2}, {1: 2}, {2: 2}]
    assert by_task[3] == by_task[4] == [{0: 2, 1: 2}, {1: 2, 2: 2}]
    assert by_task[5] == [{0: 1}, {1: 1}, {2: 1}]
    assert schedule is not None and verify(instance, schedule).feasible
    assert [needs[m] for m in schedule.mode] == [
        {0: 3},
        {1: 2},
        {2: 2},
        {0: 2, 1: 2},
        {1: 2, 2: 2},
        {2: 1},
    ]
    assert found(result.report, "dropped", "cannot be placed by node") == (
        1,
        ("line 8, job '7': 1 gpu",),
    )


def test_by_node_and_by_type_agree_on_time_and_energy() -> None:
    node, kind = (
        sacct.read(sacct_text(), "log", replace(A100, by_node=flag)) for flag in (True, False)
    )
    assert node.schedule is not None and kind.schedule is not None
    ours, theirs = verify(node.instance, node.schedule), verify(kind.instance, kind.schedule)
    assert ours.feasible and theirs.feasible
    for name in ("makespan_s", "energy_j", "busy_energy_j", "flow_time_s"):
        assert ours.metrics[name] == pytest.approx(theirs.metrics[name], rel=1e-12)
    clocks = node.instance.modes.clock[node.schedule.mode]
    assert set(clocks[np.isfinite(clocks)]) == {1.0}


def test_by_node_what_a_node_cannot_hold_is_dropped() -> None:
    result = sacct.read(
        log("1 0 0 90 3 n1", "2 0 0 90 2 n2"),
        "log",
        ImportOptions(by_node=True, devices_per_node={"gpu": 2}),
    )
    assert result.instance.tasks.names == ("2",)
    assert found(result.report, "dropped", "more devices of a node than it has") == (
        1,
        ("line 2, job '1': 3 gpu",),
    )


@pytest.mark.parametrize("by_node", [False, True])
def test_what_is_inferred_from_a_log_holds_its_schedule(by_node: bool) -> None:
    """Random runs on one to three nodes, two types, some back to back: the record is feasible, and
    loses no run.
    """
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = []
        for job in range(30):
            start = 10 * int(rng.integers(0, 60))
            nodes = ",".join(f"n{n}" for n in rng.permutation(5)[: rng.integers(1, 4)])
            gpus = f"{rng.integers(1, 9)}"
            gpus = (
                f"{gpus},gres/gpu:k80={gpus}"
                if rng.random() < 0.7
                else "5,gres/gpu:k80=2,gres/gpu:l4=3"
            )
            rows.append(
                f"{job} {rng.integers(0, start + 1)} {start} {start + 10 * rng.integers(1, 9)} "
                f"{gpus} {nodes}"
            )
        result = sacct.read(log(*rows), "log", ImportOptions(by_node=by_node))
        assert result.schedule is not None and result.instance.num_tasks == 30
        verdict = verify(result.instance, result.schedule)
        assert verdict.feasible, verdict.violations
        assert not result.report.dropped and not result.report.warnings


def test_counts_are_not_used_by_node() -> None:
    result = sacct.read(log("1 0 0 90 3 n1"), "log", ImportOptions(by_node=True, counts={"gpu": 9}))
    assert result.instance.pools.count.tolist() == [3]
    assert (
        found(
            result.report, "warnings", "counts of gpu are not used by node; give devices_per_node"
        )[0]
        == 1
    )


def test_a_log_may_be_larger_than_other_texts() -> None:
    assert (
        byte_limit(b"JobID|Start|End\n") == byte_limit(b'\n"JobIDRaw","Start"\n') == MAX_LOG_BYTES
    )
    assert byte_limit(b"2 2\n# JobID\n") == MAX_TEXT_BYTES < MAX_LOG_BYTES
