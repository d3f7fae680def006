"""The doctor sees what is wrong and names the remedy."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pynvml
import pytest

from optbench import environment_report
from optbench.sandbox import landlock
from optbench.workspace import VARIABLE


def check(name: str) -> environment_report.Check:
    return next(found for found in environment_report.report() if found.name == name)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The import orders take seconds; only the test about them tries them."""
    if request.node.name != "test_both_import_orders_are_tried":
        monkeypatch.setattr(environment_report, "ORDERS", ())


def test_what_is_not_in_order_comes_with_a_remedy() -> None:
    found = environment_report.report()
    names = [each.name for each in found]
    assert {
        "python",
        "highspy",
        "ortools",
        "torch",
        "cores",
        "memory",
        "gpus",
        "workspace",
        "landlock",
    } <= set(names)
    assert len(names) == len(set(names))
    assert [each for each in found if each.status != "ok" and not each.remedy] == []


def test_both_import_orders_are_tried() -> None:
    assert check("highspy with ortools").status == "ok"


def test_a_broken_import_order_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        environment_report, "ORDERS", ("import highspy", "raise ImportError('libhighs taken')")
    )
    found = check("highspy with ortools")
    assert (
        found.status == "problem"
        and "libhighs taken" in found.detail
        and "highspy==1.14.0" in (found.remedy or "")
    )


def test_a_wrong_and_a_missing_version_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "pymetis":
            raise metadata.PackageNotFoundError(name)
        return "1.15.0" if name == "highspy" else real(name)

    monkeypatch.setattr(metadata, "version", version)
    found = {each.name: each for each in environment_report.report()}
    assert (
        found["highspy"].detail == "1.15.0, ==1.14.0 is needed"
        and found["highspy"].remedy == "pip install 'highspy==1.14.0'"
    )
    assert found["pymetis"].status == "problem" and found["pymetis"].detail.startswith("missing, ")


def test_a_machine_without_a_driver_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", absent)
    assert check("gpus").status == "note" and "no NVIDIA driver" in check("gpus").detail


def test_a_workspace_that_is_gone_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    assert check("workspace").status == "problem" and "gone" in check("workspace").detail


def test_a_data_folder_without_manifest_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTBENCH_DATA", str(tmp_path))
    assert check("public data").status == "problem" and str(tmp_path) in check("public data").detail


@pytest.mark.parametrize(
    ("version", "status", "says"),
    [
        (0, "note", "can write outside"),
        (1, "note", "truncate files outside their folders and signal other processes"),
        (5, "note", "can signal other processes"),
        (6, "ok", "only among themselves"),
    ],
)
def test_what_landlock_leaves_open_is_said(
    monkeypatch: pytest.MonkeyPatch, version: int, status: str, says: str
) -> None:
    monkeypatch.setattr(landlock, "landlock_version", lambda: version)
    found = check("landlock")
    assert found.status == status and says in found.detail
