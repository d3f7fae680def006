"""The section on arriving work: a study that really ran."""

from __future__ import annotations

import re
from pathlib import Path

from optbench.report.study_page import render
from optbench.report.study_report import gather
from optbench.run.runner import run_study
from optbench.store.run_store import Store
from tests.html.html_pages import outline
from tests.report.test_study_page import page, small, table
from tests.run.study_parts import Inline, study_file

STUDY = """
problems = ["geo_dc:days=0.05,shrink=0.05"]
solvers = ["default_policy", "joint_nf"]
seeds = 2
time_limit = "20s"
bound_limit = "1s"
"""


def test_a_section_with_figures_beside_their_pictures(tmp_path: Path) -> None:
    store = Store(tmp_path / "store").make()
    done = run_study(study_file(tmp_path, STUDY), store=store, executor=Inline())
    html = render(gather(done.plan, store), None)
    outline(html)
    heads, first, _ = table(html, "operation")
    record = next(
        each for each in done.records.values() if each.cell.solver == "joint_nf" and each.metrics
    )
    assert heads[:4] == ["solver", "units done", "completed", "J per unit"] and first[0] in (
        "joint_nf",
        "default_policy",
    )
    assert record.metrics["units_offered"] > 0
    assert "<h2>Power over time</h2>" in html and "<h2>Routes</h2>" in html
    # Two panels of eight ingresses by eight sites, a square behind each.
    picture = re.search(r'aria-label="ingress by pool".*?</svg>', html, re.DOTALL)
    assert picture is not None and picture.group(0).count("fill-opacity") == 2 * 8 * 8


def test_no_pictures_where_schedules_are_gone(tmp_path: Path) -> None:
    store = Store(tmp_path / "store").make()
    done = run_study(study_file(tmp_path, STUDY), store=store, executor=Inline())
    for key in done.records:
        (store.cell(key) / "schedule.json").unlink(missing_ok=True)
    html = render(gather(done.plan, store), None)
    assert table(html, "operation")[0][0] == "solver" and "<h2>Routes</h2>" not in html


def test_no_section_where_nothing_arrives(tmp_path: Path) -> None:
    assert 'id="operation"' not in page(*small(), tmp_path)
