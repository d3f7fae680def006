"""The report as a page: figures by hand, nothing of a user's text as markup, self-contained, and of
a sensible size.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from optbench.report.instance_section import MOST_CELLS
from optbench.report.outline import write_index
from optbench.report.solver_charts import MOST_DOTS
from optbench.report.study_page import render, write_report
from optbench.report.study_report import caveats, gather
from optbench.store.records import Record
from optbench.study.cells import BOUNDS
from optbench.study.declared import Claim
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import Plan
from tests.evaluate.studies_by_hand import MACHINE, failure, record, records_of, stored, study_of
from tests.html.html_pages import dom_of, outline

HOSTILE = "<script>alert(1)</script>&\"'</td>"


def page(
    plan: Plan, records: dict[str, Record], folder: Path, outputs: dict[str, str] | None = None
) -> str:
    store = stored(folder, records, outputs)
    return write_report(plan, store).read_text(encoding="utf-8")


def table(html: str, class_: str) -> list[list[str]]:
    """Texts of a table's cells, row by row, markup dropped."""
    found = re.search(rf'<table class="report-table {class_}">(.*?)</table>', html, re.DOTALL)
    assert found is not None
    rows = re.findall(r"<tr>(.*?)</tr>", found.group(1), re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [
        [" ".join(unescape(re.sub(r"<[^>]+>", " ", cell)).split()) for cell in row] for row in cells
    ]


def small() -> tuple[Plan, dict[str, Record]]:
    """Two instances bounded at 100. x: 100 and 125, y: 200 and crashed; gaps 0, 0.2 and 0.5, 1."""
    plan = study_of(["y", "x"], ["a"], seeds=(0, 1))
    given: dict[tuple[str, str], Any] = {
        (BOUNDS, "a-0"): (None, 100.0),
        (BOUNDS, "a-1"): (None, 100.0),
        ("x", "a-0"): (100.0, None),
        ("x", "a-1"): (125.0, None),
        ("y", "a-0"): (200.0, None),
        ("y", "a-1"): lambda cell: failure(cell, "crashed", "ValueError: no"),
    }
    return plan, records_of(plan, given)


def test_the_ranking_by_hand(tmp_path: Path) -> None:
    html = page(*small(), tmp_path)
    _, first, second = table(html, "ranking")
    # Study gap, behind, gap, rpd, optimum, failed, time, rank, wins.
    gap, own = "10.0 % 0 to 20.0 %", "100 % 100 to 100 %"  # nobody has bounds of his own
    assert first == [
        "1 x",
        gap,
        "–",
        own,
        "0 % 0 to 0 %",
        "1 of 2 0 by itself",
        "0",
        "1.0 s",
        "1.00",
        "2",
    ]
    gap, behind = "75.0 % 50.0 to 100 %", "65.0 % 50.0 to 80.0 %"
    assert second == ["2 y", gap, behind, own, "100 %", "0 of 2", "1", "4.8 s", "2.00", "0"]


def test_regret_has_a_column_where_the_study_names_a_reference(tmp_path: Path) -> None:
    """y against x: 200 for 100; on a-1 it has nothing."""
    plan, records = small()
    html = page(replace(plan, study=replace(plan.study, reference="x")), records, tmp_path)
    heads, x, y = table(html, "ranking")
    assert heads[5] == "regret to x" and x[5] == "0 % 0 to 0 %" and y[5] == "100 %"


def test_the_instances_by_hand(tmp_path: Path) -> None:
    html = page(*small(), tmp_path)
    assert table(html, "instances") == [
        ["instance", "seed", "best known", "best bound", "x", "y"],
        ["a-0 a", "0", "100 proven", "100", "100 ✓ optimal", "200 50.0 %"],
        ["a-1 a", "1", "125 x", "100", "125 20.0 %", "✗ crashed"],
    ]


def test_every_cell_has_its_files_and_its_command(tmp_path: Path) -> None:
    plan, records = small()
    html = page(plan, records, tmp_path)
    found = re.search(r'<script type="application/json" id="cells">(.*?)</script>', html)
    assert found is not None
    cells = {cell["t"]: cell for cell in json.loads(found.group(1))}
    assert set(cells) == {"x | a-0 | 0", "x | a-1 | 1", "y | a-0 | 0", "y | a-1 | 1"}
    cell = cells["x | a-1 | 1"]
    assert cell["c"] == "optbench solve a -s x --seed 1 --time-limit 10s"
    key = next(each.key for each in plan.cells if each.title == "x | a-1 | 1")
    assert cell["f"] == f"../../cells/{key}/"
    assert "best bound of the study 100, study gap 20.0 %" in cell["l"]
    assert not any("bound of this run" in each for each in cell["l"])


def test_a_cell_says_its_own_bound_and_the_studys_apart(tmp_path: Path) -> None:
    plan = study_of(["x"], ["a"], trust=("x",))
    html = page(
        plan,
        records_of(plan, {(BOUNDS, "a-0"): (None, 90.0), ("x", "a-0"): (100.0, 80.0)}),
        tmp_path,
    )
    found = re.search(r'<script type="application/json" id="cells">(.*?)</script>', html)
    assert found is not None
    (cell,) = json.loads(found.group(1))
    assert "bound of this run 80 (x, solver), gap 20.0 %" in cell["l"]
    assert "best bound of the study 90, study gap 10.0 %" in cell["l"]
    assert "The study trusts x, whose bounds count for every solver without a certificate." in html
    assert "solvers whose own bounds count for all (trust)</dt><dd>x</dd>" in html


def test_a_page_that_travels_has_no_links(tmp_path: Path) -> None:
    plan, records = small()
    html = write_report(
        plan, stored(tmp_path, records), tmp_path / "away.html", linked=False
    ).read_text(encoding="utf-8")
    assert "cells/" not in html and '"f": ""' in html and "<a " not in html


def test_failures_show_reason_output_and_command(tmp_path: Path) -> None:
    plan, records = small()
    key = next(each.key for each in records.values() if each.failed)
    html = page(plan, records, tmp_path, {key: "line 1\n\x1b[31mValueError: no\n"})
    section = html[html.index('<section id="failures">') : html.index('<section id="instances">')]
    assert "✗ crashed" in section and "1 cell: the solver raised an exception" in section
    assert '<pre class="output">line 1\n[31mValueError: no</pre>' in section
    assert "optbench solve a -s y --seed 1 --time-limit 10s" in section


def test_nothing_that_users_write_becomes_markup(tmp_path: Path) -> None:
    plan = study_of(
        ["x", "fcfs", HOSTILE],
        [HOSTILE],
        seeds=(0, 1),
        question=HOSTILE,
        name="by_hand",
        gates={"x": "gap <= 0.5"},
        claims=(Claim(HOSTILE, HOSTILE, -0.3, "rel(objective, x, fcfs)"),),
    )
    records = records_of(plan, {("x", f"{HOSTILE}-0"): (100.0, 90.0)})
    for cell in plan.solving:
        if cell.label == HOSTILE:
            records[cell.key] = failure(
                cell, "crashed", HOSTILE, code_version=HOSTILE, machine={"host": HOSTILE}
            )
    outputs = {key: HOSTILE for key, each in records.items() if each.failed}
    plan = replace(
        plan,
        made=(*plan.made, MadeInstance(HOSTILE, 0, HOSTILE, None, error=HOSTILE)),
        changed=HOSTILE,
    )
    html = page(plan, records, tmp_path, outputs)
    assert "alert(1)" in html and "<script>alert" not in html
    assert outline(html).tags.count("script") == 2  # the cells' data, and the page's own
    assert "</td>&" not in html and html.count("<script>") == 1


def test_text_that_is_no_text_does_not_stop_the_page(tmp_path: Path) -> None:
    plan = study_of(["x", "y"], ["a"], question="half a \ud800 sign")
    given = {("x", "a-0"): lambda cell: failure(cell, "crashed", "no \udfff")}
    assert "half a ? sign" in page(plan, records_of(plan, given), tmp_path)


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    html = page(*small(), tmp_path)
    found = outline(html)
    links = [
        value
        for key, value in found.attributes
        if key in ("href", "src", "xlink:href", "action", "srcset")
    ]
    assert links != [] and all(link.startswith("../../cells/") for link in links)
    assert not re.search(r"url\(|@import|https?://", html)
    assert not {"link", "img", "iframe"} & set(found.tags)


def test_charts_mark_every_instance_and_what_has_no_gap(tmp_path: Path) -> None:
    html = page(*small(), tmp_path)
    gaps = html[html.index('aria-label="gaps by solver"') :].split("</svg>")[0]
    assert gaps.count('class="dot-of"') == 3 and gaps.count('class="cross"') == 1
    assert "a-1: 20.0 %" in gaps and "x: 10.0 % (0 to 20.0 %)" in gaps
    profile = html[html.index('aria-label="performance profile"') :].split("</svg>")[0]
    assert "best or level on 100 %" in profile and profile.count('class="curve"') == 2


def test_what_must_be_known_first(tmp_path: Path) -> None:
    plan, records = small()
    liar = next(cell for cell in plan.solving if cell.label == "y" and cell.seed == 0)
    other = next(cell for cell in plan.solving if cell.label == "x" and cell.seed == 1)
    records[liar.key] = record(liar, 200.0, 150.0)
    records[other.key] = replace(
        records[other.key], machine={**MACHINE, "cores": 64}, code_version="0.1.0+def-dirty"
    )
    del records[next(cell.key for cell in plan.solving if cell.label == "y" and cell.seed == 1)]
    plan = replace(
        plan,
        made=(*plan.made, MadeInstance("nosuch", 3, "nosuch", None, error="no such problem")),
        changed="it has changed",
    )
    found = caveats(gather(plan, stored(tmp_path, records)))
    assert [(each.grave, each.words) for each in found] == [
        (
            True,
            (
                "a-0: y's bound 150.0 (y) exceeds the objective 100.0 that x reached and the "
                "verifier confirmed"
            ),
        ),
        (True, "no instance of nosuch with seed 3: no such problem"),
        (False, "5 of 6 cells have run; `optbench run by_hand` runs the rest"),
        (
            False,
            "solvers are compared on 1 pair of instance and seed alone, which all of them have run",
        ),
        (False, "it has changed"),
        (
            False,
            "records come from 2 machines or library versions, so that times may not compare: "
            "cores 2 (4 cells); cores 64 (1 cell)",
        ),
        (
            False,
            "records come from 2 versions of the code, so that times may not compare: "
            "0.1.0+abc (4 cells); 0.1.0+def-dirty (1 cell)",
        ),
    ]


def test_many_instances_that_could_not_be_made_are_a_few_remarks(tmp_path: Path) -> None:
    plan, records = small()
    plan = replace(
        plan,
        made=(
            *plan.made,
            *(MadeInstance("nosuch", seed, "nosuch", None, error="why") for seed in range(50)),
        ),
    )
    found = [each.words for each in caveats(gather(plan, stored(tmp_path, records)))]
    assert len(found) == 5 and found[2:4] == [
        "no instance of nosuch with seed 2: why", "and 47 more instances could not be made"
    ]  # fmt: skip


def test_gates_and_claims_stand_with_their_verdicts(tmp_path: Path) -> None:
    """x has half the objective of y on average: (100 − 200) / 200 on a-0, (125 − 250) / 250
    on a-1.
    """
    claim = Claim("less than y", "a paper, table 2", -0.4, "rel(objective, x, y)")
    plan = study_of(
        ["x", "y"],
        ["a"],
        seeds=(0, 1),
        gates={"x": "study_gap <= 0.15", "y": "study_gap <= 0.15"},
        claims=(claim,),
    )
    given: dict[tuple[str, str], Any] = {
        (BOUNDS, "a-0"): (None, 100.0),
        (BOUNDS, "a-1"): (None, 100.0),
    }
    given |= {
        ("x", "a-0"): (100.0, None),
        ("x", "a-1"): (125.0, None),
        ("y", "a-0"): (200.0, None),
        ("y", "a-1"): (250.0, None),
    }
    html = page(plan, records_of(plan, given), tmp_path)
    _, x, y = table(html, "gates")
    assert x == ["x", "study_gap <= 0.15", "study_gap = 0.1", "✓ holds"]
    assert (y[0], y[2], y[3]) == ("y", "study_gap = 0.55", "✗ fails")
    (_, row) = table(html, "claims")
    assert (
        row[0] == "less than y a paper, table 2"
        and row[1] == "-0.4"
        and row[2].startswith("-0.5")
        and row[-1] == "✓ holds"
    )


@pytest.mark.parametrize("labels", [["only"], ["a", "b"], [f"solver_{k}" for k in range(30)]])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("ran", [0, 1, 99])
def test_any_study_has_a_report(labels: list[str], levels: int, ran: int, tmp_path: Path) -> None:
    plan = study_of(labels, ["p", "q"], seeds=(0, 1), levels=levels)
    records = {}
    for cell in plan.cells[:ran]:
        if cell.kind == "bound":
            records[cell.key] = record(cell, None, 5.0)
        else:
            value = 10.0 + len(cell.label)
            records[cell.key] = (
                record(cell, value, 4.0) if levels == 1 else record(cell, (value, 3.0), (4.0, 3.0))
            )
    outline(page(plan, records, tmp_path))


def test_ten_thousand_cells_are_not_ten_thousand_lines(tmp_path: Path) -> None:
    labels = [f"s{k}" for k in range(10)]
    plan = study_of(labels, ["a"], seeds=range(1000))
    store = stored(tmp_path, {})
    with store.file.open("a", encoding="utf-8") as file:
        for cell in plan.cells:
            value = 91.0 + cell.seed % 7 + len(cell.label)
            made = record(cell, None, 90.0) if cell.kind == "bound" else record(cell, value, None)
            failing = cell.kind == "solve" and cell.seed % 10 == 3
            file.write(
                json.dumps((failure(cell, "crashed", "why " * 200) if failing else made).to_dict())
                + "\n"
            )
    html = render(gather(plan, store), tmp_path / "report.html")
    assert len(html) < 3_000_000
    assert "250 of 1,000 instances are shown" in html and html.count("data-k=") == MOST_CELLS
    assert "992 more are not shown" in html
    gaps = html[html.index('aria-label="gaps by solver"') :].split("</svg>")[0]
    assert gaps.count('class="dot-of"') + gaps.count('class="cross"') <= len(labels) * MOST_DOTS


def test_the_list_of_studies(tmp_path: Path) -> None:
    plan, records = small()
    store = stored(tmp_path, records)
    report = gather(plan, store)
    index = write_index([(report, write_report(plan, store))], store)
    html = index.read_text(encoding="utf-8")
    outline(html)
    assert (
        'href="by_hand/report.html"' in html
        and "6 of 6" in html
        and "x and y cannot be told apart" in html
    )


def test_the_script_runs_in_a_browser(tmp_path: Path) -> None:
    """Sorting by a column, and the particulars of a cell."""
    html = page(*small(), tmp_path)
    clicks = (
        'const head = document.querySelectorAll(".instances thead button")[4]; head.click(); '
        "head.click();"
        'document.querySelector(".instances td button").click();'
    )
    path = tmp_path / "clicked.html"
    path.write_text(html.replace("</body>", f"<script>{clicks}</script></body>"), encoding="utf-8")
    dom = dom_of(path, tmp_path / "profile")
    assert 'aria-sort="descending"' in dom
    rows = re.findall(r'<th scope="row">(a-\d)', dom[dom.index('class="report-table instances"') :])
    assert rows == ["a-1", "a-0"]
    dialog = dom[dom.index("<dialog") : dom.index("</dialog>")]
    assert (
        "open" in dialog.split(">")[0]
        and "x | a-1 | 1" in dialog
        and "optbench solve a -s x --seed 1" in dialog
    )
