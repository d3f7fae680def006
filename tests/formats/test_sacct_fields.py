"""The fields of a Slurm log: node lists, GPUs, times and figures."""

from __future__ import annotations

import pytest

from optbench.formats.sacct_fields import (
    cores_of,
    duration_s,
    energy_j,
    gpus_of,
    nodes_of,
    time_s,
)


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
