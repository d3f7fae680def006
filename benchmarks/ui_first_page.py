"""The page that `optbench ui` opens after `optbench quickstart`, in headless Chromium, without a
click; writes docs/results/ui_first_page.md and two pictures.

    python benchmarks/ui_first_page.py [-o docs/results/ui_first_page.md]

The browser has an empty profile. Its table is read from the page and compared with the records of
the store. Exit code 1 where a run or a gap is missing, differs, or stands in the wrong place. Needs
Chromium; playwright is installed into a folder of its own where it is missing.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._ui_pages import (  # noqa: E402
    browser_context,
    report_differences,
    run_commands,
    ui_address,
    workspace_folder,
)
from optbench.evaluate.rows import Row, table  # noqa: E402
from optbench.store.run_store import Store  # noqa: E402
from optbench.store.snapshots import load_plan  # noqa: E402

SIZE = {"width": 1900, "height": 1000}
PATIENCE_MS, SETTLE_MS = 60_000, 4_000
TABLE, CHARTS = "mlflow_first_page.png", "mlflow_charts.png"
COLUMNS = ("study_gap", "gap")
NAME = "attributes.`Run Name`"
# Cells of the grid by row: a pinned part has the names, the other one the metrics.
READ = """() => {
  const rows = {};
  for (const row of document.querySelectorAll('.ag-row')) {
    const key = row.getAttribute('row-index');
    for (const cell of row.querySelectorAll('.ag-cell')) {
      const column = cell.getAttribute('col-id');
      rows[key] = Object.assign(rows[key] || {}, {[column]: cell.innerText.trim()});
    }
  }
  return Object.keys(rows).map(Number).sort((a, b) => a - b).map(key => rows[key]);
}"""


def shoot(environment: dict[str, str], flags: list[str], picture: Path) -> list[dict[str, str]]:
    """Open what `optbench ui` names, take the picture, and return the rows of the table."""
    with ui_address(environment, *flags) as url, browser_context(SIZE) as context:
        page: Any = context.new_page()
        page.goto(url)
        page.locator(".ag-row").first.wait_for(timeout=PATIENCE_MS)
        page.wait_for_timeout(SETTLE_MS)
        page.screenshot(path=str(picture))
        rows: list[dict[str, str]] = page.evaluate(READ)
    return rows


def stored(folder: Path) -> list[Row]:
    """The solves of the study in the order of the page: smallest study gap first."""
    store = Store(folder / ".optbench")
    rows = table(load_plan("quickstart", store), store.records()).rows
    return sorted(
        rows, key=lambda row: (row.study_gap is None, row.study_gap if row.study_gap else 0.0)
    )


def compare(shown: list[dict[str, str]], rows: list[Row]) -> list[str]:
    """What the page shows otherwise than the store has it."""
    by_name = {row.cell.title: row for row in rows}
    wrong = [] if shown else ["no runs are shown"]
    for place, cells in enumerate(shown):
        name = cells.get(NAME, "").rpartition("\n")[2]
        row = by_name.get(name)
        if row is None:
            wrong.append(f"row {place + 1}: {name!r} is no solve of the study")
            continue
        for column in COLUMNS:
            said, value = cells.get(f"metrics.`{column}`"), getattr(row, column)
            if said != "-" if value is None else _number(said) != value:
                wrong.append(f"{name}: {column} {said!r} instead of {value!r}")
    gaps = [_number(cells.get("metrics.`study_gap`")) for cells in shown]
    known = [gap for gap in gaps if gap is not None]
    if known != sorted(known):
        wrong.append("the rows are not sorted by study gap")
    return wrong


def _number(said: str | None) -> float | None:
    return None if said in (None, "", "-") else float(said)


def written(shown: list[dict[str, str]], rows: list[Row], wrong: list[str]) -> str:
    """The page of results."""
    lines = [
        "# The first page of `optbench ui`",
        "",
        "`optbench quickstart`, then `optbench ui`: the page that opens, in headless Chromium with "
        "an empty profile, without a click. The runs are those of the study that was run last, "
        "sorted by study gap; the side panel on the right is MLflow's own, which it opens on the "
        "first visit of a browser.",
        "",
        "Command: `python benchmarks/ui_first_page.py`  ",
        f"Machine: {platform.platform()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, MLflow {version('mlflow')}",
        "",
        f"![the runs of quickstart, sorted by study gap](../images/{TABLE})",
        "",
        "`optbench ui --charts` opens the same runs with their charts:",
        "",
        f"![charts of quickstart's runs](../images/{CHARTS})",
        "",
        f"{len(shown)} of {len(rows)} runs are in the table; "
        + ("each gap in it is that of the store." if not wrong else "differences:"),
        *(f"- {each}" for each in wrong),
        "",
        "| run | study_gap | gap |",
        "| --- | ---: | ---: |",
    ]
    for cells in shown[:20]:
        name = cells.get(NAME, "").rpartition("\n")[2].replace("|", "\\|")
        gaps = " | ".join(cells.get(f"metrics.`{column}`", "") for column in COLUMNS)
        lines.append(f"| {name} | {gaps} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    default = ROOT / "docs" / "results" / "ui_first_page.md"
    parser.add_argument("-o", "--output", type=Path, default=default)
    args = parser.parse_args()
    images = args.output.resolve().parents[1] / "images"
    images.mkdir(parents=True, exist_ok=True)
    with workspace_folder() as folder:
        environment = run_commands(folder, ("quickstart", "--json", "-q"))
        shown = shoot(environment, [], images / TABLE)
        shoot(environment, ["--charts"], images / CHARTS)
        rows = stored(folder)
        wrong = compare(shown, rows)
        args.output.write_text(written(shown, rows, wrong), encoding="utf-8")
    return report_differences(wrong)


if __name__ == "__main__":
    sys.exit(main())
