"""Types of GPU of runs whose row names none, and the node map."""

from __future__ import annotations

import pytest

from optbench.errors import FileFormatError, ParameterError
from optbench.formats import sacct
from optbench.formats.imported import ImportOptions, ImportReport
from optbench.formats.node_map import NodeMap, map_of_pairs, map_of_text

HEADER = "JobID|Start|End|AllocTRES|NodeList\n"
BEGIN = 1_709_164_800


def log(*rows: str) -> str:
    """Rows of ``job start end gpus nodes``; gpus as ``a100=2``, or ``2`` without a type."""
    out = [HEADER]
    for row in rows:
        job, start, end, gpus, nodes = row.split()
        held = f"gres/gpu:{gpus}" if "=" in gpus else f"gres/gpu={gpus}"
        out.append(
            f"{job}|{BEGIN + int(start)}|{BEGIN + int(end)}|{held}|{nodes.replace('-none-', '')}\n"
        )
    return "".join(out)


def pools(*rows: str, **options: object) -> tuple[dict[str, int], ImportReport]:
    found = sacct.read(log(*rows), "log", ImportOptions(**options))  # type: ignore[arg-type]
    return dict(
        zip(found.instance.pools.names, found.instance.pools.count.tolist(), strict=True)
    ), found.report


def dropped(report: ImportReport) -> dict[str, int]:
    return {finding.what.partition(";")[0]: finding.count for finding in report.dropped}


UNKNOWN = "runs whose type of GPU is known neither from their row nor from their nodes"


def test_a_run_without_a_type_has_that_of_its_nodes() -> None:
    """Two GPUs of n1 one after the other are two devices, and not two a100 and two of
    another type.
    """
    found, report = pools("1 0 10 a100=2 n1", "2 10 20 2 n1", "3 0 10 v100=1 n2", "4 20 30 1 n2")
    assert found == {"a100": 2, "v100": 1} and not report.dropped
    said = {finding.what: finding.count for finding in report.assumed}
    assert said["runs without a type of GPU have that of their nodes' other runs: a100"] == 1


def test_no_device_is_invented() -> None:
    """A node of two types, and no node at all: these runs were on GPUs that other runs name, so
    they make no new ones.
    """
    rows = ("1 0 10 a100=2 n1", "2 0 10 v100=1 n1", "3 10 20 2 n1", "4 10 20 4 -none-")
    found, report = pools(*rows)
    assert found == {"a100": 2, "v100": 1}
    assert dropped(report) == {UNKNOWN: 2}
    assert report.dropped[0].examples == ("line 4, job '3'", "line 5, job '4'")


def test_a_run_over_nodes_of_two_types_is_not_guessed() -> None:
    found, report = pools("1 0 10 a100=2 n1", "2 0 10 v100=2 n2", "3 10 20 4 n[1-2]")
    assert found == {"a100": 2, "v100": 2} and dropped(report) == {UNKNOWN: 1}


def test_nodes_of_untyped_runs_alone_are_devices_of_their_own() -> None:
    found, report = pools("1 0 10 a100=2 n1", "2 0 10 4 old7")
    assert found == {"a100": 2, "gpu": 4} and not report.dropped


def test_a_log_that_names_no_type_is_one_of_gpus() -> None:
    found, report = pools("1 0 10 2 n1", "2 5 10 2 -none-")
    assert found == {"gpu": 4} and not report.dropped


def test_devices_of_untyped_runs_that_the_user_counts_are_not_invented() -> None:
    found, report = pools("1 0 10 a100=2 n1", "2 0 10 4 -none-", counts={"gpu": 6})
    assert found == {"a100": 2, "gpu": 6} and not report.dropped


def test_the_node_map_says_types() -> None:
    rows = ("1 0 10 a100=2 n1", "2 10 20 2 n1", "3 0 10 4 old7", "4 20 30 1 -none-")
    found, report = pools(*rows, node_map=map_of_pairs([("old[1-9]", "V100"), ("*", "a100")]))
    assert found == {"a100": 2, "v100": 4} and not report.dropped


def test_the_runs_own_type_holds_against_the_map() -> None:
    found, report = pools("1 0 10 a100=2 n1", node_map=map_of_pairs([("n1", "v100")]))
    assert found == {"a100": 2}
    assert any("another type of GPU than the node map" in str(each) for each in report.warnings)


def test_a_list_of_nodes_says_how_many_there_are() -> None:
    """n1 has four GPUs though two were busy, n2 has four that nobody used; x has GPUs of a type
    without runs.
    """
    nodes = map_of_text(
        "NODELIST GRES\nn1 gpu:a100:4(S:0-1)\nn2 gpu:a100:4\nx gpu:h100:8\nc1 (null)\n", "nodes"
    )
    found, report = pools("1 0 10 a100=2 n1", "2 10 20 1 n2", "3 0 5 1 n2", node_map=nodes)
    assert found == {"a100": 8} and not report.warnings
    found, report = pools("1 0 10 a100=6 n1", "2 0 10 a100=1 n3", node_map=nodes)
    assert found == {"a100": 4 + 4 + 1}
    assert any(
        "than the list of nodes says (n1: 6, not 4)" in str(each) for each in report.warnings
    )


def test_the_layouts_of_a_list_of_nodes() -> None:
    want = {"n1": (("a100", 4),), "n2": (("a100", 4),), "c1": ()}
    assert map_of_text("n[1-2] gpu:a100:4\n# login\nc1 (null)\n", "x").gpus == want
    assert (
        map_of_text("n1|gpu:a100:4\nn2|gpu:A100:4(S:0)\nn2|gpu:a100:4\nc1|(null)\n", "x").gpus
        == want
    )
    assert map_of_text("sn,gpu,model\nn1,4,A100\nn2,4,A100\nc1,0,\n", "x").gpus == want
    assert map_of_text("n[1-2],n4 a100\n", "x").gpus == dict.fromkeys(
        ("n1", "n2", "n4"), (("a100", None),)
    )
    assert (
        map_of_text("n1 gpu:8\n", "x").types("n1") == frozenset()
        and map_of_text("n1 gpu:8\n", "x").count("n1", "a100") == 8
    )


def test_named_nodes_come_before_patterns_and_patterns_before_the_rest() -> None:
    found = map_of_pairs([("gpu*", "a100"), ("*", "v100"), ("gpu7", "h100")])
    assert [set(found.types(node)) for node in ("gpu7", "gpu8", "old")] == [
        {"h100"},
        {"a100"},
        set(),
    ]
    assert set(found.otherwise) == {"v100"} and not NodeMap().types("gpu7")


def test_the_rest_comes_after_what_the_runs_of_a_node_say() -> None:
    rows = ("1 0 10 a100=2 n1", "2 10 20 2 n1", "3 0 10 4 old7")
    found, report = pools(*rows, node_map=map_of_pairs([("*", "v100")]))
    assert found == {"a100": 2, "v100": 4} and not report.warnings


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("n[1-", "a100")], "not a list of nodes"),
        ([("n1", "")], "'' is not a type of GPU"),
        ([("n1", "gpu:a100")], "'gpu:a100' is not a type"),
        ([("n[1-3]", "a100"), ("n2", "v100")], "node 'n2' is given two types: 'a100' and 'v100'"),
        ([("n*", "a100"), ("n*", "v100")], "given twice"),
    ],
)
def test_wrong_pairs(pairs: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(ParameterError, match=said.replace("[", r"\[")):
        map_of_pairs(pairs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no node in it"),
        ("n1\n", "line 1: 'n1' is no node with its GPUs"),
        ("n1 gpu:a100:4\nn1 gpu:v100:4\n", "line 2: node 'n1' stands twice"),
        ("sn,gpu,model\nn1,many,a100\n", "line 2"),
    ],
)
def test_wrong_files(text: str, said: str) -> None:
    with pytest.raises(FileFormatError, match=said):
        map_of_text(text, "nodes")
