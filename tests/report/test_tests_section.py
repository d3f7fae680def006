"""The section of hypothesis tests in a report: what it shows, and that nothing else asks for it."""

from __future__ import annotations

from pathlib import Path

from optbench.report.outline import outline
from optbench.report.study_page import render
from optbench.report.study_report import StudyReport, gather
from optbench.report.tests_section import p_words
from tests.evaluate.studies_by_hand import stored, study_of
from tests.evaluate.test_study_tests import COSTS, SEEDS, results


def section_of(report: StudyReport) -> str:
    html = render(report, None)
    section = html[html.index('<section id="tests">') :]
    return section[: section.index("</section>")]


def test_the_report_has_the_section_only_where_a_study_asks(tmp_path: Path) -> None:
    plan, records = results(metric="objective", margin=10.0, regress_on=("num_tasks",))
    report = gather(plan, stored(tmp_path, records))
    section = section_of(report)
    assert "<h3>Against y</h3>" in section and "equivalent within 10: p" in section
    # The store has no instance, so that its numbers are not known.
    assert "num_tasks is not known of a-0" in section
    assert outline(report)["tests"]["pairs"][0]["test"]["difference"] == 2.0
    bare = study_of(list(COSTS), ["a"], SEEDS)
    report = gather(bare, stored(tmp_path / "bare", {}))
    assert 'id="tests"' not in render(report, None) and "tests" not in outline(report)


def test_ratios_and_logarithms_are_explained(tmp_path: Path) -> None:
    plan, records = results(metric="objective", scale="log", margin=0.05, by_problem=True)
    section = section_of(gather(plan, stored(tmp_path, records)))
    assert "equivalent within a factor 1.05: p" in section and ">ratio</th>" in section
    assert "All tests are of natural logarithms" in section
    # x is 1.1 times y everywhere; the reason spans the columns of figures.
    assert '<td colspan="7" class="words">all 3 differences are 0.0953102' in section


def test_p_values_in_words() -> None:
    assert [p_words(each) for each in (None, 0.04512, 1.0, 3e-9)] == [
        *("–", "0.0451", "1.0000", "< 0.0001"),
    ]
