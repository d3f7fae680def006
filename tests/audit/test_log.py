"""What of a log an audit takes, and what it says of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.audit.audit_run import AuditRecord, audit
from optbench.audit.log import AuditOptions, log_of
from optbench.audit.logged_cluster import on_nodes
from optbench.errors import FileFormatError, ParameterError
from optbench.formats.imported import ImportOptions
from tests.audit.logs import HEAD, line, log_from, options_of, profile_file


def test_runs_by_release_and_types(tmp_path: Path) -> None:
    log = log_from(
        line(7, 90, 100, 200, 2) + line(8, 10, 20, 80, 1, nodes="n2"),
        options_of(profile_file(tmp_path)),
    )
    assert (
        log.jobs == ["8", "7"]
        and log.release.tolist() == [10.0, 90.0]
        and log.end.tolist() == [80.0, 200.0]
    )
    assert log.gpus.tolist() == [1, 2] and log.counts.tolist() == [3]
    assert log.sojourn_s == 70 + 110 and log.work_s == 60 + 100


def test_what_is_left_out_is_told_with_its_hours(tmp_path: Path) -> None:
    text = (
        line(1, 0, 0, 3600)
        + line(2, 0, 0, 7200, 2, kind="other")
        + line(3, 0, 0, 3600, 600, nodes="n[1-80]")
    )
    log = log_from(text, options_of(profile_file(tmp_path)))
    assert log.num_runs == 1
    said = [str(each) for each in log.report.dropped]
    assert any(
        "'other', a type without a profile" in each and "4.0 GPU-hours" in each for each in said
    )
    assert any("more than 512 GPUs" in each and "600.0 GPU-hours" in each for each in said)


def test_a_log_without_a_profile_names_its_types() -> None:
    with pytest.raises(FileFormatError, match=r"types: toy.*--profile toy=NAME"):
        log_of(HEAD + line(1, 0, 0, 10), "log", AuditOptions())


def test_runs_without_a_node_are_verified_by_type_alone(tmp_path: Path) -> None:
    log = log_from(
        line(1, 0, 0, 10, nodes="") + line(2, 0, 0, 10, nodes="n2"),
        options_of(profile_file(tmp_path)),
    )
    found = on_nodes(log)
    assert found is not None and found[0].num_tasks == 1 and found[0].tasks.names == ("2",)


def test_a_record_that_cannot_have_been_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.sacct"
    path.write_text(HEAD + line(1, 0, 0, 10) + line(2, 0, 5, 15))  # two at once on n1
    options = AuditOptions(
        ImportOptions({"toy": profile_file(tmp_path)}, devices_per_node={"toy": 1})
    )
    found = audit(path, options)
    assert isinstance(found, AuditRecord) and not found.feasible
    assert any("n1/toy has 2 busy devices of 1" in each for each in found.violations)


def test_the_recorded_clock_is_one_of_the_profile(tmp_path: Path) -> None:
    toy = ImportOptions({"toy": profile_file(tmp_path)})
    assert log_from(line(1, 0, 0, 10), AuditOptions(toy, {"toy": 0.5})).clock.tolist() == [0.5]
    with pytest.raises(ParameterError, match=r"'toy' is 0\.7; levels of profile toy: 0\.5, 1"):
        log_from(line(1, 0, 0, 10), AuditOptions(toy, {"toy": 0.7}))
    with pytest.raises(ParameterError, match=r"'tot'.*did you mean 'toy'"):
        log_from(line(1, 0, 0, 10), AuditOptions(toy, {"tot": 0.5}))


def test_what_can_be_kept() -> None:
    with pytest.raises(ParameterError, match=r"'counts'.*did you mean 'count'"):
        AuditOptions(keep=frozenset({"counts"}))


def test_a_file_that_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\nworld\n")
    with pytest.raises(FileFormatError, match="no table of runs"):
        audit(path)
