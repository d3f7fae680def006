"""Pictures of decisions that are no schedules: those that their shape draws."""

from __future__ import annotations

from optbench.errors import FileFormatError
from optbench.evaluate.rows import Row
from optbench.html.page import section, svg_image, titled_figure
from optbench.model.files.strict_json import parse_json
from optbench.report.formatting import number
from optbench.report.study_report import StudyReport
from optbench.run.judge import PICTURES
from optbench.sandbox.job_folder import UnreadableFileError, read_bounded_file

# Solvers whose decision of the first instance is shown, the best first.
MOST_SOLVERS = 6


def decision_pictures(report: StudyReport) -> str:
    """The pictures of the first instance that has any, by solver."""
    found: dict[str, list[tuple[Row, dict[str, str]]]] = {}
    for each in report.ranked:
        for row in report.rows[each.label]:
            if row.cell.shape is not None and row.objective is not None:
                pictures = _pictures_of(report, row)
                if pictures:
                    found.setdefault(row.cell.instance_hash, []).append((row, pictures))
                break
    shown = next(iter(found.values()), [])[:MOST_SOLVERS]
    return section("Decisions", *(_figures(row, each) for row, each in shown), id="decisions")


def _pictures_of(report: StudyReport, row: Row) -> dict[str, str]:
    """The pictures of a cell; none where a store was cleaned up."""
    try:
        content = read_bounded_file(report.store.cell(row.cell.key) / PICTURES)
        data = parse_json(content.decode("utf-8"))
    except (UnreadableFileError, FileFormatError, UnicodeDecodeError):
        return {}
    return {str(title): str(text) for title, text in data.items()} if data else {}


def _figures(row: Row, pictures: dict[str, str]) -> str:
    out = []
    for title, text in pictures.items():
        image = svg_image(title, text)
        words = f"{row.cell.instance}, seed {row.cell.seed}: objective {number(row.objective)}."
        out.append(titled_figure(f"{row.cell.label}: {title}", image, words))
    return "".join(out)
