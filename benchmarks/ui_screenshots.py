"""MLflow's pages on a small study, in headless Chromium: runs listed, two compared, a Gantt chart
opened; writes docs/images/.

    python benchmarks/ui_screenshots.py [--study STUDY] [-o docs/images]

Runs the study in a workspace of its own, starts `optbench ui` there and looks at it as a reader
would. Exit code 1 when a page does not show what it has to. Needs Chromium; playwright is installed
into a folder of its own where it is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks._ui_pages import (  # noqa: E402
    browser_context,
    report_differences,
    run_commands,
    ui_address,
    workspace_folder,
)
from optbench.track.tracking import Tracking  # noqa: E402

SIZE = {"width": 1500, "height": 1000}
PATIENCE_MS, SETTLE_MS = 60_000, 2_500
HIDDEN, SHOWN = ("Dataset", "Source", "Models"), ("objective", "bound", "gap", "wall_s")
# Set before the first page: neither the side panel of the assistant nor its hints.
QUIET = """
localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");
localStorage.setItem("mlflow.workflowType_v1", JSON.stringify("machine_learning"));
"""
DECLARED = """\
question = "What do rules lose against CP-SAT on small GPU task graphs?"
problems = ["gpu_dag:tasks=[12,16],gpus=4"]
solvers = ["cpsat", "random_rules", "heft", "fcfs"]
seeds = 2
time_limit = "3s"
bound_limit = "3s"
"""


def make_study(folder: Path) -> dict[str, str]:
    """A workspace whose study has been run; the environment that leads there."""
    (folder / "studies").mkdir()
    (folder / "studies" / "rules.toml").write_text(DECLARED)
    return run_commands(folder, ("run", "rules", "-n", "2", "--json"), ("sync", "--json"))


def shoot(url: str, folder: Path, output: Path) -> list[str]:
    """Three pages; what they lack."""
    client = Tracking(f"sqlite:///{folder / 'mlflow' / 'mlflow.db'}", workspace=folder).client
    experiment = client.get_experiment_by_name("optbench/rules")
    assert experiment is not None
    number = experiment.experiment_id
    runs = {str(run.info.run_name): run.info.run_id for run in client.search_runs([number])}
    first, second = (
        next(runs[name] for name in runs if name.startswith(f"{each} | gpu_dag-12"))
        for each in ("cpsat", "heft")
    )
    compared = (
        f"runs={quote(json.dumps([first, second]))}&experiments={quote(json.dumps([number]))}"
    )
    wrong = []
    with browser_context(SIZE) as context:
        context.add_init_script(QUIET)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{url}/#/experiments/{number}/runs")
        list_runs(page)
        wrong += keep(page, output / "mlflow_runs.png", ["heft |", "cpsat |", "objective"])
        page.goto(f"{url}/#/compare-runs?{compared}")
        compare(page)
        wrong += keep(page, output / "mlflow_compare.png", ["objective", "energy_j"])
        page.goto(f"{url}/#/experiments/{number}/runs/{first}/artifacts/gantt.html")
        if not appears(page.frame_locator("iframe").first, "makespan"):
            wrong.append("mlflow_gantt.png: no chart")
        wrong += keep(page, output / "mlflow_gantt.png", ["gantt.html"])
    return wrong


def list_runs(page: Any) -> None:
    """Open the parent, and choose the columns."""
    page.locator("[role=gridcell] button").first.click()
    page.get_by_text("heft |").first.wait_for()
    page.get_by_role("button", name="Columns").click()
    for name in (*HIDDEN, *SHOWN):
        page.get_by_placeholder("Search columns").fill(name)
        page.wait_for_timeout(SETTLE_MS / 4)
        page.locator("[class*=tree-title]").get_by_text(name, exact=True).first.click()
    page.keyboard.press("Escape")


def compare(page: Any) -> None:
    """Fold what takes room; what is left are the runs and their metrics."""
    for name in ("Visualizations", "Parameters"):
        page.get_by_text(name, exact=True).first.click()
        page.wait_for_timeout(SETTLE_MS / 4)


def keep(page: Any, path: Path, words: list[str]) -> list[str]:
    """Take the picture; which words are not on it."""
    missing = [f"{path.name}: no {word!r}" for word in words if not appears(page, word)]
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=str(path))
    return missing


def appears(place: Any, words: str) -> bool:
    """Whether a text becomes visible."""
    from playwright.sync_api import Error  # type: ignore[import-not-found,unused-ignore]

    try:
        place.get_by_text(words).first.wait_for(timeout=PATIENCE_MS / 3)
    except Error:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    with workspace_folder() as folder, ui_address(make_study(folder)) as url:
        wrong = shoot(url.partition("/#")[0], folder, args.output)
    return report_differences(wrong)


if __name__ == "__main__":
    sys.exit(main())
