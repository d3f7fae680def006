"""Fragments for the output cells of notebooks: complete, well-formed, and styled for themselves."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import optbench as ob
from optbench.html import notebook
from tests.html.html_pages import dom_of, outline
from tests.html.shown_objects import solved, three_points, two_jobs


@pytest.fixture(name="result")
def result_fixture() -> ob.Result:
    return solved()


@pytest.fixture(name="front")
def front_fixture() -> ob.Front:
    return three_points()


def rules(css: str) -> list[str]:
    """Selectors of all rules, those of ``@media`` too."""
    inner = re.sub(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\}", r"\1", css)
    return [
        each.strip()
        for head in re.findall(r"([^{}]+)\{[^{}]*\}", inner)
        for each in head.split(",")
    ]


def test_the_fragment_of_a_result_has_its_figures_and_its_chart(result: ob.Result) -> None:
    half = replace(result, bound=750.0, gap=0.25, status="feasible", solver="<b>mine</b>")
    shown = half._repr_html_()
    parsed = outline(shown)
    assert parsed.tags.count("svg") == 1 and "script" not in parsed.tags
    for part in ("two jobs", "1,000", "750", "25.0 %", "peak power", "Gantt chart of", "power"):
        assert part in shown
    assert "<b>mine" not in shown and "&lt;b&gt;mine" in shown
    # Bars keep the tooltips that the script of a page would replace.
    assert "<title>" in shown


def test_a_fragment_styles_itself_and_nothing_else(result: ob.Result, front: ob.Front) -> None:
    for shown in (result._repr_html_(), front._repr_html_()):
        (css,) = re.findall(r"<style>(.*?)</style>", shown, re.DOTALL)
        found = rules(css)
        assert len(found) > 80
        assert {each for each in found if f".{notebook.FRAME}" not in each.split()[:2]} == set()
        assert "prefers-color-scheme:dark" in css and "http" not in shown.replace("w3.org", "")


def test_style_rules_are_restricted_to_the_fragment() -> None:
    css = "body{a:1}p,h1 b{c:2}@media print{:root{d:3}p{e:4}}"
    frame = f".{notebook.FRAME}"
    assert "".join(notebook.scoped(css)) == (
        f"{frame}{{a:1}}{frame} p,{frame} h1 b{{c:2}}@media print{{{frame}{{d:3}}{frame} p{{e:4}}}}"
    )
    with pytest.raises(ValueError, match=r"not closed: '\{a:1'"):
        list(notebook.scoped("p{a:1"))


def test_a_result_without_an_instance_shows_its_line(result: ob.Result) -> None:
    bare = replace(result, instance_data=None, instance="<i>x</i>")
    assert bare._repr_html_().startswith("<pre>&lt;Result &#x27;&lt;i&gt;x&lt;/i&gt;&#x27; by fcfs")


def test_a_result_without_a_schedule_has_a_table_and_no_chart(result: ob.Result) -> None:
    shown = replace(result, schedule=None, objective=None, gap=None)._repr_html_()
    assert "svg" not in outline(shown).tags and "1,000" in shown


def test_the_fragments_of_an_instance_and_a_model() -> None:
    m = two_jobs("<two>")
    m.limit(power_w=500.0)
    for shown in (m._repr_html_(), m.build()._repr_html_()):
        outline(shown)
        assert "&lt;two&gt;" in shown and "minimise energy_j" in shown
        assert "gpu" in shown and "10 W" in shown
    assert "not built" in m._repr_html_()
    built = m.build()._repr_html_()
    assert "500 W at cluster" in built
    # Tasks a and b are two groups, of 3 s and 600 J and of 2 s and 400 J.
    for cell in ("3 s", "600 J", "2 s", "400 J"):
        assert f"<td>{cell}</td>" in built


def test_long_tables_say_what_they_leave_out() -> None:
    m = ob.Model("many")
    pools = [m.pool(f"p{k}") for k in range(43)]
    m.task("a", modes=[m.mode(pools[0], 1, 1)])
    m.minimize(energy_j=1.0)
    shown = m.build()._repr_html_()
    assert "p39" in shown and "p40" not in shown and "3 more rows are not shown" in shown


def test_the_fragment_of_a_front_has_its_points(front: ob.Front) -> None:
    parsed = outline(front._repr_html_())
    assert parsed.tags.count("svg") == 1 and "script" not in parsed.tags
    assert sum(entry == ("class", "point") for entry in parsed.attributes) == 3
    assert "3 of 3 points are proven optimal" in front._repr_html_()


HOST = """<!doctype html><meta charset=utf-8>
<style>.host td{padding:3px}.host tbody tr:nth-child(odd){background:red}</style>
<body><div class=host><table><tr><td id=outside>x</td></tr></table>FRAGMENT</div>
<script>
const of = (s) => getComputedStyle(document.querySelector(s));
const themed = (light) => {
  document.body.dataset.jpThemeLight = light;
  return of(".optbench-output").backgroundColor;
};
const chart = document.querySelector(".optbench-output svg").getBoundingClientRect();
document.title = [
  of("#outside").paddingTop, of("body").backgroundColor, of(".host tr").backgroundColor,
  of(".optbench-output td").paddingTop, of(".optbench-output tbody tr").backgroundColor,
  themed("true"), themed("false"), chart.width > 700, chart.height > 100,
].join(" | ");
</script>"""


def test_notebook_and_fragment_leave_each_other_as_they_are(
    result: ob.Result, tmp_path: Path
) -> None:
    page = tmp_path / "cell.html"
    page.write_text(HOST.replace("FRAGMENT", result._repr_html_()))
    (title,) = re.findall(r"<title>(.*?)</title>", dom_of(page, tmp_path / "profile"))[:1]
    assert title.split(" | ") == [
        *("3px", "rgba(0, 0, 0, 0)", "rgb(255, 0, 0)"),  # the notebook's own
        *("9px", "rgba(0, 0, 0, 0)"),  # the fragment's, without the notebook's stripes
        *("rgb(251, 251, 252)", "rgb(18, 21, 27)"),  # --bg of page.css, light and dark
        *("true", "true"),
    ]
