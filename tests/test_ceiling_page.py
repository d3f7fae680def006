"""The numbers of docs/results/hgnn_ceiling.md from rows whose answers are known."""

from __future__ import annotations

import pytest

from benchmarks._ceiling_page import EXACT, LEVELS, NOISES, PlayRow, RowsOfSize, page, picture

SPEC = "gpu_cluster:nodes=16,tasks=400"


def rows() -> list[PlayRow]:
    """Two instances: the rule at 200, LP milestones at 100, the bound at 80; noise of level s costs
    100 s where tasks are moved, nothing for prices, and shifts cost 50 at once.
    """
    slope, constant = {"tasks": 100.0}, {"shift": 50.0}
    out = []
    for seed in (10, 11):
        fixed = {"path_milestones": 200.0, "tuned rule": 400.0, EXACT: 100.0, "hgnn 0": 120.0}
        fixed |= {"hgnn 1": 140.0, "LP milestones, best of 32": 96.0, "no network": 190.0}
        for name, value in fixed.items():
            out.append(PlayRow(SPEC, seed, name, 0.0, value, 80.0, 0.01, 0.3))
        for noise in NOISES:
            for level in LEVELS:
                value = 100.0 + slope.get(noise, 0.0) * level + constant.get(noise, 0.0)
                out.append(PlayRow(SPEC, seed, noise, level, value, 80.0, 0.01, level))
    return out


def test_shares_of_the_way_are_of_mean_objectives() -> None:
    size = RowsOfSize(rows(), SPEC)
    assert size.best_rule() == "path_milestones"
    assert size.gaps([EXACT]) == pytest.approx([0.2, 0.2])
    # The networks' mean is 130: 70 of the 100 from the rule to LP milestones.
    assert size.closed(size.networks()) == pytest.approx(0.7)
    assert size.closed(["tasks"], 0.4) == pytest.approx(0.6)
    # 140 at 0.4 and 180 at 0.8: half of the way, 150, lies a quarter further.
    assert size.half("tasks") == "50 %"
    assert size.half("prices") == "above 80 %"


def test_the_page_and_the_picture_name_every_method() -> None:
    text = page(rows(), [SPEC], "python benchmarks/hgnn_ceiling.py", "picture.svg")
    for name in (EXACT, "hgnn 0", "no network", "tuned rule", *NOISES):
        assert name in text
    assert picture(rows(), [SPEC]).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
