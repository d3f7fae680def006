"""Energies as intervals where a trace does not say where its pods ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.audit.audit_json import of_ranges
from optbench.audit.audit_run import audit
from optbench.audit.log import AuditOptions
from optbench.audit.range_page import render_ranges, said
from optbench.audit.ranges import Ranges
from optbench.errors import FileFormatError
from optbench.formats.imported import ImportOptions
from tests.audit.logs import profile_file

PODS = "name,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time\n"
NODES = "sn,gpu,model\nn1,1,A\nn2,1,B\n"
KEPT = frozenset({"clock", "count", "idle"})
ALIBABA = {
    "T4": "T4",
    "P100": "P100",
    "V100M16": "V100-PCIe",
    "V100M32": "V100-PCIe",
    "A10": "A10",
    "G2": "A10",
    "G3": "A100-SXM",
}


def files(folder: Path, pods: str, nodes: str = NODES) -> tuple[Path, AuditOptions]:
    """Type A takes a second and 10 W per unit and idles at 1 W; B half a second, 20 W and 2 W."""
    (folder / "pods.csv").write_text(PODS + pods)
    (folder / "nodes.csv").write_text(nodes)
    records = ImportOptions(
        {"A": profile_file(folder, "a"), "B": profile_file(folder, "b", scale=2.0, speed=2.0)}
    )
    return folder / "pods.csv", AuditOptions(records, keep=KEPT, nodes=folder / "nodes.csv")


def ranges_of(folder: Path, pods: str, keep: frozenset[str] = KEPT) -> Ranges:
    path, options = files(folder, pods)
    found = audit(path, AuditOptions(options.records, keep=keep, nodes=options.nodes))
    assert isinstance(found, Ranges)
    return found


def test_one_pod_anywhere(tmp_path: Path) -> None:
    # 100 s idle on both: 300 J. At work 900 J more on A, 1800 J more on B.
    found = ranges_of(tmp_path, "p,1,1000,,0,100,0\n")
    assert (found.recorded_low_j, found.recorded_high_j) == pytest.approx((1200.0, 2100.0))
    # 100 units if it ran on A, 9 J each on either; both GPUs at once need 100 / 3 s, and idle at 3
    # W for as long.
    assert found.least_j == pytest.approx(1000.0, rel=1e-6) and found.at_low_j == pytest.approx(
        1000.0, rel=1e-6
    )
    # 200 units if it ran on B, and in 100 s at work only B does them all: as recorded.
    assert found.at_high_j == pytest.approx(2100.0, rel=1e-6)


def test_where_types_are_kept_the_least_is_the_record(tmp_path: Path) -> None:
    found = ranges_of(tmp_path, "p,1,1000,,0,100,0\n", KEPT | {"placement"})
    assert (found.least_j, found.at_low_j, found.at_high_j) == pytest.approx(
        (1200.0, 1200.0, 2100.0), rel=1e-6
    )


def test_what_a_pod_may_use_narrows_it(tmp_path: Path) -> None:
    found = ranges_of(tmp_path, "p,1,1000,B,0,100,0\n")
    assert (found.recorded_low_j, found.recorded_high_j) == pytest.approx((2100.0, 2100.0))


def test_a_share_draws_from_its_share_to_all(tmp_path: Path) -> None:
    found = ranges_of(tmp_path, "p,1,250,A,0,100,0\n")
    assert (found.recorded_low_j, found.recorded_high_j) == pytest.approx(
        (300 + 225.0, 300 + 900.0)
    )


def test_room_is_counted(tmp_path: Path) -> None:
    # Two pods at once: one GPU of each type, so one of them ran on B for certain.
    found = ranges_of(tmp_path, "p,1,1000,,0,100,0\nq,1,1000,,0,100,0\n")
    assert (found.recorded_low_j, found.recorded_high_j) == pytest.approx(
        (3000.0, 3000.0), rel=1e-6
    )


def test_documents(tmp_path: Path) -> None:
    found = ranges_of(tmp_path, "p,1,1000,,0,100,0\n")
    assert of_ranges(found)["recorded"]["energy_j"] == [found.recorded_low_j, found.recorded_high_j]
    assert "no scheduler uses less" in render_ranges(found)


def test_pods_that_are_left_out_take_the_headline_away(tmp_path: Path) -> None:
    """One of two pods of equal length was scheduled and has no end: half of the GPU-hours are not
    known.
    """
    whole = ranges_of(tmp_path, "p,1,1000,,0,100,0\n")
    assert whole.pods.coverage.share == 1.0 and "can be saved" in said(whole)[-1]
    half = ranges_of(tmp_path, "p,1,1000,,0,100,0\nq,1,1000,,0,,0\n")
    assert half.pods.coverage.share == pytest.approx(0.5)
    assert (
        "no saving of the cluster" in said(half)[-1]
        and said(half)[-1] == of_ranges(half)["headline"]
    )
    other = ranges_of(tmp_path, "p,1,1000,,0,100,0\nq,1,1000,C,0,300,0\n")
    assert other.pods.coverage.share == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("pods", "nodes", "message"),
    [
        ("p,1,1000,,0,100,0\n", "sn,gpu\nn1,1\n", "column 'model' is missing"),
        ("p,one,1000,,0,100,0\n", NODES, "line 2: num_gpu is 'one'"),
        ("p,1.5,1000,,0,100,0\n", NODES, "line 2: num_gpu is '1.5'; it must be a whole number"),
        ("p,1,1000,,0,100\n", NODES, "line 2: 6 fields, where there are 7"),
        ("p,1,1000,,0,,\n", NODES, "no pod that held a GPU and has ended"),
        ("p,1,1000,,0,100,0\n", NODES + "n3,8,C\n", "'C' has no profile"),
    ],
)
def test_bad_traces(tmp_path: Path, pods: str, nodes: str, message: str) -> None:
    path, options = files(tmp_path, pods, nodes)
    with pytest.raises(FileFormatError, match=message):
        audit(path, options)


def test_pods_without_a_list_of_nodes(tmp_path: Path) -> None:
    path, options = files(tmp_path, "p,1,1000,,0,100,0\n")
    with pytest.raises(FileFormatError, match="--nodes FILE"):
        audit(path, AuditOptions(options.records))


def test_alibaba_gpu_2023(data_dir: Path) -> None:
    folder = data_dir / "alibaba-gpu-v2023"
    options = AuditOptions(
        ImportOptions(ALIBABA, "inference"), nodes=folder / "openb_node_list_gpu_node.csv"
    )
    found = audit(folder / "openb_pod_list_default.csv", options)
    assert isinstance(found, Ranges)
    # 7,064 pods ask for GPUs; 897 of all pods are pending, 861 of those with GPUs never started or
    # have no end.
    assert found.pods.num_pods == 7064 - 861 and found.pods.counts.sum() == 6212
    assert found.least_j < found.recorded_low_j < found.recorded_high_j
    assert found.least_j <= found.at_low_j <= found.at_high_j < found.recorded_high_j
    said = " ".join(map(str, found.pods.report.warnings))
    assert "do not say on which node" in said and "no power" in said
