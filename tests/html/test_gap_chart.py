"""The page's section on where the gap comes from."""

from __future__ import annotations

import re

import pytest

import optbench as ob
from optbench.html import gap_chart, schedule_page
from tests.html.html_pages import outline
from tests.html.test_schedule_page import cluster, result_of, serial


def test_parts_are_bars_as_long_as_their_shares() -> None:
    instance = cluster()
    schedule = serial(instance, pick=3)
    result, why = result_of(instance, schedule), ob.explain(instance, schedule)
    html = schedule_page.render(instance, [result], explained=[why])
    outline(html)
    assert "Where the gap comes from" in html
    section = gap_chart.gap_section([result], [why])
    widths = [
        float(w)
        for w in re.findall(
            r'<rect x="150" y="[\d.]+" width="([\d.]+)"[^>]*?rx="2" fill="[^"]+"/>', section
        )
    ]
    shares = [
        v / why.objective.excess
        for v in why.objective.parts.values()
        if abs(v) > 1e-7 * why.objective.objective
    ]
    assert widths == pytest.approx([max(1.0, gap_chart.BAR * share) for share in shares], abs=0.06)
    for value in why.marginal_values:
        assert value.resource in section


def test_names_in_the_section_cannot_inject_markup() -> None:
    instance = cluster(name="<script>alert(1)</script>")
    schedule = serial(instance, pick=3)
    html = schedule_page.render(
        instance, [result_of(instance, schedule)], explained=[ob.explain(instance, schedule)]
    )
    outline(html)
    assert "<script>alert" not in html


def test_results_without_an_explanation_have_no_section() -> None:
    instance = cluster()
    result = result_of(instance, serial(instance))
    assert "Where the gap comes from" not in schedule_page.render(
        instance, [result], explained=[None]
    )
    assert gap_chart.gap_section([result], ()) == ""
