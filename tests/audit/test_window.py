"""Idle time that a log does not show is not charged: what is audited lies where the log lists every
run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from optbench.audit.audit_run import record_of
from optbench.audit.log import AuditOptions, Log, log_of
from optbench.audit.logged_cluster import cluster_of
from optbench.errors import FileFormatError, ParameterError
from optbench.formats.imported import ImportOptions
from tests.audit.logs import HEAD, line, log_from, options_of, profile_file
from tests.audit.logs import ORIGIN as ZERO
from tests.audit.slurm import ORIGIN, Partition, sacct_log
from tests.audit.slurm_wear import as_printed

DAY = 86_400
PARTITIONS = (Partition("v100", 4, 4, 1.0),)
V100 = AuditOptions(
    ImportOptions({"v100": "V100-PCIe"}, devices_per_node={"v100": 4}, counts={"v100": 16})
)
# sacct -S and -E, in seconds after the first job of the generated log, which lasts two days.
SINCE, UNTIL = 60_000, 120_000


def energies(log: Log) -> tuple[float, float]:
    """At work, and idle, on record."""
    found = record_of(cluster_of(log, frozenset()))
    assert found.feasible
    return found.busy_j, found.rest_j


@pytest.fixture(scope="module")
def text() -> str:
    return sacct_log(400, PARTITIONS, load=0.7, seed=5)


def given(options: AuditOptions, since: float, until: float) -> AuditOptions:
    zero = float(ORIGIN.astype(np.int64))
    return replace(options, since_s=zero + since, until_s=zero + until)


def test_a_log_that_sacct_has_cut_says_what_the_whole_log_says(text: str) -> None:
    """Between -S and -E the cut log and the whole one are the same record."""
    options = given(V100, SINCE, UNTIL)
    whole = log_of(text, "whole", options)
    cut = log_of(as_printed(text, SINCE, UNTIL, UNTIL + 50_000), "cut", options)
    assert whole.window.complete and cut.window == whole.window
    assert cut.num_runs == whole.num_runs < 400
    assert energies(cut) == energies(whole)


def test_runs_that_go_on_when_the_log_is_printed_count_up_to_then(text: str) -> None:
    options = given(V100, SINCE, UNTIL)
    cut = log_of(as_printed(text, SINCE, UNTIL, UNTIL), "cut", options)
    assert energies(cut) == energies(log_of(text, "whole", options))


def test_idle_time_before_sacct_began_is_not_charged(text: str) -> None:
    """A run of twelve days that ends an hour after -S; GPUs that nobody is seen to use before it
    are not known to be idle.
    """
    zero = int(ORIGIN.astype(np.int64))
    times = "|".join(
        str(zero + t) for t in (SINCE - 12 * DAY, SINCE - 12 * DAY, SINCE - 12 * DAY, SINCE + 3600)
    )
    long = f"7|{times}||COMPLETED|gres/gpu:v100=1,gres/gpu=1|old1\n"
    cut = as_printed(text, SINCE, UNTIL, UNTIL + 50_000)
    without, with_it = (
        log_of(cut + more, "cut", replace(V100, records=ImportOptions(V100.records.profiles)))
        for more in ("", long)
    )
    assert with_it.window.complete and with_it.window == without.window
    assert with_it.window.opens >= zero + SINCE and with_it.window.closes <= zero + UNTIL
    assert (
        with_it.window.opens - zero - SINCE < 3600 and zero + UNTIL - with_it.window.closes < 3600
    )
    assert energies(with_it)[1] < 1.2 * energies(without)[1]


def test_a_run_over_the_edge_counts_with_what_lies_inside(tmp_path: Path) -> None:
    """The run waited and ran since before the window: it is released at its edge, with 30 of its
    100 s.
    """
    options = replace(options_of(profile_file(tmp_path)), since_s=ZERO + 70.0, until_s=ZERO + 150.0)
    log = log_from(
        line(1, -20, 0, 100) + line(2, 60, 100, 180) + line(3, 0, 10, 40, nodes="n2"), options
    )
    assert log.jobs == ["1", "2"] and log.release.tolist() == [0.0, 0.0]
    assert log.start.tolist() == [0.0, 30.0] and log.end.tolist() == [30.0, 80.0]
    assert {f.what[:40]: f.count for f in log.report.assumed}[
        "runs reach over an edge of the time that "[:40]
    ] == 2
    # 110 s at 10 W on n1 and n2's GPU idle at 1 W.
    assert energies(log) == pytest.approx((800.0, 80.0))


def test_a_short_log_does_not_show_when_it_is_complete(tmp_path: Path) -> None:
    options = replace(options_of(profile_file(tmp_path)), since_s=None, until_s=None)
    log = log_from(line(1, 0, 0, 10) + line(2, 0, 0, 20, nodes="n2"), options)
    assert not log.window.complete and not log.coverage.enough
    assert "say it with --since and --until" in log.coverage.why_not()
    assert log.end.tolist() == [10.0, 20.0]


def test_a_measured_energy_is_that_of_whole_runs(tmp_path: Path) -> None:
    head = HEAD.replace("NodeList", "NodeList|ConsumedEnergyRaw")
    rows = [
        row.strip() + f"|{energy}\n"
        for row, energy in ((line(1, 0, 0, 100), 900), (line(2, 0, 100, 150), 450))
    ]
    options = replace(options_of(profile_file(tmp_path)), since_s=ZERO + 50.0)
    measured = log_of(head + "".join(rows), "log", options).measured_j
    assert np.isnan(measured[0]) and measured[1] == 450.0


def test_windows_that_hold_nothing(tmp_path: Path) -> None:
    options = options_of(profile_file(tmp_path))
    with pytest.raises(ParameterError, match="is not before until"):
        replace(options, since_s=2e9, until_s=2e9)
    with pytest.raises(
        FileFormatError,
        match=r"no run lies in the time from .*the log's runs are from 2026-03-01 00:00:00",
    ):
        log_from(line(1, 0, 0, 10), replace(options, since_s=ZERO + 20.0, until_s=ZERO + 30.0))
